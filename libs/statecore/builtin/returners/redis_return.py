"""Returner ``redis``: stores returns in Redis, with the keys of Salt's returner: ``ret:<jid>``,
``<minion>:<function>``, ``minions``.

Settings: ``redis.host`` (default salt), ``port`` (6379), ``db`` (0), ``password``, ``unix_socket_path``,
``keep_jobs_seconds`` (86400). The layout is that of saltext-redis 1.0.2, with two differences: values that JSON does
not support are stored as text, and ``<minion>:<function>`` expires together with the job.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import redis

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.returner_settings import settings_of

VIRTUAL = "redis"

_DEFAULTS: Mapping[str, object] = {
    "host": "salt",
    "port": 6379,
    "db": 0,
    "password": None,
    "unix_socket_path": None,
    "keep_jobs_seconds": 86400,
}

#: Seconds to wait for the Redis server, so that a job does not wait forever.
_TIMEOUT = 10.0


def returner(ctx: Context, ret: Mapping[str, object]) -> None:
    """Store one minion's return of a job in Redis. Raises CommandError, which names the Redis server, if it cannot be
    stored.
    """
    settings = settings_of(ctx.functions["config.option"], "redis", ret, _DEFAULTS)
    keep = int(str(settings["keep_jobs_seconds"]))
    jid, minion = str(ret["jid"]), str(ret["id"])
    functions = ret["fun"] if isinstance(ret["fun"], list) else [ret["fun"]]
    server = _server(settings)
    try:
        with server.pipeline(transaction=False) as pipe:
            pipe.hset(f"ret:{jid}", minion, json.dumps(ret, default=_plain))
            pipe.expire(f"ret:{jid}", keep)
            for fun in functions:
                pipe.set(f"{minion}:{fun}", jid, ex=keep)
            pipe.sadd("minions", minion)
            pipe.execute()
    except redis.RedisError as error:
        where = settings["unix_socket_path"] or f"{settings['host']}:{settings['port']}"
        raise CommandError(f"Redis at {where}: {error}") from error
    finally:
        server.close()


def _server(settings: Mapping[str, Any]) -> redis.Redis:
    place = (
        {"unix_socket_path": settings["unix_socket_path"]}
        if settings["unix_socket_path"]
        else {"host": settings["host"], "port": int(str(settings["port"]))}
    )
    return redis.Redis(
        db=int(str(settings["db"])),
        password=settings["password"],
        socket_timeout=_TIMEOUT,
        socket_connect_timeout=_TIMEOUT,
        **place,
    )


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return dict(value) if isinstance(value, Mapping) else str(value)
