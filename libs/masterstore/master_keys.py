"""Which of the master's keys each minion accepts, while the master's key is replaced and two are valid.

Source: docs/protocol.md#replaced-master-key
"""

from __future__ import annotations

from collections.abc import Sequence

from masterstore import keys
from masterstore.client import Client, text

#: Seconds for which the records are kept after the last sign-in. They count only while two keys are valid.
_KEPT_SECONDS = 90 * 86400


class MasterKeyRecords:
    """Redis data: which of the master's keys each minion accepts, as fingerprints.

    All operations raise StoreUnavailable or StoreError.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def set(self, minion: str, fingerprint: str) -> None:
        """Record that the minion accepts the master's key with this fingerprint."""
        with self._client.calling() as server:
            pipe = server.pipeline(transaction=False)
            pipe.hset(keys.MASTER_KEYS, minion, fingerprint)
            pipe.expire(keys.MASTER_KEYS, _KEPT_SECONDS)
            pipe.execute()

    def known_to(self, minion: str) -> str | None:
        """Return the fingerprint of the master's key that the minion accepts; None if the minion did not sign in while
        two keys were valid.
        """
        found = self._client.call("hget", keys.MASTER_KEYS, minion)
        return None if found is None else text(found)

    def all(self) -> dict[str, str]:
        """Return {minion id: fingerprint of the master's key that the minion accepts} for all minions with a record."""
        return {text(name): text(value) for name, value in self._client.call("hgetall", keys.MASTER_KEYS).items()}

    def own_minions(self, minions: Sequence[str]) -> frozenset[str]:
        """Return the set of those ``minions`` that run Saltern, not stock Salt: they report the progress of their jobs."""
        if not minions:
            return frozenset()
        found = self._client.call("smismember", keys.SIGNERS, list(minions))
        return frozenset(name for name, member in zip(minions, found, strict=True) if member)
