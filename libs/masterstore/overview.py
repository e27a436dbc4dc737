"""Figures about the whole master for an overview: chosen grains of all minions, Redis itself and its clients, the lengths of
its streams, and what reqservers report about their queues.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from masterstore import keys, values
from masterstore.cache import unpack
from masterstore.cached_hash import CachedHash
from masterstore.client import Client, text
from masterstore.errors import StoreError, StoreUnavailable

#: Seconds after which a reqserver that reports nothing is left out.
_REPORT_TTL = 60

#: Names of Redis' INFO that the overview shows.
_INFO = (
    *(
        "redis_version",
        "role",
        "uptime_in_seconds",
        "connected_clients",
        "used_memory",
        "maxmemory",
        "total_system_memory",
    ),
    *(
        "instantaneous_ops_per_sec",
        "aof_enabled",
        "aof_last_write_status",
        "rdb_last_bgsave_status",
        "connected_slaves",
    ),
    *("mem_fragmentation_ratio", "evicted_keys"),
)


@dataclass(frozen=True, slots=True)
class MinionFacts:
    """The grains of one minion that lists of minions show. Texts are empty and numbers 0 if the grain is missing."""

    os: str
    release: str
    arch: str
    virtual: str
    #: Release of Salt that the minion has, or that Saltern's minion is compatible with.
    salt: str
    #: First address that is not on the loopback.
    address: str
    cpus: int
    #: Memory in MiB.
    memory: int


class Overview:
    """Reads figures about the whole master from Redis. All operations raise StoreUnavailable if Redis does not answer."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # Whole grains would take a hundred times the memory.
        self._facts = CachedHash(client, keys.GRAINS, _facts_of)

    def facts(self) -> Mapping[str, MinionFacts]:
        """Return {minion id: MinionFacts} of all minions that have sent grains. The map is shared: do not change it."""
        return self._facts.all()

    def saltern_minions(self) -> set[str]:
        """Return the ids of the minions that report the progress of their jobs, as Saltern's do and stock minions do not."""
        return {text(name) for name in self._client.call("smembers", keys.SIGNERS)}

    def last_seen(self) -> dict[str, int]:
        """Return {minion id: time of its last message, milliseconds since 1970} of all minions."""
        found: dict[str, int] = {}
        for key in (keys.LEFT, keys.SEEN):
            rows = self._client.call("zrange", key, 0, -1, withscores=True)
            found |= {text(name): int(score) for name, score in rows}
        return found

    def redis(self) -> dict[str, object]:
        """Return the version, memory, clients, load and persistence of the Redis server as {name of INFO: value}, with
        ``keys``: the number of keys.
        """
        found: Mapping[str, object] = self._client.call("info")
        size = self._client.call("dbsize")
        return {name: found[name] for name in _INFO if name in found} | {"keys": int(size)}

    def clients(self) -> list[dict[str, object]]:
        """Return [{name, address, connections, age, idle}]: the programs that are connected to Redis, by the name that
        they give and their host, with the seconds since their oldest connection and their last command. [] if this
        user of Redis may not ask for clients.
        """
        try:
            rows: list[dict[str, str]] = self._client.call("client_list")
        except StoreUnavailable:
            raise
        except StoreError:
            return []
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for row in rows:
            name, address = row.get("name", ""), row.get("addr", "").rpartition(":")[0]
            age, idle = int(row.get("age", 0)), int(row.get("idle", 0))
            entry = found.setdefault(
                (name, address), {"name": name, "address": address, "connections": 0, "age": age, "idle": idle}
            )
            entry["connections"] += 1
            entry["age"], entry["idle"] = max(entry["age"], age), min(entry["idle"], idle)
        return [found[key] for key in sorted(found)]

    def publishers(self) -> dict[str, dict[str, int]]:
        """Return {publisher: {seen, sent}}: the times of its last sign of life and of the last publication that it sent,
        milliseconds since 1970.
        """
        signs = self._client.call("hgetall", keys.PUBLISHER_SIGNS)
        cursors = {text(name): text(at) for name, at in self._client.call("hgetall", keys.CURSORS).items()}
        return {
            text(name): {
                "seen": values.number(at, keys.PUBLISHER_SIGNS),
                "sent": int(cursors.get(text(name), "0").partition("-")[0] or 0),
            }
            for name, at in sorted(signs.items())
        }

    def lengths(self) -> dict[str, int]:
        """Return the numbers of kept publications, kept events, kept jobs, waiting jobs and running runners."""
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            pipe.xlen(keys.PUBLICATIONS)
            pipe.xlen(keys.EVENTS)
            pipe.zcard(keys.JOBS)
            pipe.zcard(keys.WAITING)
            pipe.zcard(keys.RUNNERS)
            found = pipe.execute()
        names = ("publications", "events", "jobs", "waiting_jobs", "runners")
        return dict(zip(names, map(int, found), strict=True))

    def newest_publication(self) -> int:
        """Return the time of the newest publication, milliseconds since 1970; 0 if there is none."""
        rows = self._client.call("xrevrange", keys.PUBLICATIONS, "+", "-", count=1)
        return int(text(rows[0][0]).partition("-")[0]) if rows else 0

    def report_reqserver(self, name: str, figures: Mapping[str, object]) -> None:
        """Store what a reqserver reports about its queues. It is kept for a minute."""
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            pipe.hset(keys.REQSERVERS, name, json.dumps(figures))
            pipe.expire(keys.REQSERVERS, _REPORT_TTL)
            pipe.execute()

    def reqservers(self, now_ms: int) -> dict[str, dict[str, object]]:
        """Return {reqserver: figures} of the reqservers that reported within the last minute."""
        rows = self._client.call("hgetall", keys.REQSERVERS)
        found = {text(name): values.loads_map(data, keys.REQSERVERS) for name, data in sorted(rows.items())}
        return {name: each for name, each in found.items() if _whole(each.get("at")) >= now_ms - _REPORT_TTL * 1000}


def _facts_of(minion: str, packed: bytes) -> MinionFacts:
    grains = unpack(packed, keys.GRAINS)
    if not isinstance(grains, dict):
        grains = {}
    names = {
        name: _text(grains.get(name)) for name in ("os", "osrelease", "osarch", "cpuarch", "virtual", "saltversion")
    }
    return MinionFacts(
        names["os"],
        names["osrelease"],
        names["osarch"] or names["cpuarch"],
        names["virtual"],
        names["saltversion"],
        _address(grains),
        _whole(grains.get("num_cpus")),
        _whole(grains.get("mem_total")),
    )


def _address(grains: Mapping[str, object]) -> str:
    for name in ("fqdn_ip4", "ipv4", "ipv6"):
        listed = grains.get(name)
        for address in listed if isinstance(listed, list) else ():
            if isinstance(address, str) and not address.startswith("127.") and address != "::1":
                return address[:64]
    return ""


def _text(value: object) -> str:
    """Return a grain as text of at most 64 characters; a minion chooses its grains."""
    # Thousands of minions have few different values.
    return sys.intern(str(value)[:64]) if isinstance(value, str | int | float) else ""


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**53 else 0
