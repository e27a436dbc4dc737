"""Replaces the password of a Redis with one user for all roles (``DIR/redis/url``). Meanwhile Redis accepts both
passwords; roles read theirs again for each new connection.

1. Redis accepts the new password beside the old one (``ACL SETUSER``), also after a restart (``users.acl``).
2. The key file ``url``, and the copies of it in the roles' directories, get the new password: new connections use it.
3. Redis forgets the old password and ends all connections but this one: each role connects again with the new password.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from masterstore.access import DEFAULT, ROLES, digest
from masterstore.address import login_of, without_login
from masterstore.client import Client
from masterstore.errors import StoreError
from saltern.kit.keys.redis_logins import (
    ONE_URL,
    PASSWORD_BYTES,
    SHIPPED_VERSION,
    USERS_FILE,
    login_at,
    url_file,
    users_file,
    with_login,
)
from saltern.rotate.key_files import KeyFiles, RotationError, tell

#: Seconds for an answer of Redis.
_TIMEOUT = 10.0

_NEXT = f"{ONE_URL}.next"


def rotate_redis_password(files: KeyFiles, reached: Callable[[str], str] = str) -> None:
    """Replace the password in ``DIR/redis/url`` and in Redis. Raises RotationError, OSError.

    ``reached``: function that returns a Redis URL with the host by which this machine reaches Redis.
    """
    before = _read(files, ONE_URL)
    user, old = _login(before, files.directory / ONE_URL)
    try:
        client = Client(reached(before), timeout=_TIMEOUT, client_name="rotate")
        require_one_redis(client, "password")
        after, new = _begin(files, client, user, before, old)
        files.bring()
        files.write(ONE_URL, after.encode() + b"\n")
        for role in ROLES:
            if files.exists(url_file(role)):
                url, own, _ = login_at(files, url_file(role))
                files.write(url_file(role), f"{with_login(url, own, new)}\n".encode())
        files.remove(_NEXT)
        tell("redis: new connections use the new password")
        files.bring()
        _end(files, Client(reached(after), timeout=_TIMEOUT, client_name="rotate"), user, new)
    except StoreError as error:
        raise RotationError(f"{error}; both passwords may be valid now: run the same command again") from error


def require_one_redis(client: Client, what: str) -> None:
    """Raise RotationError if this is a Redis Cluster: each of its nodes has a ``what`` (password, ...) of its own."""
    if client.in_cluster:
        raise RotationError(
            f"redis at {client.shown} is a Redis Cluster, and this command replaces the {what} of one Redis: replace it on"
            " each node by hand (docs/operations/rotation.md#redis-cluster)"
        )


def _begin(files: KeyFiles, client: Client, user: str, before: str, old: str) -> tuple[str, str]:
    """Carry out step 1 of the replacement of Redis' password: make Redis accept a new password beside the old one.
    Return (URL with the new password, new password).
    """
    if not files.exists(_NEXT):
        password = secrets.token_hex(PASSWORD_BYTES)
        named = quote(user) if len(login_of(before)) > 1 else ""
        scheme, _, rest = without_login(before).partition("//")
        files.write(_NEXT, f"{scheme}//{named}:{password}@{rest}\n".encode())
    after = _read(files, _NEXT)
    new = _login(after, files.directory / _NEXT)[1]
    client.call("execute_command", "ACL SETUSER", user, "on", digest(new))
    _write_users(files, new, old)
    tell("redis: both passwords are valid")
    return after, new


def _end(files: KeyFiles, client: Client, user: str, new: str) -> None:
    """Carry out step 3 of the replacement of Redis' password: make Redis forget all other passwords, and end other
    connections. ``client`` uses the new password.
    """
    client.call("ping")
    # Each password but the new one: an interrupted rotation may have left several.
    client.call("execute_command", "ACL SETUSER", user, "resetpass", digest(new))
    _write_users(files, new)
    files.bring()
    ended = client.call("execute_command", "CLIENT KILL", "TYPE", "normal", "SKIPME", "yes")
    tell(f"redis: the old password is not valid any more; {ended} connections were ended, and are made anew")
    acl_file = client.call("config_get", "aclfile").get("aclfile")
    if not acl_file:
        tell(
            "redis: its configuration names no aclfile, so it forgets this at its next start: "
            f"let aclfile name {files.directory / USERS_FILE}, or set requirepass to the password in {files.directory / ONE_URL}"
        )


def _write_users(files: KeyFiles, *passwords: str) -> None:
    if files.exists(USERS_FILE):
        # Redis runs as another user, and reads hashes only.
        files.write(USERS_FILE, users_file({DEFAULT: passwords}, SHIPPED_VERSION, ""), 0o644)


def _login(url: str, path: Path) -> tuple[str, str]:
    """Return (user, password) of a Redis URL; the user is "default" if it names none. Raises RotationError without a password."""
    login = login_of(url)
    if not login:
        raise RotationError(f"{path}: no URL of Redis with a password; `saltern keygen --redis-host HOST` makes one")
    return (login[0], login[1]) if len(login) > 1 else ("default", login[0])


def _read(files: KeyFiles, name: str) -> str:
    try:
        return files.read(name).decode().strip()
    except FileNotFoundError as error:
        raise RotationError(
            f"{files.directory / name}: No such file; `saltern keygen --out DIR --redis-host HOST` makes it"
        ) from error
