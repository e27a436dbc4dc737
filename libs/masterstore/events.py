"""Events that readers must not miss: a bounded Redis stream beside the ZeroMQ event bus.

The bus delivers events to current listeners. The stream ``salt:events`` keeps the events whose tags a reader wants
later. Each has a number that rises by one, so that a slow reader knows how many events it missed. A worker keeps an
event only if its tag is wanted by the option ``events_kept``, by the table of reactions, or by a reader that registered
in ``salt:events:wanted``.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate

from masterstore import keys, values
from masterstore.client import Client, text
from masterstore.errors import StoreError
from masterstore.event_codes import MEANING, EventCodes, entered

_LOG = logging.getLogger("saltern.events")

#: Seconds for which a worker uses its copy of the registrations; a new one takes effect after that.
WANTED_BELIEVED = 1.0

#: Seconds after which a registration that was not renewed is ignored.
WANTED_KEPT = 86_400

#: Cursor of a reader that wants all events of the stream.
BEGINNING = "0-0/0"

#: KEYS: events, count. ARGV: how many are kept, then event and seal of each. Returns the stream id of the last one.
_KEEP = """
local id
for at = 2, #ARGV, 2 do
  local number = redis.call('INCR', KEYS[2])
  id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'n', number, 'event', ARGV[at], 'mac', ARGV[at + 1])
end
return id
"""


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """One event in the Redis stream ``salt:events``: stream id, number and packed event."""

    #: Stream id: time in milliseconds since 1970, and a number.
    id: str
    #: Number of the event in the stream; rises by one.
    number: int
    #: Tag and data as on the bus.
    frame: bytes
    #: Group for which a dead event was returned to the stream; else empty.
    to: str = ""
    #: Time, number and code (``event_codes``) by which readers know that a role of this master kept the event;
    #: empty: it has none.
    seal: str = ""

    @property
    def identity(self) -> str:
        """Text that identifies the event: its seal; for an event without one its stream id and number."""
        return self.seal or f"{self.id} {self.number}"

    @property
    def cursor(self) -> str:
        """The position directly after this event; a reader passes it to ``Events.read`` to continue there."""
        return f"{self.id}/{self.number}"


class Events:
    """The Redis stream ``salt:events`` of the events that readers must not miss. All operations raise
    StoreUnavailable if Redis does not answer.
    """

    def __init__(self, client: Client, codes: EventCodes = EventCodes()) -> None:  # noqa: B008 - it never changes
        """Create the operations on the event stream. ``codes``: makes the authentication codes of events that are
        stored, and checks those of events that are read.
        """
        self._client = client
        self._codes = codes
        self._keep = client.redis.register_script(_KEEP)

    def keep(self, frame: bytes, most: int) -> str:
        """Append the packed event ``frame`` to the stream and return its stream id. The stream keeps about the
        newest ``most`` events.
        """
        return self.keep_all([frame], most)

    def keep_all(self, frames: Sequence[bytes], most: int) -> str:
        """Append ``frames``, packed events and at least one, to the stream in one round trip. Return the stream id of the last one.

        The stream keeps about the newest ``most`` events.
        """
        sealed = [part for frame in frames for part in (frame, self._codes.seal(frame))]
        with self._client.calling():
            return text(self._keep(keys=[keys.EVENTS, keys.EVENTS_COUNT], args=[most, *sealed]))

    def want(self, reader: str, globs: Iterable[str]) -> None:
        """Register the tag globs of the events that the reader named ``reader`` needs in the stream. The
        registration is valid for a day.
        """
        wanted_entry = json.dumps({"tags": sorted(set(globs)), "at": int(time.time())})
        self._client.call("hset", keys.EVENTS_WANTED, reader, wanted_entry)

    def wanted(self) -> dict[str, list[str]]:
        """Map of reader name to the tag globs of its valid registration; malformed registrations are left out."""
        found = {}
        for reader, wanted_entry in self._client.call("hgetall", keys.EVENTS_WANTED).items():
            globs = _globs(wanted_entry)
            if globs:
                found[text(reader)] = globs
        return found

    def read(self, cursor: str, block_ms: int, count: int = 100) -> tuple[list[KeptEvent], int]:
        """Return (events, number of missed events): at most ``count`` events after the position ``cursor``, oldest
        first.

        Missed events are those that Redis removed from the full stream before this read. Waits up to ``block_ms``
        milliseconds for an event; ([], 0) if none came. Events that no role of this master appended are left out and
        reported to ``Faults``. Raises StoreError for a malformed cursor.
        """
        after, _, number = cursor.partition("/")
        if re.fullmatch(r"\d+-\d+", after) is None or not number.isdigit():
            raise StoreError(f"{cursor!r} is no cursor of events: one looks like {BEGINNING}")
        found = read_stream(self._client, after, block_ms, count)
        missed, last = 0, int(number)
        for event in found:
            missed += max(0, event.number - last - 1) if last or after != "0-0" else 0
            last = event.number
        return [event for event in found if not event.to and self._is_genuine(event)], missed

    def _is_genuine(self, event: KeptEvent) -> bool:
        fault = self._codes.fault(event.frame, event.to, event.seal, entered(event.id))
        if fault is not None:
            self._client.faults.report(keys.EVENTS, MEANING[fault])
        return fault is None

    def newest(self) -> str:
        """Return the position (text) after the newest event in the stream ``salt:events``; a reader that wants only
        future events passes it to ``read``.
        """
        newest = self._client.call("xrevrange", keys.EVENTS, count=1)
        return event_of(*newest[0]).cursor if newest else BEGINNING

    def count(self) -> int:
        """Return the number of events that were ever appended to the stream."""
        return values.number(self._client.call("get", keys.EVENTS_COUNT), keys.EVENTS_COUNT)


class EventKeeper:
    """Appends the events that a process fires to the stream ``salt:events``, if a reader has registered for their
    tags.
    """

    def __init__(
        self, events: Events, globs: Sequence[str], most: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Create the keeper. ``globs``: tags of events that are stored even if no reader has registered. ``most``:
        about how many events the stream keeps.
        """
        self._events = events
        self._own = list(globs)
        self._most = most
        self._clock = clock
        self._asked = -WANTED_BELIEVED
        self._pattern = _pattern(self._own)
        self._away = False

    def keep(self, tag: str, frame: bytes) -> None:
        """Append the packed event ``frame`` to the stream if some reader wants its tag; otherwise do nothing. Raises
        StoreError.
        """
        self._keep_wanted([(tag, frame)])

    def _keep_wanted(self, events: Sequence[tuple[str, bytes]]) -> None:
        if wanted := [frame for tag, frame in events if self.wants(tag)]:
            self._events.keep_all(wanted, self._most)

    def try_keep(self, *events: tuple[str, bytes]) -> bool:
        """Append those of the events (tag, packed event) to the stream that some reader wants, in one round trip. Return
        True; False if the store raised an error, which is logged.
        """
        try:
            self._keep_wanted(events)
        except StoreError as error:
            if not self._away:
                _LOG.error("events are not kept for who reads them later (the first is %s): %s", events[0][0], error)
            self._away = True
            return False
        self._away = False
        return True

    def wants(self, tag: str) -> bool:
        """Return whether a reader wants events of this tag. Raises StoreError if the registrations cannot be read."""
        if self._clock() - self._asked >= WANTED_BELIEVED:
            # Set before the query: if Redis does not answer, it is not asked again for each event.
            self._asked = self._clock()
            self._pattern = _pattern([*self._own, *(one for globs in self._events.wanted().values() for one in globs)])
        return self._pattern is not None and self._pattern.match(tag) is not None


