"""All that a sign-in asks of the store, in one round trip: a storm of them is bounded by it."""

from __future__ import annotations

from dataclasses import dataclass

from masterstore import keys
from masterstore.client import Client, text
from masterstore.epochs import CURRENT, Epochs, epochs_of
from masterstore.minion_keys import STATES

#: KEYS: epochs, seen, its waiting jobs, minions that sign, the states' hashes, accepted first. ARGV: minion, its PEM, now ms.
#: Answers the epochs, the state's place (0: none) and PEM, whether the minion was noted as seen, and whether jobs wait for it.
_BEGIN = f"""
local function epochs()
{CURRENT}
end
local known = epochs()
for i = 5, #KEYS do
  local pem = redis.call('HGET', KEYS[i], ARGV[1])
  if pem then
    local same = i == 5 and pem == ARGV[2]
    if same then redis.call('ZADD', KEYS[2], 'GT', ARGV[3], ARGV[1]) end
    local waited = same and redis.call('EXISTS', KEYS[3]) == 1 and redis.call('SISMEMBER', KEYS[4], ARGV[1]) == 0
    return {{known, i - 4, pem, same and 1 or 0, waited and 1 or 0}}
  end
end
return {{known, 0, '', 0, 0}}
"""


@dataclass(frozen=True, slots=True)
class SigningIn:
    """What the store knows of a minion that signs in."""

    #: State and PEM of its key, None for a minion that was never heard of. As ``MinionKeys.state_of``.
    stored: tuple[str, str] | None
    #: The epochs in force.
    epochs: Epochs
    #: Whether it was noted as seen: only who brings the accepted key, letter for letter, is without being looked at.
    seen: bool
    #: Whether jobs wait for it, and it is one that cannot ask for them: asked of whom was noted as seen.
    waited_for: bool


class SignIns:
    """Raises StoreUnavailable when Redis is away, StoreCorrupt."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._begin = client.redis.register_script(_BEGIN)

    def begin(self, minion: str, pem: str, now_ms: int) -> SigningIn:
        """Looks the minion up that brings this key (cleaned PEM)."""
        names = [keys.EPOCHS, keys.SEEN, keys.waiting_of(minion), keys.SIGNERS, *map(keys.minion_keys, STATES)]
        with self._client.calling():
            epochs, place, stored, seen, waited_for = self._begin(keys=names, args=[minion, pem, now_ms])
        known = (STATES[place - 1], text(stored)) if place else None
        return SigningIn(known, epochs_of(epochs), bool(seen), bool(waited_for))
