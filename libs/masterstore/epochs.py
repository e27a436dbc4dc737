"""Key epochs: numbers that count the generations of the keys that workers derive from the master's secret.

A rotation raises the number, and all derived keys change. Redis stores the numbers, never a key. Source:
docs/protocol.md#key-rotation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from masterstore import keys
from masterstore.client import Client
from masterstore.errors import StoreCorrupt

#: KEYS: epochs. Creates what is missing, with Redis's own clock; returns all four numbers.
CURRENT = """
local names = {'aes', 'aes_since', 'session', 'session_since'}
local found = redis.call('HMGET', KEYS[1], unpack(names))
if not (found[1] and found[2] and found[3] and found[4]) then
  local now = redis.call('TIME')[1]
  for place, name in ipairs(names) do
    redis.call('HSETNX', KEYS[1], name, place % 2 == 1 and 1 or now)
  end
  found = redis.call('HMGET', KEYS[1], unpack(names))
end
return found
"""

#: KEYS: epochs, fences. ARGV: name, lock, token (0: no lock needed). Returns the current number.
_ROTATE = """
if tonumber(ARGV[3]) > 0 and tonumber(redis.call('HGET', KEYS[2], ARGV[2]) or 0) ~= tonumber(ARGV[3]) then
  return tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 1)
end
redis.call('HSETNX', KEYS[1], ARGV[1], 1)
redis.call('HSET', KEYS[1], ARGV[1] .. '_since', redis.call('TIME')[1])
return redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
"""


#: Name of a lock, and the token that its owner got (``Locks.acquire``).
Fence: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Epochs:
    """Current epochs (generation numbers) of publication keys and session keys, and the times, seconds since
    1970, at which they began.
    """

    aes: int
    aes_since: float
    session: int
    session_since: float


def epochs_of(answer: Sequence[bytes]) -> Epochs:
    """Return the Epochs in an answer of the Lua script CURRENT. Raises StoreCorrupt for malformed numbers."""
    try:
        aes, aes_since, session, session_since = answer
        return Epochs(int(aes), float(aes_since), int(session), float(session_since))
    except ValueError as error:
        raise StoreCorrupt(keys.EPOCHS, f"an epoch that is no number: {error}") from error


class EpochStore:
    """Reads and raises the key epochs (generation numbers of derived keys) that Redis stores.

    All operations raise StoreUnavailable if Redis does not answer.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._current = client.redis.register_script(CURRENT)
        self._rotate = client.redis.register_script(_ROTATE)

    def current(self) -> Epochs:
        """Return the current Epochs (generation numbers of publication keys and session keys). The first call ever
        stores the first numbers. Raises StoreCorrupt for malformed numbers.
        """
        with self._client.calling():
            answer = self._current(keys=[keys.EPOCHS])
        return epochs_of(answer)

    def rotate_aes(self, fence: Fence | None = None) -> int:
        """Start a new epoch of the publication key, so that all minions get a new key, and return the epoch's
        number.

        ``fence``: (lock name, fencing token) of the caller. If another owner has the lock now, nothing changes,
        and the current number is returned.
        """
        return self._rotated("aes", fence)

    def rotate_session(self, fence: Fence | None = None) -> int:
        """Start a new epoch of the session keys, so that each minion signs in again, and return the epoch's number.

        ``fence``: (lock name, fencing token) of the caller. If another owner has the lock now, nothing changes,
        and the current number is returned.
        """
        return self._rotated("session", fence)

    def _rotated(self, name: str, fence: Fence | None) -> int:
        lock, token = fence or ("", 0)
        # Only a holder of a lock may use the key of the fences.
        names = [keys.EPOCHS] if fence is None else [keys.EPOCHS, keys.FENCES]
        with self._client.calling():
            return int(self._rotate(keys=names, args=[name, lock, token]))