def _pattern(globs: Iterable[str]) -> re.Pattern[str] | None:
    """Return one regular expression for all globs; None without globs."""
    unique = sorted(set(globs))
    return re.compile("|".join(translate(glob) for glob in unique)) if unique else None


def _globs(wanted_entry: bytes) -> list[str]:
    try:
        found = json.loads(wanted_entry)
        if time.time() - found["at"] > WANTED_KEPT:
            return []
        return [str(glob) for glob in found["tags"]]
    except (ValueError, TypeError, KeyError):
        return []


def read_stream(client: Client, after: str, block_ms: int, count: int) -> list[KeptEvent]:
    """Return at most ``count`` events of the stream ``salt:events`` after a stream id, oldest first.

    Wait up to ``block_ms`` milliseconds for the first one; [] if none came.
    """
    deadline = time.monotonic() + block_ms / 1000
    # Never longer at a time than half of what a connection waits for an answer: that would look like a dead Redis.
    longest = max(1, int(client.timeout * 500))
    wait, answer = max(1, min(block_ms, longest)), None
    while not answer and wait > 0:
        answer = client.call("xread", {keys.EVENTS: after}, count=count, block=wait)
        wait = min(int((deadline - time.monotonic()) * 1000), longest)
    return [event_of(*entry) for _, entries in answer or () for entry in entries]


def event_of(stream_id: bytes, fields: Mapping[bytes, bytes]) -> KeptEvent:
    """Return an entry of the stream as a KeptEvent. In entries of other programs a missing number becomes 0, a
    missing event b"".
    """
    number = fields.get(b"n", b"0")
    return KeptEvent(
        text(stream_id),
        int(number) if number.isdigit() else 0,
        fields.get(b"event", b""),
        text(fields.get(b"to", b"")),
        text(fields.get(b"mac", b"")),
    )
