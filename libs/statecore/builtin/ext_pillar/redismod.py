"""External pillar ``redis``: the key of a Redis server that is called as the minion.

.. code-block:: yaml

    redis.host: redis.example      # default salt
    redis.port: 6379
    redis.db: 0
    redis.password: null

    ext_pillar:
      - redis: {function: key_value}

The extra ``saltern-statecore[redis]`` brings the client.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import redis

from statecore.model.context import Context
from statecore.model.errors import CommandError

VIRTUAL = "redis"

_DEFAULTS: Mapping[str, Any] = {"host": "salt", "port": 6379, "db": 0, "password": None, "unix_socket_path": None}

#: Seconds to wait for the server.
_TIMEOUT = 10


def ext_pillar(
    ctx: Context, minion_id: str, pillar: dict[str, object], function: str, pillar_key: str | None = None
) -> object:
    """Return the value of the key that is called as the minion; {} if there is none.

    function
        key_value: text, list (also of a set or sorted set) or map (of a hash), by the type of the key; key_json: the
        data of JSON text
    pillar_key
        key of pillar for the value: redis_pillar by default, but a map of ``key_json`` stands at the top

    Raises CommandError if Redis does not answer, or for another function.
    """
    read = _FUNCTIONS.get(function)
    if read is None:
        raise CommandError(f"there is no function '{function}'; there are {', '.join(_FUNCTIONS)}")
    settings = {name: ctx.opts.get(f"redis.{name}", default) for name, default in _DEFAULTS.items()}
    place = settings["unix_socket_path"] or f"{settings['host']}:{settings['port']}"
    more: dict[str, Any] = {"decode_responses": True, "socket_timeout": _TIMEOUT, "socket_connect_timeout": _TIMEOUT}
    try:
        with redis.Redis(**settings, **more) as server:
            return read(server, minion_id, pillar_key)
    except redis.RedisError as error:
        raise CommandError(f"Redis at {place}: {error}") from error


def _key_value(server: Any, key: str, pillar_key: str | None) -> dict[str, object]:
    read = _BY_TYPE.get(server.type(key))
    return {} if read is None else {pillar_key or "redis_pillar": read(server, key)}


def _key_json(server: Any, key: str, pillar_key: str | None) -> object:
    text = server.get(key)
    if not text:
        return {}
    try:
        data = json.loads(text)
    except ValueError as error:
        raise CommandError(f"the key {key} holds no JSON: {error}") from error
    return data if isinstance(data, dict) and not pillar_key else {pillar_key or "redis_pillar": data}


_FUNCTIONS: Mapping[str, Callable[[Any, str, str | None], object]] = {"key_value": _key_value, "key_json": _key_json}

#: Type of a key in Redis -> function that reads it. Keys of other types (streams) give no pillar.
_BY_TYPE: Mapping[str, Callable[[Any, str], object]] = {
    "string": lambda server, key: server.get(key),
    "hash": lambda server, key: server.hgetall(key),
    "list": lambda server, key: server.lrange(key, 0, -1),
    "set": lambda server, key: sorted(server.smembers(key)),
    "zset": lambda server, key: server.zrange(key, 0, -1),
}
