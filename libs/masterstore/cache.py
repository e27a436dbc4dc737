"""Data that the master keeps in Redis beside jobs and keys.

``Cache``: grains and pillar of minions for targeting, ``pillar_cache``, the mine. ``Presence``: the time of each
minion's last message. ``Banks``: data that runners store by name, as in Salt's cache (Salt: salt/cache).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgpack

from masterstore import keys, values
from masterstore.cached_hash import CachedHash
from masterstore.client import Client, text
from masterstore.errors import StoreCorrupt, TooLarge
from masterstore.record_mac import MINE, Records

#: KEYS: mine_functions, mine... ARGV: minion, the function of each mine. Returns the number of mine functions that the minion had.
_FORGET = """
local gone = 0
for i = 2, #KEYS do
  gone = gone + redis.call('HDEL', KEYS[i], ARGV[1])
  if redis.call('EXISTS', KEYS[i]) == 0 then redis.call('SREM', KEYS[1], ARGV[i]) end
end
return gone
"""


#: KEYS: mine_functions. ARGV: minion, 1 to replace the whole mine, most bytes, most functions (0: any), then functions and values.
#: Returns {0, 0}, or the size and number of functions of the mine that would be too large.
_MINE_SET = f"""
local minion, most, functions = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local given, gone, size, count = {{}}, {{}}, 0, 0
for i = 5, #ARGV, 2 do
  given[ARGV[i]] = true
  size, count = size + #ARGV[i] + #ARGV[i + 1], count + 1
