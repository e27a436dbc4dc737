"""Epochs of the keys that all workers derive from the master's secret: Redis holds the numbers and never a key."""

from __future__ import annotations

from dataclasses import dataclass

from masterstore import keys
from masterstore.client import Client
from masterstore.errors import StoreCorrupt

#: KEYS: epochs. Creates what is missing, with Redis's own clock; answers all four numbers.
_CURRENT = """
local now = redis.call('TIME')[1]
for _, name in ipairs({'aes', 'session'}) do
  redis.call('HSETNX', KEYS[1], name, 1)
  redis.call('HSETNX', KEYS[1], name .. '_since', now)
end
return redis.call('HMGET', KEYS[1], 'aes', 'aes_since', 'session', 'session_since')
"""

#: KEYS: epochs. ARGV: name.
_ROTATE = """
redis.call('HSETNX', KEYS[1], ARGV[1], 1)
redis.call('HSET', KEYS[1], ARGV[1] .. '_since', redis.call('TIME')[1])
return redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
"""


@dataclass(frozen=True, slots=True)
class Epochs:
    """Numbers of the epochs in force, and when they began (seconds since 1970)."""

    aes: int
    aes_since: float
    session: int
    session_since: float


class EpochStore:
    """Verbs on epochs. All raise StoreUnavailable when Redis is away."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._current = client.redis.register_script(_CURRENT)
        self._rotate = client.redis.register_script(_ROTATE)

    def current(self) -> Epochs:
        """The epochs in force; the first call of all begins them. Raises StoreCorrupt."""
        with self._client.calling():
            aes, aes_since, session, session_since = self._current(keys=[keys.EPOCHS])
        try:
            return Epochs(int(aes), float(aes_since), int(session), float(session_since))
        except ValueError as error:
            raise StoreCorrupt(keys.EPOCHS, f"an epoch that is no number: {error}") from error

    def rotate_aes(self) -> int:
        """Begins a new epoch of the publication key; returns its number."""
        with self._client.calling():
            return int(self._rotate(keys=[keys.EPOCHS], args=["aes"]))

    def rotate_session(self) -> int:
        """Begins a new epoch of session keys; returns its number."""
        with self._client.calling():
            return int(self._rotate(keys=[keys.EPOCHS], args=["session"]))
