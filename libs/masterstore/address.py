"""The option ``redis_url``: one URL for a Redis server, for a Unix socket, for Sentinels that know the current server, or
for some nodes of a Redis Cluster.

    redis://user:password@host:6379/0             one Redis server
    rediss://user:password@host:6379/0?ssl_ca_certs=/run/secrets/ca.pem
    unix:///run/redis.sock?db=0
    redis+sentinel://user:password@host1:26379,host2,[::1]:26380/service/0?sentinel_username=u&sentinel_password=p
    rediss+sentinel://...                         TLS to the Sentinels and to Redis
    redis+cluster://user:password@host1:6379,host2,[::1]:7000
    rediss+cluster://...                          TLS to all nodes
    file:///run/secrets/redis/url                 a file that holds one of these URLs

User and password are those of Redis (ACL users, Redis 6). The Sentinels get only ``sentinel_username`` and
``sentinel_password``. All options after ``?`` are redis-py's: ``ssl_ca_certs``, ``ssl_certfile``, ``ssl_keyfile``,
``ssl_check_hostname``, ...

A file is read again for each new connection, for the user and the password: they may be replaced while roles run. Files of
certificates are read for each new connection, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from masterstore.redis_parts import SSLConnection, parse_url

#: Ports of a Sentinel and of a node of a Redis Cluster that name none.
SENTINEL_PORT, NODE_PORT = 26379, 6379

_SENTINEL = re.compile(
    r"(?P<scheme>rediss?)\+sentinel://(?:(?P<user>[^/]*)@)?(?P<hosts>[^/@?]*)/(?P<service>[^/?]+)(?:/(?P<db>[^/?]*))?(?:\?(?P<query>.*))?"
)
_CLUSTER = re.compile(
    r"(?P<scheme>rediss?)\+cluster://(?:(?P<user>[^/]*)@)?(?P<hosts>[^/@?]*)/?(?P<db>[^/?]*)(?:\?(?P<query>.*))?"
)
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::(?P<port>\d+))?")

#: What stands before a password in a URL, and the password: ``user:PASSWORD@host`` or ``?password=PASSWORD``.
_PASSWORDS = re.compile(r"((?<=//)[^:/@]*:|[?&](?:sentinel_)?password=)(?:(?<=:)[^/]*(?=@)|(?<==)[^&]*)")

#: Options of a connection that are said to the Sentinels, too: how to reach them, not who is there.
_REACHED_BY = ("ssl", "socket_")


@dataclass(frozen=True)
class Sentinels:
    """The parts of a ``redis+sentinel://`` URL: addresses of Sentinels, service name, options for Sentinels and Redis."""

    hosts: tuple[tuple[str, int], ...]
    service: str
    #: Options of connections to Redis, as redis-py takes them.
    redis: Mapping[str, object]
    #: Options of connections to Sentinels.
    sentinel: Mapping[str, object]


@dataclass(frozen=True)
class ClusterNodes:
    """The parts of a ``redis+cluster://`` URL: addresses of some nodes of a Redis Cluster, and options of connections."""

    hosts: tuple[tuple[str, int], ...]
    #: Options of connections to each node, as redis-py takes them.
    redis: Mapping[str, object]


#: Begins an address that names a file with the URL.
IN_FILE = "file://"


def read_url(address: str) -> str:
    """Return the Redis URL of an address: the address itself, or for ``file://`` the content of the file.

    Raises ValueError if the file cannot be read.
    """
    if not address.startswith(IN_FILE):
        return address
    path = Path(address.removeprefix(IN_FILE))
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8'}; write the URL of Redis there"
        ) from error


#: User and password in front of a host.
_USERINFO = re.compile(r"(?<=//)[^/?]*@")


def login_of(url: str) -> tuple[str, ...]:
    """Return the login in a Redis URL: (user, password), (password,) without a user, or () without a password."""
    found = _USERINFO.search(url)
    if found is None or "?" in url[: found.end()]:
        return ()
    user, _, password = found[0].removesuffix("@").partition(":")
    given = (unquote(user), unquote(password))
    return (given if given[0] else given[1:]) if password else ()


def without_login(url: str) -> str:
    """Return the URL without user and password in front of the host."""
    return _USERINFO.sub("", url, count=1) if login_of(url) else url


def without_passwords(url: str) -> str:
    """Return the URL with ``***`` in place of passwords."""
    return _PASSWORDS.sub(r"\1***", url)


def sentinels_of(url: str) -> Sentinels | None:
    """Parse a ``redis+sentinel://`` URL; return None for another kind of URL. Raises ValueError with the reason."""
    if "+sentinel:" not in url.partition("//")[0]:
        return None
    found = _SENTINEL.fullmatch(url)
    if found is None:
        raise ValueError("write redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/DB")
    hosts = tuple(_host(one, "a Sentinel", SENTINEL_PORT) for one in found["hosts"].split(","))
    db = found["db"] or "0"
    if not db.isdigit():
        raise ValueError(f"the database must be a number, not {db!r}")
    options = _options(found, db)
    to_sentinels = {name: value for name, value in options.items() if name.startswith(_REACHED_BY)}
    for name in ("username", "password"):
        given = options.pop(f"sentinel_{name}", None)
        if given is not None:
            to_sentinels[name] = given
    return Sentinels(hosts, found["service"], options, to_sentinels)


def cluster_of(url: str) -> ClusterNodes | None:
    """Parse a ``redis+cluster://`` URL; return None for another kind of URL. Raises ValueError with the reason."""
    if "+cluster:" not in url.partition("//")[0]:
        return None
    found = _CLUSTER.fullmatch(url)
    if found is None:
        raise ValueError("write redis+cluster://HOST:PORT,HOST:PORT")
    if found["db"] not in ("", "0"):
        raise ValueError(f"a Redis Cluster has the database 0 alone, not {found['db']!r}")
    hosts = tuple(_host(one, "a node of a Redis Cluster", NODE_PORT) for one in found["hosts"].split(","))
    options = _options(found, "0")
    if options.get("db", 0) != 0:
        raise ValueError(f"a Redis Cluster has the database 0 alone, not {options['db']!r}")
    return ClusterNodes(hosts, options)


def _options(found: re.Match[str], db: str) -> dict[str, object]:
    """Return redis-py's options for the login, the scheme and the query of a URL with several hosts."""
    # They are read as redis-py reads them in the URL of one Redis.
    at = f"{found['user']}@" if found["user"] is not None else ""
    plain: dict[str, object] = parse_url(  # type: ignore[no-untyped-call]
        f"{found['scheme']}://{at}localhost/{db}" + (f"?{found['query']}" if found["query"] else "")
    )
    options = {name: value for name, value in plain.items() if name not in ("host", "port", "connection_class")}
    if plain.get("connection_class") is SSLConnection:
        options["ssl"] = True
    return options


def _host(text: str, what: str, port: int) -> tuple[str, int]:
    found = _HOST.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no host of {what}, which is HOST or HOST:PORT")
    return found["host"].strip("[]"), int(found["port"] or port)
