"""SDB driver ``redis``: keys of a Redis server.

All settings of a profile but ``driver`` are arguments of redis-py's client: ``host``, ``port``, ``db``, ``password``. The
extra ``saltern-statecore[redis]`` brings the client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import redis

from statecore.model.context import Context
from statecore.model.errors import CommandError

VIRTUAL = "redis"
ALIASES = {"set": "set_"}

_T = TypeVar("_T")


def get(ctx: Context, key: str, profile: Mapping[str, object] | None = None) -> object:
    """Return the value of a key of Redis as text (bytes if it is not UTF-8); None if there is no such key. Raise
    CommandError if Redis fails.
    """
    value = _asked(profile, lambda client: client.get(key))
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


def set_(ctx: Context, key: str, value: Any, profile: Mapping[str, object] | None = None) -> object:
    """Store a value under a key of Redis and return True. Raise CommandError if Redis fails."""
    return _asked(profile, lambda client: client.set(key, value))


def delete(ctx: Context, key: str, profile: Mapping[str, object] | None = None) -> object:
    """Delete a key of Redis. Return the number of deleted keys, 0 or 1. Raise CommandError if Redis fails."""
    return _asked(profile, lambda client: client.delete(key))


def _asked(profile: Mapping[str, object] | None, ask: Callable[[redis.Redis], _T]) -> _T:
    settings: dict[str, Any] = {"socket_timeout": 10, "socket_connect_timeout": 10, **(profile or {})}
    settings.pop("driver", None)
    try:
        client = redis.Redis(**settings)
        try:
            return ask(client)
        finally:
            client.close()
    except (redis.RedisError, TypeError) as error:
        place = f"{settings.get('host', 'localhost')}:{settings.get('port', 6379)}"
        raise CommandError(f"Redis at {place}: {error}") from error