end
if most > 0 or functions > 0 or ARGV[2] == '1' then
  for _, fun in ipairs(redis.call('SMEMBERS', KEYS[1])) do
    local bytes = not given[fun] and redis.pcall('HSTRLEN', '{keys.MINE}' .. fun, minion)
    -- Another minion's key may be malformed.
    if type(bytes) == 'number' and bytes > 0 then
      if ARGV[2] == '1' then gone[#gone + 1] = fun else size, count = size + #fun + bytes, count + 1 end
    end
  end
end
if most > 0 and size > most or functions > 0 and count > functions then return {{size, count}} end
for _, fun in ipairs(gone) do
  redis.call('HDEL', '{keys.MINE}' .. fun, minion)
  if redis.call('EXISTS', '{keys.MINE}' .. fun) == 0 then redis.call('SREM', KEYS[1], fun) end
end
for i = 5, #ARGV, 2 do
  redis.call('HSET', '{keys.MINE}' .. ARGV[i], minion, ARGV[i + 1])
  redis.call('SADD', KEYS[1], ARGV[i])
end
return {{0, 0}}
"""

#: Most environments of one minion in ``pillar_cache``. The minion chooses their names.
_PILLARS_KEPT = 64

#: KEYS: pillar_cache. ARGV: environments, sealed pillar, seconds. The first environment sets the TTL of all, so that none is
#: older than allowed.
_KEEP_PILLAR = f"""
if redis.call('HLEN', KEYS[1]) >= {_PILLARS_KEPT} and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if redis.call('TTL', KEYS[1]) < 0 then redis.call('EXPIRE', KEYS[1], ARGV[3]) end
"""


#: Code of the msgpack extension type of a mine value with its authentication code: 64 bytes of code, then msgpack of the value.
_SIGNED, _CODE_BYTES = 77, 64


class Cache:
    """The minions' grains, pillar and mine in Redis. All operations raise StoreUnavailable if Redis does not answer."""

    def __init__(self, client: Client, records: Records = Records()) -> None:  # noqa: B008 - it never changes
        """Create the operations on minions' data. ``records``: makes and checks authentication codes of mine data."""
        self._client = client
        self._records = records
        self._forget = client.redis.register_script(_FORGET)
        self._grains = CachedHash(client, keys.GRAINS, _grains_of)
        self._pillars = CachedHash(client, keys.PILLAR, lambda minion, sealed: sealed)
        self._mine_set = client.redis.register_script(_MINE_SET)
        self._keep_pillar = client.redis.register_script(_KEEP_PILLAR)

    def set_grains(self, minion: str, grains: Mapping[str, object], *, most: int = 0) -> None:
        """Store a minion's grains. Raises TooLarge above ``most`` bytes (0: any size)."""
        packed = _pack(dict(grains))
        if 0 < most < len(packed):
            raise TooLarge(f"grains of {len(packed)} bytes, more than {most}")
        self._grains.set(minion, packed)

    def grains(self, minion: str) -> dict[str, object] | None:
        """Return the stored grains of a minion; None if it has not sent any."""
        return self.grains_of([minion]).get(minion)

    def grains_of(self, minions: Sequence[str]) -> dict[str, dict[str, object]]:
        """Return {minion id: grains} of the given minions that have sent grains."""
        return {name: _grains_of(name, data) for name, data in self._grains.some(minions).items()}

    def all_grains(self) -> Mapping[str, dict[str, object]]:
        """Return {minion id: grains} of all minions. The maps are shared: do not change them."""
        return self._grains.all()

    @property
    def copied_bytes(self) -> int:
        """Number of bytes in Redis of the grains and pillars of which this process has a copy."""
        return self._grains.copied_bytes + self._pillars.copied_bytes

    def release_copies(self, before: float) -> bool:
        """Drop the copies of grains and pillars that were last used before the monotonic time ``before``; they are read again
        when they are needed. Return whether there was one to drop.
        """
        return any([self._grains.release(before), self._pillars.release(before)])

    def set_pillar(self, minion: str, sealed: bytes) -> None:
        """Store a minion's pillar, which the caller has encrypted, for targeting by pillar. It replaces the earlier
        one.
        """
        self._pillars.set(minion, sealed)

    def pillars_of(self, minions: Sequence[str]) -> dict[str, bytes]:
        """Return {minion id: encrypted pillar} of the given minions."""
        return self._pillars.some(minions)

    def all_pillars(self) -> Mapping[str, bytes]:
        """Return {minion id: encrypted pillar} of all minions. The map is shared: do not change it."""
        return self._pillars.all()

    def keep_pillar(self, minion: str, environments: str, sealed: bytes, seconds: int) -> None:
        """Store a minion's encrypted pillar in ``pillar_cache``.

        ``environments``: saltenv and pillarenv of this pillar, with a space between; a minion has one entry for
        each pair. All entries of a minion expire ``seconds`` after the first one was stored.
        """
        with self._client.calling():
            self._keep_pillar(keys=[keys.pillar_cache(minion)], args=[environments, sealed, seconds])

    def kept_pillar(self, minion: str) -> dict[str, bytes]:
        """Return a minion's entries in ``pillar_cache`` as {"SALTENV PILLARENV": encrypted pillar}; {} if there are
        none.
        """
        kept = self._client.call("hgetall", keys.pillar_cache(minion))
        return {text(environments): sealed for environments, sealed in kept.items()}

    def drop_pillar(self, minion: str) -> None:
        """Delete a minion's entries in ``pillar_cache``."""
        self._client.call("delete", keys.pillar_cache(minion))

    def mine_set(
        self, minion: str, data: Mapping[str, object], *, most: int = 0, most_functions: int = 0, clear: bool = False
    ) -> None:
        """Store values of a minion's mine, given as {function: value}. Other functions keep their values.

        ``clear``: the values replace the whole mine.

        Raises TooLarge, and changes nothing, if the whole mine of the minion would have more than ``most`` bytes or
        ``most_functions`` functions (0: any number).
        """
        arguments: list[str | int | bytes] = [minion, int(clear), most, most_functions]
        for fun, value in data.items():
            arguments += [str(fun), self._signed(minion, str(fun), _pack(value))]
        with self._client.calling():
            size, count = self._mine_set(keys=[keys.MINE_FUNCTIONS], args=arguments)
        if 0 < most < size:
            raise TooLarge(f"a mine of {size} bytes, more than {most}")
        if count:
            raise TooLarge(f"a mine of {count} functions, more than {most_functions}")

    def mine_get(self, minions: Iterable[str], fun: str) -> dict[str, object]:
        """Return {minion id: value} of the given minions that offer the function.

        A value that no worker of this master stored is left out and reported to ``Faults``, which logs it.
        """
        names, found = list(minions), {}
        packed = self._client.call("hmget", keys.mine(fun), names) if names else []
        for name, data in zip(names, packed, strict=True):
            if data is not None:
                value = unpack(data, keys.mine(fun))
                try:
                    found[name] = self._proven(name, fun, value)
                except StoreCorrupt as error:
                    self._client.faults.report(error.key, str(error))
        return found

    def _signed(self, minion: str, fun: str, packed: bytes) -> bytes:
        """Return the bytes that Redis stores for packed mine data: with an authentication code if this process has the key."""
        code = self._records.code(MINE, _mine_record(minion, fun, packed))
        signed: bytes = msgpack.packb(msgpack.ExtType(_SIGNED, code + packed)) if code else packed
        return signed

    def _proven(self, minion: str, fun: str, value: object) -> object:
        """Return the mine data in a value from Redis. Raises StoreCorrupt unless its authentication code proves that a
        worker of this master stored it.
        """
        where = f"{keys.mine(fun)}[{minion}]"
        if not isinstance(value, msgpack.ExtType) or value.code != _SIGNED:
            self._records.check(MINE, b"", b"", where)
            return value
        code, packed = value.data[:_CODE_BYTES], value.data[_CODE_BYTES:]
        self._records.check(MINE, _mine_record(minion, fun, packed), code, where)
        return unpack(packed, keys.mine(fun))

    def mine_delete(self, minion: str, fun: str) -> bool:
        """Delete the value of one function from a minion's mine. Return True if there was one."""
        return bool(self._take_back(minion, [fun]))

    def mine_flush(self, minion: str) -> None:
        """Delete all values of a minion's mine."""
        self._take_back(minion, [text(fun) for fun in self._client.call("smembers", keys.MINE_FUNCTIONS)])

    def mine_of(self, minion: str) -> dict[str, object]:
        """Return {function: value} of a minion's mine."""
        offered = sorted(text(fun) for fun in self._client.call("smembers", keys.MINE_FUNCTIONS))
        found = {fun: self.mine_get([minion], fun) for fun in offered}
        return {fun: values[minion] for fun, values in found.items() if minion in values}

    def forget(self, minion: str) -> None:
        """Delete a minion's grains, pillar and mine."""
        self.forget_grains(minion)
        self.forget_pillar(minion)
        self.mine_flush(minion)

    def forget_grains(self, minion: str) -> None:
        """Delete a minion's grains."""
        self._grains.forget(minion)

    def forget_pillar(self, minion: str) -> None:
        """Delete a minion's stored pillar and all its entries in ``pillar_cache``."""
        self._pillars.forget(minion)
        self.drop_pillar(minion)

    def _take_back(self, minion: str, funs: Sequence[str]) -> int:
        names = [keys.MINE_FUNCTIONS, *(keys.mine(fun) for fun in funs)]
        with self._client.calling():
            return int(self._forget(keys=names, args=[minion, *funs]))


def _mine_record(minion: str, fun: str, packed: bytes) -> bytes:
    """Return the bytes over which the authentication code of mine data is made: minion id, function and data."""
    return f"{minion}\0{fun}\0".encode("utf-8", "surrogateescape") + packed


def _grains_of(minion: str, packed: bytes) -> dict[str, object]:
    decoded = unpack(packed, keys.GRAINS)
    if not isinstance(decoded, dict):
        raise StoreCorrupt(keys.GRAINS, f"the grains of {minion} are a {type(decoded).__name__}, not a map")
    return decoded


def _pack(value: object) -> bytes:
    packed: bytes = msgpack.packb(value, default=str, unicode_errors="surrogatepass")
    return packed


def unpack(data: bytes, key: str) -> object:
    """Return the value of msgpack bytes from Redis. Raises StoreCorrupt, which names the Redis key ``key``, if they
    are not msgpack.
    """
    try:
        return msgpack.unpackb(data, strict_map_key=False, unicode_errors="surrogatepass")
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise StoreCorrupt(key, f"not msgpack: {str(error) or type(error).__name__}") from error


class Banks:
    """Data that runners store by name (bank and key) in Redis. The bank ``a/b`` is inside the bank ``a``.

    All operations raise StoreUnavailable if Redis does not answer.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def store(self, bank: str, key: str, data: object) -> None:
        """Store a runner's data under a key of a bank."""
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=True)
            pipe.hset(keys.bank(bank), key, _pack(data))
            pipe.sadd(keys.BANKS, bank)
            pipe.execute()

    def fetch(self, bank: str, key: str) -> object:
        """Return a runner's data under a key of a bank; {} if there is none. Raises StoreCorrupt."""
        packed = self._client.call("hget", keys.bank(bank), key)
        return {} if packed is None else unpack(packed, keys.bank(bank))

    def names(self, bank: str) -> list[str]:
        """Return the keys of a bank and the names of banks inside it, sorted."""
        found = {text(key) for key in self._client.call("hkeys", keys.bank(bank))}
        return sorted(found | {name.split("/")[0] for name in self._inside(bank)})

    def flush(self, bank: str, key: str | None = None) -> bool:
        """Delete a key, or without one the bank with all banks inside it. Return False if there was nothing."""
        if key is not None:
            return bool(self._client.call("hdel", keys.bank(bank), key))
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=True)
            for name in (bank, *(f"{bank}/{inner}" for inner in self._inside(bank))):
                pipe.delete(keys.bank(name))
                pipe.srem(keys.BANKS, name)
            return any(pipe.execute())

    def _inside(self, bank: str) -> list[str]:
        names = [text(name) for name in self._client.call("smembers", keys.BANKS)]
        return [name.removeprefix(f"{bank}/") for name in names if name.startswith(f"{bank}/")]


