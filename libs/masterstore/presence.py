"""When the master last heard of each minion."""

from __future__ import annotations

from collections.abc import Sequence

from masterstore import keys, values
from masterstore.client import Client, text

#: KEYS: seen, the minion's waiting jobs, minions that sign. ARGV: minion, now ms. Answers whether it is to be sent what waits.
_ARRIVED = """
redis.call('ZADD', KEYS[1], 'GT', ARGV[2], ARGV[1])
return redis.call('EXISTS', KEYS[2]) == 1 and redis.call('SISMEMBER', KEYS[3], ARGV[1]) == 0
"""


class Presence:
    """Verbs on presence. All raise StoreUnavailable when Redis is away."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._arrived = client.redis.register_script(_ARRIVED)

    def seen(self, minion: str, now_ms: int) -> None:
        """A minion spoke."""
        self._client.call("zadd", keys.SEEN, {minion: now_ms}, gt=True)

    def arrived(self, minion: str, now_ms: int) -> bool:
        """A minion spoke; in the same round trip whether jobs wait for it, and it is one that cannot ask for them."""
        with self._client.calling():
            return bool(self._arrived(keys=[keys.SEEN, keys.waiting_of(minion), keys.SIGNERS], args=[minion, now_ms]))

    def forget(self, minion: str) -> None:
        """There is no such minion any more."""
        self._client.call("zrem", keys.SEEN, minion)

    def last_seen(self, minions: Sequence[str]) -> dict[str, int]:
        """{minion: milliseconds since 1970} of those that ever spoke."""
        scores = self._client.call("zmscore", keys.SEEN, list(minions)) if minions else []
        seen = zip(minions, scores, strict=True)
        return {name: values.number(score, keys.SEEN) for name, score in seen if score is not None}

    def present(self, since_ms: int) -> set[str]:
        """Minions that spoke since then."""
        return {text(name) for name in self._client.call("zrangebyscore", keys.SEEN, since_ms, "+inf")}
