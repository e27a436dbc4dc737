"""When the master last got a message from each minion."""

from __future__ import annotations

from collections.abc import Sequence

from masterstore import keys, values
from masterstore.client import Client, text

#: KEYS: seen, the minion's waiting jobs, minions that sign. ARGV: minion, now ms. Returns 1 if waiting jobs are to be sent to it.
_ARRIVED = """
redis.call('ZADD', KEYS[1], 'GT', ARGV[2], ARGV[1])
return redis.call('EXISTS', KEYS[2]) == 1 and redis.call('SISMEMBER', KEYS[3], ARGV[1]) == 0
"""


class Presence:
    """Operations on presence. All raise StoreUnavailable if Redis does not answer."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._arrived = client.redis.register_script(_ARRIVED)

    def seen(self, minion: str, now_ms: int) -> None:
        """Record that a minion sent a message. ``now_ms``: milliseconds since 1970."""
        self._client.call("zadd", keys.SEEN, {minion: now_ms}, gt=True)

    def arrived(self, minion: str, now_ms: int) -> bool:
        """Record that a minion sent a message; return whether jobs wait for it that it cannot ask for itself (a stock
        minion).
        """
        with self._client.calling():
            return bool(self._arrived(keys=[keys.SEEN, keys.waiting_of(minion), keys.SIGNERS], args=[minion, now_ms]))

    def forget(self, minion: str) -> None:
        """Delete a minion that no longer exists."""
        self._client.call("zrem", keys.SEEN, minion)

    def last_seen(self, minions: Sequence[str]) -> dict[str, int]:
        """Return {minion id: milliseconds since 1970} of the given minions that ever sent a message."""
        scores = self._client.call("zmscore", keys.SEEN, list(minions)) if minions else []
        seen = zip(minions, scores, strict=True)
        return {name: values.number(score, keys.SEEN) for name, score in seen if score is not None}

    def present(self, since_ms: int) -> set[str]:
        """Return the ids of minions that sent a message since ``since_ms``."""
        return {text(name) for name in self._client.call("zrangebyscore", keys.SEEN, since_ms, "+inf")}