#: A function in Lua, for scripts that record a message of a minion: keys seen, jobs that wait for the minion, minions that sign;
#: then the minion and the time in ms. It returns whether jobs wait for a stock minion.
ARRIVED = """
local function arrived(seen, waiting, signers, minion, ms)
  redis.call('ZADD', seen, 'GT', ms, minion)
  return redis.call('EXISTS', waiting) == 1 and redis.call('SISMEMBER', signers, minion) == 0
end
"""


#: KEYS: seen, the minion's waiting jobs, minions that sign. ARGV: minion, now ms. Returns 1 if waiting jobs are to be sent to it.
_ARRIVED = f"""
{ARRIVED}
return arrived(KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2])
"""


#: KEYS: seen, left. ARGV: minion, ms at which its last connection ended.
_LEFT = """
local seen = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not seen or tonumber(seen) > tonumber(ARGV[2]) then return end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[2], seen, ARGV[1])
"""

#: KEYS: seen, minions that sign. ARGV: ms, minions.
_CONNECTED = """
for i = 2, #ARGV do
  if redis.call('SISMEMBER', KEYS[2], ARGV[i]) == 0 then redis.call('ZADD', KEYS[1], 'GT', ARGV[1], ARGV[i]) end
end
"""


class Presence:
    """The times at which minions were last in touch with the master, in Redis: the time of the last message, or of the
    last report of an open connection.

    A minion whose last connection has ended counts as absent at once: its time is then under another key of Redis.

    All operations raise StoreUnavailable if Redis does not answer.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._arrived = client.redis.register_script(_ARRIVED)
        self._left = client.redis.register_script(_LEFT)
        self._connected = client.redis.register_script(_CONNECTED)

    def seen(self, minion: str, now_ms: int) -> None:
        """Record that the master got a message from a minion. ``now_ms``: milliseconds since 1970."""
        self._client.call("zadd", keys.SEEN, {minion: now_ms}, gt=True)

    def arrived(self, minion: str, now_ms: int) -> bool:
        """Record that the master got a message from a minion at ``now_ms``. Return True if the caller must publish
        waiting jobs again.

        That is so if jobs wait for the minion and it is a stock minion, because a stock minion cannot ask for
        waiting jobs itself.
        """
        with self._client.calling():
            return bool(self._arrived(keys=[keys.SEEN, keys.waiting_of(minion), keys.SIGNERS], args=[minion, now_ms]))

    def left(self, minion: str, at_ms: int) -> None:
        """Record that the last connection of a minion ended at ``at_ms`` (milliseconds since 1970). The minion counts
        as absent, unless it sent a message after that time.
        """
        with self._client.calling():
            self._left(keys=[keys.SEEN, keys.LEFT], args=[minion, at_ms])

    def connected(self, minions: Sequence[str], now_ms: int) -> None:
        """Record that the stock minions among ``minions`` had an open connection at ``now_ms`` (milliseconds since
        1970). For their presence this counts as a message.
        """
        if minions:
            with self._client.calling():
                self._connected(keys=[keys.SEEN, keys.SIGNERS], args=[now_ms, *minions])

    def forget(self, minion: str) -> None:
        """Delete the time of a minion's last message: the minion no longer exists."""
        self._client.call("zrem", keys.SEEN, minion)
        self._client.call("zrem", keys.LEFT, minion)

    def last_seen(self, minions: Sequence[str]) -> dict[str, int]:
        """Map of minion id to the time of its last message (milliseconds since 1970), without minions that never sent
        one.
        """
        found: dict[str, int] = {}
        for key in (keys.LEFT, keys.SEEN) if minions else ():
            scores = zip(minions, self._client.call("zmscore", key, list(minions)), strict=True)
            found |= {name: values.number(score, key) for name, score in scores if score is not None}
        return found

    def present(self, since_ms: int) -> set[str]:
        """Return the ids of the minions that sent a message since ``since_ms`` (milliseconds since 1970)."""
        return {text(name) for name in self._client.call("zrangebyscore", keys.SEEN, since_ms, "+inf")}
