"""Everything that a sign-in reads from the store, in one round trip, so that many sign-ins at once stay cheap."""

from __future__ import annotations

from dataclasses import dataclass

from masterstore import keys, values
from masterstore.client import Client, text
from masterstore.epochs import CURRENT, Epochs, epochs_of
from masterstore.errors import StoreError, StoreUnavailable
from masterstore.minion_keys import STATES
from masterstore.record_mac import Records, check_accepted

#: Seconds for which sign-ins of stock minions are kept; publishers do not resend older publications.
_REMEMBERED = 60

#: Least seconds between two removals of older entries, so that not every sign-in does it.
_SPARED = 3

#: KEYS: epochs, seen, its waiting jobs, minions that sign, sign-ins of others, acceptances, codes of accepted keys, the states'
#: hashes, accepted first.
#: ARGV: minion, its PEM, now ms.
#: Returns one text, which is faster than a list: a line with the state's index (0: none), whether the PEM is the
#: one that is stored (a minion that is accepted by it is noted as seen), whether jobs wait for the minion, the number of its
#: acceptance, its code or -, and the epochs; then the stored PEM, if it differs.
_BEGIN = f"""
local function epochs()
{CURRENT}
end
local known = table.concat(epochs(), ' ')
for i = 8, #KEYS do
  local pem = redis.call('HGET', KEYS[i], ARGV[1])
  if pem then
    local brought = pem == ARGV[2]
    local same = i == 8 and brought
    local stock = same and redis.pcall('SISMEMBER', KEYS[4], ARGV[1]) == 0
    if same then redis.call('ZADD', KEYS[2], 'GT', ARGV[3], ARGV[1]) end
    if stock then
      local time = redis.call('TIME')
      local now = time[1] * 1000 + math.floor(time[2] / 1000)
      if type(redis.pcall('ZADD', KEYS[5], now, ARGV[1])) == 'number' and redis.call('TTL', KEYS[5]) <= {_REMEMBERED} then
        redis.call('ZREMRANGEBYSCORE', KEYS[5], '-inf', now - {_REMEMBERED * 1000})
        redis.call('EXPIRE', KEYS[5], {_REMEMBERED + _SPARED})
      end
    end
    local waited = stock and redis.call('EXISTS', KEYS[3]) == 1
    local number = string.match(redis.call('HGET', KEYS[6], ARGV[1]) or '', '^%d+$') or '0'
    local code = string.match(redis.call('HGET', KEYS[7], ARGV[1]) or '', '^%x+$') or '-'
    local flags = (brought and ' 1 ' or ' 0 ') .. (waited and '1 ' or '0 ')
    return i - 7 .. flags .. number .. ' ' .. code .. ' ' .. known .. '\\n' .. (brought and '' or pem)
  end
end
return '0 0 0 0 - ' .. known
"""


@dataclass(frozen=True, slots=True)
class SignInFacts:
    """Stored data about a minion that signs in: its key and the key's acceptance, the key epochs, and whether jobs wait for it."""

    #: (state, PEM) of the minion's key, or None; as ``MinionKeys.state_of``.
    stored: tuple[str, str] | None
    #: The current epochs.
    epochs: Epochs
    #: Whether the minion's presence was recorded: only if the offered key equals the accepted one exactly.
    seen: bool
    #: Whether jobs wait for a stock minion whose presence was recorded.
    waited_for: bool
    #: Number of the acceptance of the minion's key (``MinionKeys.acceptance``); 0 if it is not accepted.
    acceptance: int = 0


class SignIns:
    """Reads from Redis the data that a minion's sign-in needs: its key, the key epochs, and whether jobs wait for it.

    All operations raise StoreUnavailable if Redis does not answer, StoreCorrupt for malformed data.
    """

    def __init__(self, client: Client, records: Records = Records()) -> None:  # noqa: B008 - it never changes
        """Create the reader. ``records``: checks the authentication codes of accepted keys."""
        self._client = client
        self._records = records
        self._begin = client.redis.register_script(_BEGIN)

    def begin(self, minion: str, pem: str, now_ms: int) -> SignInFacts:
        """Return the stored data of a minion that signs in with the public key ``pem`` (as ``keys.clean_pem`` writes
        it).

        If that key is accepted, the minion is recorded as present at ``now_ms`` (milliseconds since 1970).
        """
        names = [keys.EPOCHS, keys.SEEN, keys.waiting_of(minion), keys.SIGNERS, keys.STOCK_SIGN_INS]
        names += [keys.ACCEPTANCES, keys.KEY_CODES, *map(keys.minion_keys, STATES)]
        with self._client.calling():
            answer = self._begin(keys=names, args=[minion, pem, now_ms])
        line, _, other = answer.partition(b"\n")
        place, brought, waited_for, number, code, *epochs = line.split(b" ")
        state, same = int(place), brought == b"1"
        known = (STATES[state - 1], pem if same else text(other)) if state else None
        if known is not None and known[0] == "accepted":
            check_accepted(self._records, minion, known[1], b"" if code == b"-" else code)
        return SignInFacts(
            known, epochs_of(epochs), same and state == 1, waited_for == b"1", values.number(number, keys.ACCEPTANCES)
        )

    def of_stock(self) -> dict[str, int]:
        """Return {stock minion id: time of its last sign-in} of the last minute, in milliseconds since 1970 by
        Redis' clock.

        {} if the key in Redis is malformed; this is reported to ``Faults``, which logs it. Raises
        StoreUnavailable.
        """
        try:
            found = self._client.call("zrange", keys.STOCK_SIGN_INS, 0, -1, withscores=True)
            return {text(name): values.number(at, keys.STOCK_SIGN_INS) for name, at in found}
        except StoreUnavailable:
            raise
        except StoreError as error:
            self._client.faults.report(keys.STOCK_SIGN_INS, str(error))
            return {}
