"""Public keys of minions, each in one state (accepted, pending, rejected or denied). Source:
docs/protocol.md#sign-in-decisions
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from masterstore import keys, values
from masterstore.client import Client, text
from masterstore.errors import StoreCorrupt
from masterstore.record_mac import ACCEPTED_KEY, Records, check_accepted, key_record

STATES = ("accepted", "pending", "rejected", "denied")

#: Seconds for which a worker uses its copy of accepted keys before it checks the version again.
_BELIEVED = 0.5

#: Index of the first state's hash among the KEYS of _MOVE.
_FIRST_STATE = 4

#: KEYS: version, acceptances, codes, the states' hashes, that of accepted keys first and that of denied keys last. ARGV: minion,
#: PEM, index of the new state's hash, code of the accepted key. A key that is accepted and was not gets a new number.
_MOVE = """
local new = tonumber(ARGV[3])
local again = redis.call('HGET', KEYS[4], ARGV[1]) == ARGV[2]
for i = 4, #KEYS - 1 do
  if i ~= new then redis.call('HDEL', KEYS[i], ARGV[1]) end
end
if redis.call('HGET', KEYS[#KEYS], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[#KEYS], ARGV[1]) end
redis.call('HSET', KEYS[new], ARGV[1], ARGV[2])
local version = redis.call('INCR', KEYS[1])
if new == 4 then
  redis.call('HSET', KEYS[3], ARGV[1], ARGV[4])
else
  redis.call('HDEL', KEYS[3], ARGV[1])
end
if new ~= 4 then
  redis.call('HDEL', KEYS[2], ARGV[1])
elseif not again then
  redis.call('HSET', KEYS[2], ARGV[1], version)
end
return version
"""

#: KEYS: version, acceptances, accepted keys, clocks. ARGV: minion.
_RENEW = """
if redis.call('HEXISTS', KEYS[3], ARGV[1]) == 0 then return 0 end
redis.call('HDEL', KEYS[4], ARGV[1])
return redis.call('HSET', KEYS[2], ARGV[1], redis.call('INCR', KEYS[1]))
"""


class MinionKeys:
    """The minions' public keys in Redis, each in one state (accepted, pending, rejected or denied). All operations
    raise StoreUnavailable if Redis does not answer.
    """

    def __init__(self, client: Client, records: Records = Records()) -> None:  # noqa: B008 - it never changes
        """Create the operations on minion keys. ``records``: makes and checks the authentication codes of accepted
        keys.
        """
        self._client = client
        self._records = records
        self._move = client.redis.register_script(_MOVE)
        self._renew = client.redis.register_script(_RENEW)
        #: Accepted keys, each with the number of its acceptance, as of ``_version``; a worker asks for one at every request.
        self._accepted: dict[str, tuple[str, int]] = {}
        self._version: bytes | None = None
        self._looked = 0.0
        #: Ids of accepted keys as of a version.
        self._ids: tuple[bytes | None, tuple[str, ...]] | None = None

    def state_of(self, minion: str) -> tuple[str, str] | None:
        """Return (state, PEM) of a minion's public key, for example ("accepted", ...); None if the master has none.

        A denied key is returned only if the id has no other key.
        """
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            for state in STATES:
                pipe.hget(keys.minion_keys(state), minion)
            found = pipe.execute()
        for state, pem in zip(STATES, found, strict=True):
            if pem is not None:
                return state, text(pem)
        return None

    def store(self, minion: str, pem: str, state: str) -> None:
        """Store a minion's public key in a state and remove it from every other state.

        A denied key is kept beside the minion's other key, until it is moved to another state.
        """
        if state == "denied":
            with self._client.calling() as server:
                server.hset(keys.minion_keys(state), minion, pem)
                server.incr(keys.KEYS_VERSION)
            return
        self._moved(minion, pem, _FIRST_STATE + STATES.index(state))

    def delete(self, minion: str, state: str = "") -> None:
        """Delete the minion's key in one state, or in all states."""
        with self._client.calling() as server:
            pipe = server.pipeline()
            for name in [state] if state else STATES:
                pipe.hdel(keys.minion_keys(name), minion)
            if state in ("", "accepted"):
                pipe.hdel(keys.ACCEPTANCES, minion)
                # The next machine of this name may have another clock.
                pipe.hdel(keys.CLOCKS, minion)
                pipe.hdel(keys.KEY_CODES, minion)
            pipe.incr(keys.KEYS_VERSION)
            pipe.execute()
        self._forget(minion)

    def pems(self, state: str, minions: Sequence[str]) -> dict[str, str]:
        """Return {minion id: public key as PEM text} of the given minions, without those whose key is not in the state
        ``state`` (accepted, pending, rejected or denied).
        """
        found = self._client.call("hmget", keys.minion_keys(state), list(minions)) if minions else []
        return {minion: text(pem) for minion, pem in zip(minions, found, strict=True) if pem is not None}

    def ids(self, state: str) -> list[str]:
        """Return the sorted ids of the minions whose key is in this state (accepted, pending, rejected or denied)."""
        return sorted(text(name) for name in self._client.call("hkeys", keys.minion_keys(state)))

    def accepted(self) -> tuple[str, ...]:
        """Return the sorted ids of the minions whose key is accepted. They are read from Redis again only after a
        change of any key.
        """
        version = self._client.call("get", keys.KEYS_VERSION)
        if self._ids is None or version is None or self._ids[0] != version:
            self._ids = (version, tuple(self.ids("accepted")))
        return self._ids[1]

    def all(self) -> dict[str, list[str]]:
        """Map of key state (accepted, pending, rejected, denied) to the sorted ids of the minions whose public key is
        in that state.
        """
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            for state in STATES:
                pipe.hkeys(keys.minion_keys(state))
            found = pipe.execute()
        return {state: sorted(text(name) for name in names) for state, names in zip(STATES, found, strict=True)}

    def pem(self, minion: str) -> str | None:
        """Return the PEM of a minion's accepted public key; None without one.

        A change by another worker is noticed within half a second.
        """
        found = self._known(minion)
        return None if found is None else found[0]

    def acceptance(self, minion: str) -> int:
        """Return the number of the last acceptance of a minion's key. Each acceptance of any key gets a larger
        number than those before.

        0 without an accepted key, and for a key that an older release accepted.
        """
        found = self._known(minion)
        return 0 if found is None else found[1]

    def renew(self, minion: str) -> None:
        """Give a minion's accepted key a new acceptance number, so that its sessions end and it signs in again.
        Without such a key do nothing.
        """
        names = [keys.KEYS_VERSION, keys.ACCEPTANCES, keys.minion_keys("accepted"), keys.CLOCKS]
        with self._client.calling():
            self._renew(keys=names, args=[minion])
        self._forget(minion)

    def sign_all(self) -> int:
        """Add authentication codes to the accepted keys that have none, as an older release left them; return the
        number of these keys.

        Call it only for an upgrade: a code says that this master accepted the key.
        """
        found = self._client.call("hgetall", keys.minion_keys("accepted"))
        known = set(self._client.call("hkeys", keys.KEY_CODES))
        codes = {
            name: self._records.code(ACCEPTED_KEY, key_record(text(name), text(pem)))
            for name, pem in found.items()
            if name not in known
        }
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            for name, code in codes.items():
                pipe.hsetnx(keys.KEY_CODES, name, code)
            return sum(map(int, pipe.execute()))

    def outdated(self, minion: str) -> bool:
        """Return True if a minion's key was accepted again since this worker read it. The next call of ``pem`` reads it
        again.
        """
        known = self._accepted.get(minion)
        if (
            known is None
            or values.number(self._client.call("hget", keys.ACCEPTANCES, minion), keys.ACCEPTANCES) == known[1]
        ):
            return False
        self._forget(minion)
        return True

    def _known(self, minion: str) -> tuple[str, int] | None:
        now = time.monotonic()
        if now - self._looked > _BELIEVED:
            version = self._client.call("get", keys.KEYS_VERSION)
            if version != self._version:
                self._accepted.clear()
                self._version = version
            self._looked = now
        if minion not in self._accepted:
            with self._client.calling() as server:
                pipe = server.pipeline()
                pipe.hget(keys.minion_keys("accepted"), minion)
                pipe.hget(keys.ACCEPTANCES, minion)
                pipe.hget(keys.KEY_CODES, minion)
                found, number, code = pipe.execute()
            if found is None:
                # A missing key is not cached: unknown senders choose any id, and a newly accepted minion must not wait.
                return None
            try:
                check_accepted(self._records, minion, text(found), code)
            except StoreCorrupt as error:
                self._client.faults.report(error.key, str(error))
                return None
            self._accepted[minion] = (text(found), values.number(number, keys.ACCEPTANCES))
        return self._accepted[minion]

    def _moved(self, minion: str, pem: str, index: int) -> None:
        names = [keys.KEYS_VERSION, keys.ACCEPTANCES, keys.KEY_CODES, *map(keys.minion_keys, STATES)]
        with self._client.calling():
            self._move(keys=names, args=[minion, pem, index, self._records.code(ACCEPTED_KEY, key_record(minion, pem))])
        self._forget(minion)

    def _forget(self, minion: str) -> None:
        self._accepted.pop(minion, None)
        self._looked = 0.0
