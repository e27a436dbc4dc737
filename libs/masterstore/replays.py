"""Recognises requests of minions that somebody recorded and sends again.

Each request carries a nonce and the minion's time. The store remembers each nonce for twice the largest age of a
request (``window``) and a minute. The age of a request is the difference to the time in the minion's last new request,
so the minion's clock may be wrong by any amount. After a request that is too old the caller gives the minion a new
session (``MinionKeys.renew``): a minion whose clock was set back signs in and repeats its request. Requests that were
recorded before can no longer be decrypted.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from masterstore import keys
from masterstore.cache import ARRIVED
from masterstore.client import Client

#: Seconds that a nonce is kept beyond two windows.
_SPARE = 60


class Verdict(Enum):
    """Result of comparing a minion's request with earlier ones: new, repeated, or older than the window."""

    NEW = 0
    REPEATED = 1
    OLD = 2


class Admission(NamedTuple):
    """The Verdict about a minion's request, and how many seconds older it is than the minion's last new request."""

    verdict: Verdict
    late: int
    #: Whether jobs wait for the minion, as ``Presence.arrived`` says; None if its message was not recorded.
    waits: bool | None


#: KEYS: clocks, the nonce's key (may be missing), and to record a new request as a message: those of ARRIVED. ARGV: minion, its
#: time in seconds (empty: unknown), window in seconds, and to record it: ms. Returns (verdict, seconds late, whether jobs wait; -1
#: if it was not recorded). Without a nonce nothing shows that the request is new, so the clock is only set once.
_ADMIT = f"""
{ARRIVED}
local late = 0
local behind = nil
if ARGV[2] ~= '' then
  local window = tonumber(ARGV[3])
  behind = tonumber(redis.call('TIME')[1]) - tonumber(ARGV[2])
  local known = redis.call('HGET', KEYS[1], ARGV[1])
  if known then
    late = behind - (tonumber(known) or behind)
    if late > window then return {{2, late, -1}} end
    if not KEYS[2] then behind = nil end
  end
end
if KEYS[2] and not redis.call('SET', KEYS[2], '1', 'NX', 'EX', 2 * tonumber(ARGV[3]) + {_SPARE}) then return {{1, late, -1}} end
if behind then redis.call('HSET', KEYS[1], ARGV[1], behind) end
if not KEYS[3] then return {{0, late, -1}} end
return {{0, late, arrived(KEYS[3], KEYS[4], KEYS[5], ARGV[1], ARGV[4]) and 1 or 0}}
"""


class Replays:
    """Recognises repeated requests by their nonces and times in Redis. All operations raise StoreUnavailable without Redis."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._admit = client.redis.register_script(_ADMIT)

    def admit(
        self, minion: str, nonce: str | None, sent: int | None, *, window: int, seen_ms: int | None = None
    ) -> Admission:
        """Return whether a request is new, came before, or is too old (an Admission), and remember its nonce and
        time.

        ``nonce``: the request's random text; None: only its age is checked. ``sent``: the minion's time in
        seconds since 1970; None if the request has none. ``window``: seconds after which a request is too old.
        ``seen_ms``: also record a new request, which has a nonce, as a message of the minion at this time, as
        ``Presence.arrived`` does; None: do not.
        """
        names = [keys.CLOCKS] if nonce is None else [keys.CLOCKS, keys.nonce(minion, nonce)]
        arguments = [minion, "" if sent is None else sent, window]
        if nonce is not None and seen_ms is not None:
            names += [keys.SEEN, keys.waiting_of(minion), keys.SIGNERS]
            arguments.append(seen_ms)
        with self._client.calling():
            verdict, late, waits = self._admit(keys=names, args=arguments)
        return Admission(Verdict(verdict), late, None if waits < 0 else bool(waits))
