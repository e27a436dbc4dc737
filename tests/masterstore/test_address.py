"""URLs of the store: what they say, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest
from redis.connection import SSLConnection

from masterstore.address import Sentinels, sentinels_of, without_passwords
from masterstore.client import Client
from masterstore.errors import StoreError

HOSTS = (("h1", 26379), ("h2", 5000))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis+sentinel://h1,h2:5000/main", Sentinels(HOSTS, "main", {"db": 0}, {})),
        ("redis+sentinel://h1:26379,h2:5000/main/", Sentinels(HOSTS, "main", {"db": 0}, {})),
        ("redis+sentinel://h1,h2:5000/main/3", Sentinels(HOSTS, "main", {"db": 3}, {})),
        ("redis+sentinel://[::1]:7,10.0.0.1/m", Sentinels((("::1", 7), ("10.0.0.1", 26379)), "m", {"db": 0}, {})),
        (
            "redis+sentinel://salt:p%40ss@h1,h2:5000/main/0",
            Sentinels(HOSTS, "main", {"db": 0, "username": "salt", "password": "p@ss"}, {}),
        ),
        ("redis+sentinel://:word@h1,h2:5000/m", Sentinels(HOSTS, "m", {"db": 0, "password": "word"}, {})),
        (
            "redis+sentinel://:word@h1,h2:5000/m/0?sentinel_username=watch&sentinel_password=s%26p",
            Sentinels(HOSTS, "m", {"db": 0, "password": "word"}, {"username": "watch", "password": "s&p"}),
        ),
        (
            "rediss+sentinel://h1,h2:5000/m/0?ssl_ca_certs=/ca.pem&socket_keepalive=yes",
            Sentinels(
                HOSTS,
                "m",
                {"db": 0, "ssl": True, "ssl_ca_certs": "/ca.pem", "socket_keepalive": True},
                {"ssl": True, "ssl_ca_certs": "/ca.pem", "socket_keepalive": True},
            ),
        ),
        ("redis://host/0", None),
        ("rediss://host/0", None),
        ("unix:///run/redis.sock", None),
        ("", None),
    ],
)
def test_what_a_url_says(url: str, expected: Sentinels | None) -> None:
    assert sentinels_of(url) == expected


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis+sentinel://h1,h2", "write redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/DB"),
        ("redis+sentinel://h1,h2/", "write redis+sentinel://"),
        ("redis+sentinel:///main", "'' is no host of a Sentinel"),
        ("redis+sentinel://h1,,h2/main", "'' is no host of a Sentinel"),
        ("redis+sentinel://h1:port/main", "'h1:port' is no host of a Sentinel, which is HOST or HOST:PORT"),
        ("redis+sentinel://h1/main/zero", "the database must be a number, not 'zero'"),
        ("redis+sentinel://h1/main/0?socket_timeout=soon", "Invalid value for 'socket_timeout'"),
        ("valkey+sentinel://h1/main", "write redis+sentinel://"),
    ],
)
def test_what_is_wrong_with_one(url: str, said: str) -> None:
    with pytest.raises(StoreError, match="redis_url") as caught:
        Client(url, timeout=1, client_name="x")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis+sentinel://u:secret@h1,h2/m/0", "redis+sentinel://u:***@h1,h2/m/0"),
        (
            "redis+sentinel://:sec,ret@h1,h2/m?sentinel_password=secret",
            "redis+sentinel://:***@h1,h2/m?sentinel_password=***",
        ),
        ("rediss+sentinel://h1/m?password=secret&db=1", "rediss+sentinel://h1/m?password=***&db=1"),
    ],
)
def test_passwords_are_not_shown(url: str, shown: str) -> None:
    assert without_passwords(url) == shown
    assert Client(url, timeout=1, client_name="x").shown == shown


def test_options_reach_connections_of_both_kinds() -> None:
    """What the connection is made of, without connecting."""
    made = Client(
        "rediss+sentinel://u:p@h1/m/2?sentinel_password=q&ssl_ca_certs=/ca.pem", timeout=1, client_name="role"
    )
    pool: Any = made.redis.connection_pool
    given = {
        name: pool.connection_kwargs[name] for name in ("username", "password", "db", "client_name", "ssl_ca_certs")
    }
    assert given == {"username": "u", "password": "p", "db": 2, "client_name": "role", "ssl_ca_certs": "/ca.pem"}
    assert issubclass(pool.connection_class, SSLConnection)
    (sentinel,) = pool.sentinel_manager.sentinels
    asked = sentinel.connection_pool
    assert {name: asked.connection_kwargs.get(name) for name in ("username", "password", "socket_timeout")} == {
        "username": None,
        "password": "q",
        "socket_timeout": 0.5,
    }
    assert issubclass(asked.connection_class, SSLConnection)
