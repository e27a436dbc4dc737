"""A Redis hash of minions with a local copy in each worker; a worker reads only the fields that changed since its last
read.

Every change has a number; ``<hash>:changed`` maps each minion to the number of its last change. A worker whose copy is
older than that list, or newer than Redis (after a failover), reads the whole hash again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from masterstore import keys
from masterstore.client import Client, text

Value = TypeVar("Value")

#: Fields read in one call, so that reading tens of thousands does not block Redis.
_BATCH = 500

#: Entries for deleted minions in the list of changes; with more of them the list is started anew.
_SPARE = 1000

#: KEYS: hash, changed, version. ARGV: minion, data (omitted: the minion is deleted), spare.
_CHANGE = """
if ARGV[3] then
  if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[3] then return 0 end
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
elseif redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
  return 0
end
local now = redis.call('HINCRBY', KEYS[3], 'now', 1)
redis.call('ZADD', KEYS[2], now, ARGV[1])
if redis.call('ZCARD', KEYS[2]) > redis.call('HLEN', KEYS[1]) + tonumber(ARGV[2]) then
  redis.call('DEL', KEYS[2])
  redis.call('HSET', KEYS[3], 'base', now)
end
return 1
"""

#: KEYS: changed, version. ARGV: number. Returns the current number, the oldest number to continue from, changed minions.
_NEWS = """
local known = redis.call('HMGET', KEYS[2], 'now', 'base')
return {tonumber(known[1] or 0), tonumber(known[2] or 0), redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], '+inf')}
"""


class CachedHash(Generic[Value]):
    """A Redis hash (minion id to data) with a local copy in this process.

    All operations raise StoreUnavailable if Redis does not answer.
    """

    def __init__(self, client: Client, name: str, read: Callable[[str, bytes], Value]) -> None:
        """Use the Redis hash ``name``. ``read(minion id, data)`` converts data of the hash to the value in the local
        copy; it may raise StoreCorrupt.
        """
        self._client = client
        self._name = name
        self._read = read
        self._change = client.redis.register_script(_CHANGE)
        self._news = client.redis.register_script(_NEWS)
        self._copy: dict[str, Value] = {}
        #: Minion id -> bytes of its data in Redis, for all minions in the copy.
        self._sizes: dict[str, int] = {}
        self._used_at = 0.0
        #: Number of the last change in the copy; -1: no copy yet.
        self._number = -1

    def set(self, minion: str, data: bytes) -> None:
        """Store a minion's data in the Redis hash. If they are new or different, every worker reads them again;
        equal data changes nothing.
        """
        self._changed([minion, _SPARE, data])

    def forget(self, minion: str) -> None:
        """Delete a minion's data from the Redis hash."""
        self._changed([minion, _SPARE])

    def some(self, minions: Sequence[str]) -> dict[str, bytes]:
        """Return {minion id: data} of the given minions that have data, read from Redis."""
        if not minions:
            return {}
        found = self._client.call("hmget", self._name, list(minions))
        return {name: data for name, data in zip(minions, found, strict=True) if data is not None}

    def all(self) -> Mapping[str, Value]:
        """Return {minion id: value} of all minions from the local copy, after reading the changed fields from Redis.

        The values are made by the function ``read``. The map is shared: do not change it.
        """
        with self._client.calling():
            now, base, changed = self._news(
                keys=[keys.changed(self._name), keys.version(self._name)], args=[max(self._number, 0)]
            )
        if self._number < max(base, 0) or now < self._number:
            copy: dict[str, Value] = {}
            sizes: dict[str, int] = {}
            self._load([text(name) for name in self._client.call("hkeys", self._name)], copy, sizes)
            self._copy, self._sizes = copy, sizes
        elif changed:
            self._load([text(name) for name in changed], self._copy, self._sizes)
        self._number, self._used_at = now, time.monotonic()
        return self._copy

    @property
    def copied_bytes(self) -> int:
        """Return the size in bytes of the local copy's data in Redis; as Python objects it takes several times as much."""
        # A list first: another thread may ask while the copy is read.
        return sum(list(self._sizes.values()))

    def release(self, before: float) -> bool:
        """Drop the local copy if ``all`` was last called before the monotonic time ``before``; the next call reads it again.
        Return whether there was one to drop.
        """
        if self._number < 0 or self._used_at >= before:
            return False
        self._copy, self._sizes, self._number = {}, {}, -1
        return True

    def _load(self, minions: Sequence[str], copy: dict[str, Value], sizes: dict[str, int]) -> None:
        for at in range(0, len(minions), _BATCH):
            batch = minions[at : at + _BATCH]
            found = self.some(batch)
            for minion in batch:
                if minion in found:
                    copy[minion] = self._read(minion, found[minion])
                    sizes[minion] = len(found[minion])
                else:
                    copy.pop(minion, None)
                    sizes.pop(minion, None)

    def _changed(self, arguments: list[object]) -> None:
        with self._client.calling():
            self._change(keys=[self._name, keys.changed(self._name), keys.version(self._name)], args=arguments)
