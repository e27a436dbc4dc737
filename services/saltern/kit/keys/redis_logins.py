"""Logins for Redis below a directory of keys: one user for each role that uses Redis, and one for operators.

``DIR/ROLE/redis.url`` is the URL with the role's user and password, for that role alone; ``DIR/redis-operator/redis.url`` is the
operators'. ``DIR/redis/users.acl`` is Redis' file of users (directive ``aclfile``): commands, keys, and hashes of passwords.

``DIR/redis/url`` is the URL of a Redis with one user for all roles, as earlier versions made it. While it is there, each role's
file is a copy of it. ``saltern rotate redis-users`` replaces it by one user for each role.

Source: docs/operations/redis-users.md
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Protocol
from urllib.parse import quote

from masterstore.access import DEFAULT, OPERATOR, USERS, acl_file
from masterstore.address import login_of, without_login
from saltern.kit.config.reading import ConfigError
from saltern.kit.config.redis_address import OPERATOR_LOGIN, OWN_URL

#: Bytes of a password for Redis.
PASSWORD_BYTES = 32

#: Directory of the files for Redis itself, and the files there.
REDIS_FILES = "redis"
USERS_FILE = f"{REDIS_FILES}/users.acl"
ONE_URL = f"{REDIS_FILES}/url"

#: File with the operators' URL.
OPERATOR_URL = f"{OPERATOR_LOGIN}/{OWN_URL}"

#: Version of Redis (major, minor) of the images and of Debian 12.
SHIPPED_VERSION = (7, 0)


class KeyReader(Protocol):
    """Reads files below a directory of keys, by their names in it."""

    def exists(self, name: str, /) -> bool:
        """Return whether there is such a file."""

    def read(self, name: str, /) -> bytes:
        """Return a file's content."""


class KeyTree(KeyReader, Protocol):
    """Reads and writes files below a directory of keys."""

    def put(self, name: str, content: bytes, mode: int = 0o600, /) -> object:
        """Write a file and its directory."""


def url_file(user: str) -> str:
    """Return the name of the file with a user's URL of Redis, below the directory of keys."""
    return OPERATOR_URL if user == OPERATOR else f"{user}/{OWN_URL}"


def address_of(host: str, tls: tuple[str, str] | None = None) -> str:
    """Return the URL, without a login, of the Redis at HOST, HOST:PORT or a URL. ``tls``: paths of the authority's certificate
    and of the roles' certificate.
    """
    if "://" in host:
        return without_login(host)
    place = host if ":" in host else f"{host}:6379"
    if tls is None:
        return f"redis://{place}/0"
    return f"rediss://{place}/0?ssl_ca_certs={quote(tls[0])}&ssl_certfile={quote(tls[1])}"


def with_login(address: str, user: str, password: str) -> str:
    """Return a URL of Redis with a login, in place of the one that it may have."""
    scheme, _, rest = without_login(address).partition("//")
    named = "" if user == DEFAULT else quote(user, safe="")
    return f"{scheme}//{named}:{quote(password, safe='')}@{rest}"


def login_at(tree: KeyReader, name: str) -> tuple[str, str, str]:
    """Return (URL, user, password) of a file with a URL of Redis. Raises ConfigError if the URL has no password, OSError."""
    url = tree.read(name).decode("utf-8", "replace").strip()
    login = login_of(url)
    if not login:
        raise ConfigError(f"{name}: no URL of Redis with a password; remove it to have a new password made")
    return url, login[0] if len(login) > 1 else DEFAULT, login[-1]


def complete_logins(
    tree: KeyTree, address: str, version: tuple[int, int] = SHIPPED_VERSION, *, move: bool = False
) -> list[str]:
    """Make the missing files of the logins for the Redis at ``address``, a URL without a login. Return the names of the
    new and changed files.

    Passwords that are there stay. ``users.acl`` is written again if its content differs: the rules of a role may have changed.
    ``version``: of Redis (major, minor), whose rules it must understand. ``move``: let URLs that are there name this address, too.
    Raises ConfigError, OSError.
    """
    made: list[str] = []
    one = tree.exists(ONE_URL)
    for user in USERS:
        name = url_file(user)
        if one:
            url, *_ = login_at(tree, ONE_URL)
            if user != OPERATOR and not tree.exists(name):
                _put(tree, name, f"{url}\n".encode(), made)
            continue
        there = login_at(tree, name) if tree.exists(name) else None
        url = with_login(address, user, there[2] if there is not None else secrets.token_hex(PASSWORD_BYTES))
        if there is None or (move and there[0] != url):
            _put(tree, name, f"{url}\n".encode(), made)
    content = users_file(passwords_of(tree), version, address)
    if not tree.exists(USERS_FILE) or tree.read(USERS_FILE) != content:
        tree.put(USERS_FILE, content, 0o644)
        made.append(USERS_FILE)
    return made


def passwords_of(tree: KeyReader) -> dict[str, list[str]]:
    """Return {user of Redis: [its password]} of the logins below a directory of keys. Raises ConfigError, OSError."""
    if tree.exists(ONE_URL):
        return {DEFAULT: [login_at(tree, ONE_URL)[2]]}
    return {user: [login_at(tree, url_file(user))[2]] for user in USERS if tree.exists(url_file(user))}


def users_file(passwords: Mapping[str, Sequence[str]], version: tuple[int, int], address: str) -> bytes:
    """Return the content of ``users.acl`` for the Redis at a URL. ``passwords``: {user: passwords}."""
    return acl_file(passwords, version, in_cluster="+cluster:" in address)


def _put(tree: KeyTree, name: str, content: bytes, made: list[str]) -> None:
    tree.put(name, content)
    made.append(name)
