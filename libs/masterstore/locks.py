"""Locks with a time to live and a fencing token, for work that only one of several replicas may do."""

from __future__ import annotations

from masterstore import keys, values
from masterstore.client import Client

#: KEYS: lock, fences. ARGV: owner, ttl ms, name. Returns the token, or nil if another owner holds the lock.
_ACQUIRE = """
local held = redis.call('GET', KEYS[1])
if held then
  local owner, token = string.match(held, '^(.*) (%d+)$')
  if owner ~= ARGV[1] then return nil end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return tonumber(token)
end
local token = redis.call('HINCRBY', KEYS[2], ARGV[3], 1)
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. token, 'PX', ARGV[2])
return token
"""

#: KEYS: lock. ARGV: owner.
_RELEASE = """
local held = redis.call('GET', KEYS[1])
if held and string.match(held, '^(.*) %d+$') == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""


class Locks:
    """Named locks in Redis that expire. All operations raise StoreUnavailable if Redis does not answer."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._acquire = client.redis.register_script(_ACQUIRE)
        self._release = client.redis.register_script(_RELEASE)

    def acquire(self, name: str, owner: str, ttl_ms: int) -> int | None:
        """Acquire the lock ``name`` for ``owner``, or renew it, for ``ttl_ms`` milliseconds.

        Return its fencing token, a number that grows with each new owner; None while another owner has the lock.
        """
        with self._client.calling():
            token = self._acquire(keys=[keys.lock(name), keys.FENCES], args=[owner, ttl_ms, name])
        return None if token is None else values.number(token, keys.FENCES)

    def newest(self, name: str) -> int:
        """Return the fencing token of a lock's newest owner; an owner with another token has lost the lock."""
        return values.number(self._client.call("hget", keys.FENCES, name), keys.FENCES)

    def release(self, name: str, owner: str) -> bool:
        """Release the lock ``name``. Return True if ``owner`` had it; otherwise nothing changes and False is
        returned.
        """
        with self._client.calling():
            return bool(self._release(keys=[keys.lock(name)], args=[owner]))
