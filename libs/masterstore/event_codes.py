"""Authentication codes of events in Redis, and the memory that recognises events that were delivered before.

Reactors act on the events of the stream ``salt:events``. The reactors and the roles that append events share a key
that Redis never holds (``events.key``). The code of an event covers its tag, its data, the consumer group that it is
for, the time at which it was appended, and a number that no other event has. Whoever writes to Redis can therefore
neither make nor change an event, nor give it another tag.

Source: docs/security.md#events
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from hmac import compare_digest

from masterstore.record_mac import EVENT, GROUP_STATE, RecordMac

#: Milliseconds by which the clocks of roles and of Redis may differ.
CLOCKS_MS = 600_000

#: Most delivered events that a reader of a group remembers. Older copies are refused by their time.
REMEMBERED = 50_000

#: Mask of the number in a seal.
_NUMBERS = 2**64 - 1

#: A seal: time in milliseconds since 1970, number of the event (16 hexadecimal digits), code (64 hexadecimal digits).
_SEAL = re.compile(r"(?P<origin>(?P<ms>\d{1,15})-(?P<nonce>[0-9a-f]{16}))-(?P<code>[0-9a-f]{64})")


class Fault(StrEnum):
    """Reason for which an event in Redis is refused, or the text that the readers of a consumer group share there
    (such as the reactors' table of reactions).

    One of unsigned, forged, old, repeated.
    """

    UNSIGNED = "unsigned"
    FORGED = "forged"
    OLD = "old"
    REPEATED = "repeated"


#: Fault -> what it means and what to do, for the log.
MEANING: Mapping[Fault, str] = {
    Fault.UNSIGNED: (
        "no role of this master signed it. Either the key directories of mworker and maintenance have no events.key: run"
        " `saltern keygen` again and restart them; or a snapshot before 0.1.0 kept it: see the option accept_unsigned_records; or"
        " somebody writes to Redis beside the master"
    ),
    Fault.FORGED: (
        "its code does not belong to it. Either mworker and maintenance have another events.key than this role: `saltern"
        " keygen` gives all of them the same one; or somebody writes to Redis beside the master"
    ),
    Fault.OLD: (
        "it was kept at another time than its code says. Either the clocks of the master's machines and of Redis differ by"
        " more than ten minutes, or somebody wrote an old event into Redis again"
    ),
    Fault.REPEATED: "this role had it before: the answer of Redis was lost, or somebody delivers events again",
}


class EventCodes:
    """Makes and checks the authentication codes of events in Redis, and of the text that the readers of a consumer
    group share there (``state``, such as the reactors' table of reactions).

    Without a key, nothing gets a code and nothing is checked.
    """

    def __init__(
        self,
        macs: Sequence[RecordMac] = (),
        *,
        accept_unsigned: bool = False,
        refused: Callable[[str, Fault], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Create the maker of codes. ``macs``: the first one makes codes; the codes of all are accepted, so that a key
        can be replaced; empty: there is no key.

        ``accept_unsigned``: accept an event or shared text without a code; a wrong code is always refused.
        ``refused``: called with the Redis key and the reason (Fault) for each event or shared text that is refused;
        None: it is reported to the store's ``Faults``.
        """
        self._macs = tuple(macs)
        self.refused = refused
        self._accept_unsigned = accept_unsigned
        self._clock = clock
        #: Process of ``_numbers``, and the numbers of its events: from a random one on, which is cheaper than a random one each.
        self._pid = -1
        self._numbers = itertools.count()

    def seal(self, frame: bytes, to: str = "") -> bytes:
        """Return the seal of a packed event as bytes ``<time>-<number>-<authentication code>``; b"" without a key.

        ``to``: the consumer group for which a dead event is put back into the stream; "" for a new event.
        """
        if not self._macs:
            return b""
        if self._pid != os.getpid():
            # After a fork the parent's numbers must not be given again.
            self._pid, self._numbers = os.getpid(), itertools.count(int.from_bytes(os.urandom(8), "big"))
        origin = f"{int(self._clock() * 1000)}-{next(self._numbers) & _NUMBERS:016x}"
        return origin.encode() + b"-" + self._macs[0](EVENT, _event_record(origin, to, frame))

    def fault(self, frame: bytes, to: str, seal: str, entered_ms: int | None = None) -> Fault | None:
        """Return the Fault for which an event of the stream is refused; None if its seal proves that a role of this
        master appended it.

        ``entered_ms``: time of the event's entry in the stream, milliseconds since 1970; None: the time is not
        compared.
        """
        if not self._macs:
            return None
        if not seal:
            return None if self._accept_unsigned else Fault.UNSIGNED
        found = _SEAL.fullmatch(seal)
        if found is None:
            return Fault.FORGED
        origin, ms, _, code = found.groups()
        if not self._is_code(EVENT, _event_record(origin, to, frame), code.encode()):
            return Fault.FORGED
        if entered_ms is not None and abs(entered_ms - int(ms)) > CLOCKS_MS:
            return Fault.OLD
        return None

    def state_code(self, group: str, version: int, state: str) -> bytes:
        """Return the authentication code of ``state``, the text that the readers of the consumer group ``group`` share
        (such as the reactors' table of reactions), with its version number; b"" without a key.
        """
        return self._macs[0](GROUP_STATE, _state_record(group, version, state)) if self._macs else b""

    def state_fault(self, group: str, version: int, state: str, code: bytes) -> Fault | None:
        """Return the Fault for which ``state`` is refused: the text that the readers of the consumer group ``group``
        share in Redis, such as the reactors' table of reactions.

        None if the authentication code is right. None also for an empty text: a new group has stored none, so there is
        nothing to check.
        """
        if not self._macs or not state:
            return None
        if not code:
            return None if self._accept_unsigned else Fault.UNSIGNED
        return None if self._is_code(GROUP_STATE, _state_record(group, version, state), code) else Fault.FORGED

    def _is_code(self, kind: str, record: bytes, code: bytes) -> bool:
        return any(compare_digest(mac(kind, record), code) for mac in self._macs)


def _event_record(origin: str, to: str, frame: bytes) -> bytes:
    """Return the bytes over which an event's authentication code is made: time and number (``origin``), consumer group
    (``to``) and packed event. Neither ``origin`` nor a group's name contains a space.
    """
    return f"{origin} {to} ".encode("utf-8", "surrogateescape") + frame


def _state_record(group: str, version: int, state: str) -> bytes:
    return f"{group} {version} {state}".encode("utf-8", "surrogateescape")


class Deliveries:
    """Remembers the events that one reader of a consumer group got, so that none is handled a second time.

    An event without a seal is not remembered.
    """

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        #: Map of an event's number to its stream id, "" once it was handled; oldest first.
        self._known: dict[int, str] = {}
        #: Map of the stream id of an event in hand to its number.
        self._in_hand: dict[str, int] = {}
        #: Time in the largest stream id that was delivered as new, milliseconds since 1970.
        self._newest_ms = 0

    def is_repeated(self, stream_id: str, seal: str, *, new: bool) -> bool:
        """Return True if the event was delivered to this reader before; remember it otherwise.

        ``new``: the consumer group delivers the event for the first time. False: the reader takes over a delivery that
        was not acknowledged, which may be this reader's own.
        """
        found = _SEAL.fullmatch(seal)
        if found is None:
            return False
        nonce, entered_ms = int(found["nonce"], 16), entered(stream_id)
        if new:
            # New deliveries have rising ids, unless somebody moved the group's position back. Younger ones are in the memory
            # below: after a failover of Redis, ids may go back by the difference of two clocks.
            if entered_ms < self._newest_ms - CLOCKS_MS:
                return True
            self._newest_ms = max(self._newest_ms, entered_ms)
        known = self._known.get(nonce)
        if known is not None:
            return new or known != stream_id
        self._known[nonce] = stream_id
        self._in_hand[stream_id] = nonce
        if len(self._known) > self._most:
            self._in_hand.pop(self._known.pop(next(iter(self._known))), None)
        return False

    def handled(self, stream_ids: Sequence[str]) -> None:
        """Remember that these events were handled: a later delivery of one of them is a repetition."""
        for stream_id in stream_ids:
            nonce = self._in_hand.pop(stream_id, None)
            if nonce is not None and nonce in self._known:
                self._known[nonce] = ""


def entered(stream_id: str) -> int:
    """Return the time in a Redis stream id, in milliseconds since 1970."""
    return int(stream_id.partition("-")[0])
