"""Durability of writes: a write is acknowledged at once, or after replicas or disks have it.

By default Redis acknowledges what is in its memory and was written to its append-only file. A failover may lose writes
that no replica had, a power failure those that were not synced. ``WAIT`` and ``WAITAOF`` (Redis 7.2) wait for all
writes of their connection; they are sent in one request with the script, so they cost no extra round trip.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from masterstore import redis_parts as redis
from masterstore.client import Client
from masterstore.errors import StoreError, StoreUnavailable

#: Version of Redis that knows WAITAOF.
_WAITAOF_SINCE = (7, 2)


@dataclass(frozen=True, slots=True)
class Durability:
    """Condition for a write to Redis to be acknowledged: the number of replicas that have it, whether it is on
    disk, and the time limit.
    """

    #: Number of replicas that must have a write.
    replicas: int = 0
    #: A write must be on the disk of the master and of these replicas (``WAITAOF``).
    disk: bool = False
    #: Milliseconds after which a write is not acknowledged; less than a connection's timeout.
    patience: int = 1000

    @property
    def command(self) -> tuple[str | int, ...]:
        """The Redis command (``WAIT`` or ``WAITAOF``) that waits for replicas and disks; () if there is nothing to wait
        for.
        """
        if self.disk:
            return ("WAITAOF", 1, self.replicas, self.patience)
        return ("WAIT", self.replicas, self.patience) if self.replicas else ()


class ConfirmedScript:
    """A Lua script that returns only when its writes are on the required replicas and disks.

    Raises redis-py's errors, StoreUnavailable, StoreError.
    """

    def __init__(self, client: Client, script: str, durability: Durability) -> None:
        self._client = client
        self._script = client.redis.register_script(script)
        self._durability = durability

    def __call__(self, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run the Lua script and return its answer, once its writes are on the required replicas and disks."""
        if not self._durability.command:
            return self._script(keys=keys, args=args)
        answer, confirmed = self._both("EVALSHA", self._script.sha, keys, args)
        if isinstance(answer, redis.NoScriptError):
            answer, confirmed = self._both("EVAL", self._script.script, keys, args)
        for one in (answer, confirmed):
            if isinstance(one, Exception):
                raise one if "WAITAOF" not in str(one) else StoreError(_too_old(self._client, str(one)))
        self._check(confirmed)
        return answer

    def _both(self, verb: str, script: Any, keys: Sequence[str], args: Sequence[Any]) -> list[Any]:

        request = self._client.redis.pipeline(transaction=False)
        request.execute_command(verb, script, len(keys), *keys, *args)  # type: ignore[no-untyped-call]
        request.execute_command(*self._durability.command)  # type: ignore[no-untyped-call]
        return request.execute(raise_on_error=False)

    def _check(self, confirmed: Any) -> None:
        wanted = self._durability
        local, replicas = (int(part) for part in confirmed) if wanted.disk else (1, int(confirmed))
        if local >= 1 and replicas >= wanted.replicas:
            return
        where = "on the master's disk" if local < 1 else f"on {replicas} of {wanted.replicas} replicas"
        raise StoreUnavailable(
            f"redis at {self._client.shown} does not confirm a write: {where} after {wanted.patience} ms"
            " (redis_wait_replicas, redis_wait_aof)"
        )


def trouble_with(client: Client, durability: Durability) -> str | None:
    """Return why this Redis server cannot serve a master: its URL does not say that it is part of a Redis Cluster, or it
    can never give the required durability. None if it can serve.

    Raises StoreUnavailable, StoreError.
    """
    if why := _cluster_trouble(client):
        return why
    if not durability.disk:
        return None
    with client.calling() as server:
        version = str(server.info("server").get("redis_version", "0"))
        kept = server.info("persistence").get("aof_enabled", 0)
        policy = ""
        # A managed Redis may refuse CONFIG.
        with contextlib.suppress(redis.ResponseError):
            policy = str(server.config_get("appendfsync").get("appendfsync", ""))
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < _WAITAOF_SINCE:
        return _too_old(client, f"it is {version}")
    if not kept:
        return f"redis_wait_aof: redis at {client.shown} keeps no append-only file (appendonly no)"
    if policy == "no":
        return (
            f"redis_wait_aof: redis at {client.shown} never syncs its append-only file (appendfsync no):"
            " nothing would be acknowledged. Let it do so (appendfsync everysec or always)"
        )
    return None


def _cluster_trouble(client: Client) -> str | None:
    with client.calling() as server:
        try:
            enabled = server.info("cluster").get("cluster_enabled", 0)
        except redis.ResponseError:
            # A server, or a user's ACL, that does not tell: the first command that crosses slots does.
            return None
    if not enabled or client.in_cluster:
        return None
    return (
        f"redis at {client.shown} is part of a Redis Cluster: name some of its nodes, as in"
        " redis_url: redis+cluster://HOST:PORT,HOST:PORT"
    )


def _too_old(client: Client, why: str) -> str:
    return (
        f"redis_wait_aof: redis at {client.shown} cannot wait for its disk: {why}."
        " WAITAOF came with Redis 7.2; let Redis sync each write instead (appendfsync always) and leave redis_wait_aof out"
    )
