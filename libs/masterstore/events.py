"""Events that somebody must not miss: a capped stream beside the bus, written by whoever fires an event, read by id.

The bus (ZeroMQ) is a copy for whoever listens at the moment. The stream ``salt:events`` holds the events whose tags somebody wants
to read later, too: each with a number that rises by one, so that a reader that was slow or away knows how many it missed.
Workers keep an event only if its tag is wanted: the option ``events_kept``, the master's own table of reactions, and what readers
wrote into ``salt:events:wanted``. An event that nobody wants costs one look at its tag.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import Any

from masterstore import keys, values
from masterstore.client import Client, text
from masterstore.errors import StoreError

_LOG = logging.getLogger("saltern.events")

#: Seconds for which what readers want is believed: how long a new wish may take to be heard by every worker.
WANTED_BELIEVED = 1.0

#: Seconds after which the wish of a reader that never renewed it counts no more: it will hardly come back.
WANTED_KEPT = 86_400

#: Where a reader begins that wants all there is.
BEGINNING = "0-0/0"

#: KEYS: events, count. ARGV: event, how many are kept. Answers the stream id.
_KEEP = """
local number = redis.call('INCR', KEYS[2])
return redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'n', number, 'event', ARGV[1])
"""


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """One event of the stream."""

    #: Stream id: milliseconds of when it was kept, and a number.
    id: str
    #: Rises by one from event to event, whoever fires it.
    number: int
    #: Tag and data as on the bus.
    frame: bytes
    #: The one group that it is for, where it was given back to one; else empty.
    to: str = ""

    @property
    def cursor(self) -> str:
        """Where a reader goes on that has had this one."""
        return f"{self.id}/{self.number}"


class Events:
    """Verbs on the stream. All raise StoreUnavailable when Redis is away."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._keep = client.redis.register_script(_KEEP)

    def keep(self, frame: bytes, most: int) -> str:
        """Appends an event; about ``most`` are kept. Its stream id."""
        with self._client.calling():
            return text(self._keep(keys=[keys.EVENTS, keys.EVENTS_COUNT], args=[frame, most]))

    def want(self, reader: str, globs: Iterable[str]) -> None:
        """From now on events whose tags match are kept, for a day after the last time that this was said."""
        wanted_entry = json.dumps({"tags": sorted(set(globs)), "at": int(time.time())})
        self._client.call("hset", keys.EVENTS_WANTED, reader, wanted_entry)

    def wanted(self) -> dict[str, list[str]]:
        """Reader -> tag globs that it wants, of those that said so within a day. What cannot be read is left out."""
        found = {}
        for reader, wanted_entry in self._client.call("hgetall", keys.EVENTS_WANTED).items():
            globs = _globs(wanted_entry)
            if globs:
                found[text(reader)] = globs
        return found

    def read(self, cursor: str, block_ms: int, count: int = 100) -> tuple[list[KeptEvent], int]:
        """Events after a cursor (``KeptEvent.cursor``, ``BEGINNING``), oldest first, and how many were missed before the first.

        Waits up to ``block_ms`` for one. Raises StoreError for what is no cursor.
        """
        after, _, number = cursor.partition("/")
        if re.fullmatch(r"\d+-\d+", after) is None or not number.isdigit():
            raise StoreError(f"{cursor!r} is no cursor of events: one looks like {BEGINNING}")
        found = read_stream(self._client, after, block_ms, count)
        missed, last = 0, int(number)
        for event in found:
            missed += max(0, event.number - last - 1) if last or after != "0-0" else 0
            last = event.number
        return [event for event in found if not event.to], missed

    def newest(self) -> str:
        """The cursor of a reader that wants only what comes from now on."""
        newest = self._client.call("xrevrange", keys.EVENTS, count=1)
        return event_of(*newest[0]).cursor if newest else BEGINNING

    def count(self) -> int:
        """How many events were ever kept."""
        return values.number(self._client.call("get", keys.EVENTS_COUNT), keys.EVENTS_COUNT)


class EventKeeper:
    """Keeps the events that somebody wants; for one process, that fires them."""

    def __init__(
        self, events: Events, globs: Sequence[str], most: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``globs``: tags that are wanted in any case. ``most``: about how many events are kept."""
        self._events = events
        self._own = list(globs)
        self._most = most
        self._clock = clock
        self._asked = -WANTED_BELIEVED
        self._pattern = _pattern(self._own)
        self._away = False

    def keep(self, tag: str, frame: bytes) -> None:
        """Keeps it if it is wanted. Raises StoreError."""
        if self.wants(tag):
            self._events.keep(frame, self._most)

    def try_keep(self, tag: str, frame: bytes) -> bool:
        """The same where an event is not worth a failure: False, and a line in the log, when it is wanted and not kept."""
        try:
            self.keep(tag, frame)
        except StoreError as error:
            if not self._away:
                _LOG.error("events are not kept for who reads them later (the first is %s): %s", tag, error)
            self._away = True
            return False
        self._away = False
        return True

    def wants(self, tag: str) -> bool:
        """Whether somebody wants events of this tag. Raises StoreError where that was to be asked."""
        if self._clock() - self._asked >= WANTED_BELIEVED:
            # Also when it fails: a dead Redis is not asked once an event.
            self._asked = self._clock()
            self._pattern = _pattern([*self._own, *(one for globs in self._events.wanted().values() for one in globs)])
        return self._pattern is not None and self._pattern.match(tag) is not None


def _pattern(globs: Iterable[str]) -> re.Pattern[str] | None:
    """One expression for all globs: a tag is looked at once, however many there are."""
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
    """Events after a stream id; waits up to ``block_ms`` for the first one."""
    deadline = time.monotonic() + block_ms / 1000
    # Never longer at a time than half of what a connection waits for an answer: that would look like a dead Redis.
    longest = max(1, int(client.timeout * 500))
    wait, answer = max(1, min(block_ms, longest)), None
    while not answer and wait > 0:
        answer = client.call("xread", {keys.EVENTS: after}, count=count, block=wait)
        wait = min(int((deadline - time.monotonic()) * 1000), longest)
    return [event_of(*entry) for _, entries in answer or () for entry in entries]


def event_of(stream_id: Any, fields: Any) -> KeptEvent:
    """An entry as Redis gives it. One that another hand wrote has no number or no frame: 0 and nothing."""
    number = fields.get(b"n", b"0")
    return KeptEvent(
        text(stream_id),
        int(number) if number.isdigit() else 0,
        fields.get(b"event", b""),
        text(fields.get(b"to", b"")),
    )
