"""Replaces the certificates of Redis and of the roles. Open connections stay; new connections use the new certificates.

Without ``--authority`` the authority stays: both certificates are replaced, and Redis reads its files again (``CONFIG
SET``). With ``--authority`` all three are replaced:

1. Redis and the roles trust the old and the new authority.
2. Both certificates are replaced by certificates of the new authority.
3. Redis and the roles trust only the new authority. Redis ends all connections, and an old certificate is refused.
"""

from __future__ import annotations

from collections.abc import Callable

from masterstore.client import Client
from masterstore.errors import StoreError
from saltern.kit.config.master import ConfigError
from saltern.kit.keys.certificates import (
    AUTHORITY,
    AUTHORITY_KEY,
    CLIENT,
    SERVER,
    Authority,
    certificate_of,
    hosts_of,
)
from saltern.rotate.key_files import KeyFiles, RotationError, tell
from saltern.rotate.redis_login import require_one_redis

_TIMEOUT = 10.0

_TLS = "redis/tls"

#: Options of Redis that name files; to set one again makes Redis read the file again.
_RELOADED = ("tls-ca-cert-file", "tls-cert-file", "tls-key-file")


def rotate_redis_tls(files: KeyFiles, url: str, *, authority: bool, reached: Callable[[str], str] = str) -> None:
    """Replace the certificates in ``DIR/redis/tls``; with ``authority`` also the certificate authority that issues
    them. Raises RotationError, OSError.

    ``url``: URL of Redis with the paths of TLS files on this machine. ``reached``: function that returns a Redis URL
    with the host by which this machine reaches Redis.
    """
    try:
        require_one_redis(Client(reached(url), timeout=_TIMEOUT, client_name="rotate"), "certificate")
        old = Authority.read(_read(files, AUTHORITY_KEY), _read(files, AUTHORITY))
        hosts = hosts_of(_read(files, SERVER))
        if not authority:
            _issue(files, old, hosts)
            _bring(files, reached(url))
            return
        new = Authority.make()
        files.write(f"{_TLS}/{AUTHORITY}", new.pem + old.pem)
        files.write(f"{_TLS}/{AUTHORITY_KEY}", new.key_pem)
        tell("redis: both authorities are believed")
        _bring(files, reached(url))
        _issue(files, new, hosts)
        _bring(files, reached(url))
        files.write(f"{_TLS}/{AUTHORITY}", new.pem)
        _bring(files, reached(url))
        client = Client(reached(url), timeout=_TIMEOUT, client_name="rotate")
        ended = client.call("execute_command", "CLIENT KILL", "TYPE", "normal", "SKIPME", "yes")
        tell(f"redis: the old authority is not believed any more; {ended} connections were ended, and are made anew")
    except ConfigError as error:
        raise RotationError(f"{files.directory / _TLS}: {error}") from error
    except StoreError as error:
        raise RotationError(
            f"{error}; the rotation of {files.directory / _TLS} is not over: mend it and run the same command again"
        ) from error


def _issue(files: KeyFiles, authority: Authority, hosts: list[str]) -> None:
    # The roles' certificate first: both are believed on both sides, so the order only matters to whoever watches.
    files.write(f"{_TLS}/{CLIENT}", authority.client())
    files.write(f"{_TLS}/{SERVER}", authority.server(hosts), _mode(files))
    tell("redis: new certificates are written")


def _mode(files: KeyFiles) -> int:
    # Redis may run as another user of the same group.
    return (files.directory / _TLS / SERVER).stat().st_mode & 0o777


def _bring(files: KeyFiles, url: str) -> None:
    """Deliver the files to Redis and the roles, make Redis read its files again, and check that it uses the new certificate.

    Raises RotationError if Redis has no TLS, or presents another certificate.
    """
    files.bring()
    client = Client(url, timeout=_TIMEOUT, client_name="rotate")
    named: dict[str, str] = {}
    for option in _RELOADED:
        named |= client.call("config_get", option)
    if not named.get("tls-cert-file"):
        raise RotationError("this Redis has no tls-cert-file: docs/operations/rotation.md says how it is configured")
    words = [word for option in _RELOADED if named.get(option) for word in (option, named[option])]
    for option, path in zip(words[::2], words[1::2], strict=True):
        client.call("execute_command", "CONFIG SET", option, path)
    served, written = _served(url), _read(files, SERVER)
    if served != certificate_of(written):
        raise RotationError(
            f"Redis serves another certificate than {files.directory / _TLS / SERVER}: {named['tls-cert-file']} is what it reads; "
            "copy it there and run the same command again"
        )
    tell("redis: serves the certificate that was written")


def _served(url: str) -> bytes:
    """Return the certificate (DER bytes) that Redis presents on a new connection. Raises StoreError."""
    client = Client(url, timeout=_TIMEOUT, client_name="rotate")
    return client.peer_certificate()


def _read(files: KeyFiles, name: str) -> bytes:
    try:
        return files.read(f"{_TLS}/{name}")
    except FileNotFoundError as error:
        raise RotationError(
            f"{files.directory / _TLS / name}: No such file; `saltern keygen --out DIR --redis-host HOST --redis-tls` makes it"
        ) from error
