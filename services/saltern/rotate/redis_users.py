"""Replaces the passwords of all users of Redis; also the one password for all roles (``DIR/redis/url``), by a user for each role.

1. Redis has each user with its new password beside the old one (``ACL SETUSER``), and with the rules of this version; also after a
   restart (``users.acl``).
2. ``redis.url`` of each role and of the operators gets the new password: new connections use it.
3. Redis forgets the old passwords, and ends all connections but this one. The user for all roles is switched off, once no role
   signs in with it any more.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping

from masterstore.access import DEFAULT, ROLES, USERS, digest, user_rules
from masterstore.client import Client
from masterstore.errors import StoreError
from saltern.kit.config.reading import ConfigError
from saltern.kit.keys.redis_logins import (
    ONE_URL,
    OPERATOR_URL,
    PASSWORD_BYTES,
    USERS_FILE,
    login_at,
    url_file,
    users_file,
    with_login,
)
from saltern.rotate.key_files import KeyFiles, RotationError, tell
from saltern.rotate.redis_login import require_one_redis

#: Seconds for an answer of Redis.
_TIMEOUT = 10.0

#: Names that roles give their connections, beside those of the users.
_RUNNER = "runner"


def rotate_redis_users(files: KeyFiles, reached: Callable[[str], str] = str) -> None:
    """Replace the passwords of all users of Redis. Raises RotationError, OSError.

    ``reached``: function that returns a Redis URL with the host by which this machine reaches Redis.
    """
    one = files.exists(ONE_URL)
    if not one and not files.exists(OPERATOR_URL):
        raise RotationError(
            f"{files.directory / OPERATOR_URL}: No such file; `saltern keygen --out DIR --redis-host HOST` makes it"
        )
    try:
        url, _, _ = login_at(files, ONE_URL if one else OPERATOR_URL)
        client = _connected(reached(url))
        require_one_redis(client, "passwords")
        version = _version(client)
        new, both = _begin(files, client, version, one=one)
        files.write(USERS_FILE, users_file(both, version, url), 0o644)
        tell("redis: the old and the new passwords are valid")
        files.bring()
        for user in USERS:
            files.write(url_file(user), files.read(_next(user)))
        for user in USERS:
            files.remove(_next(user))
        tell("redis: new connections use the new passwords")
        files.bring()
        _end(files, _connected(reached(login_at(files, OPERATOR_URL)[0])), version, new, one=one)
    except ConfigError as error:
        raise RotationError(f"{files.directory}: {error}") from error
    except StoreError as error:
        raise RotationError(f"{error}; old and new passwords may be valid now: run the same command again") from error


def _connected(url: str) -> Client:
    return Client(url, timeout=_TIMEOUT, client_name="rotate")


def _next(user: str) -> str:
    return f"{url_file(user)}.next"


def _version(client: Client) -> tuple[int, int]:
    """Return the version (major, minor) of Redis, of a Valkey that of Redis whose rules it knows. Raises StoreError."""
    said: Mapping[str, object] = client.call("info", "server")
    numbers = re.findall(r"\d+", str(said.get("redis_version", "0.0")))
    return int(numbers[0]), int(numbers[1])


def _begin(
    files: KeyFiles, client: Client, version: tuple[int, int], *, one: bool
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Carry out step 1: give each user a new password beside its old one. Return {user: new password} and {user: its passwords}."""
    new: dict[str, str] = {}
    both: dict[str, list[str]] = {DEFAULT: [login_at(files, ONE_URL)[2]]} if one else {}
    for user in USERS:
        there = login_at(files, url_file(user)) if files.exists(url_file(user)) else None
        if not files.exists(_next(user)):
            url = there[0] if there is not None else login_at(files, ONE_URL)[0]
            password = secrets.token_hex(PASSWORD_BYTES)
            files.write(_next(user), f"{with_login(url, user, password)}\n".encode())
        new[user] = login_at(files, _next(user))[2]
        # A role's file may be a copy of the URL for all roles.
        own = [there[2]] if there is not None and there[1] == user else []
        both[user] = [new[user], *own]
        client.call("execute_command", "ACL SETUSER", user, *user_rules(user, version), digest(new[user]))
    return new, both


def _end(files: KeyFiles, client: Client, version: tuple[int, int], new: Mapping[str, str], *, one: bool) -> None:
    """Carry out step 3 of the replacement: make Redis forget the old passwords, and end other connections. ``client`` uses the
    operators' new password.
    """
    client.call("ping")
    if one:
        _require_own_users(files, client)
    for user, password in new.items():
        client.call("execute_command", "ACL SETUSER", user, "resetpass", digest(password))
    if one:
        client.call("execute_command", "ACL SETUSER", DEFAULT, "resetpass", *user_rules(DEFAULT, version))
        files.remove(ONE_URL)
    files.write(USERS_FILE, users_file({user: [password] for user, password in new.items()}, version, ""), 0o644)
    files.bring()
    ended = client.call("execute_command", "CLIENT KILL", "TYPE", "normal", "SKIPME", "yes")
    tell(f"redis: the old passwords are not valid any more; {ended} connections were ended, and are made anew")
    if not client.call("config_get", "aclfile").get("aclfile"):
        tell(
            "redis: its configuration names no aclfile, so it forgets its users at its next start: "
            f"let aclfile name {files.directory / USERS_FILE}"
        )


def _require_own_users(files: KeyFiles, client: Client) -> None:
    """End all connections, and raise RotationError if a role signs in again with the user for all roles."""
    client.call("execute_command", "CLIENT KILL", "TYPE", "normal", "SKIPME", "yes")
    files.sleep(files.wait)
    rows: list[dict[str, str]] = client.call("client_list")
    names = {*ROLES, _RUNNER}
    left = sorted({row.get("name", "") for row in rows if row.get("user") == DEFAULT} & names)
    if left:
        raise RotationError(
            f"{', '.join(left)} still use the login for all roles, because they started before they had a file"
            f" {files.directory / url_file('ROLE')}. Restart these roles, then run the same command again"
        )
