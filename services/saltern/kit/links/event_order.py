"""Several event publishers: each event reaches each listener once, in the order of its sender. No sockets, no clock.

A sender gives each event its name and a number (``origin``), and sends it to every event publisher. A listener is connected to
one. If it loses that one it connects to another, says which number of each sender it had last, and gets what came after (a
replay). Live events wait meanwhile. Source: docs/decisions/0025-several-event-publishers.md

    sender -> event publisher    event  origin
    event publisher -> listener  event  origin
    listener -> event publisher  subscriptions to REPLIES nonce, and QUESTIONS nonce / msgpack of [age, prefixes, {sender: number}]
    event publisher -> listener  REPLIES nonce  event  origin      for each event
                                 REPLIES nonce                     the end of the replay

An event of a sender that knows one event publisher has no origin, and is never replayed.
"""

from __future__ import annotations

import struct
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgpack

#: Prefixes of the topics of a replay. They are subscribed to only while a listener waits for one.
QUESTIONS = b"saltern/replay-of/"
REPLIES = b"saltern/replay/"

#: An origin: name of the sender (8 bytes), number of the event.
_ORIGIN = struct.Struct("!8sQ")

#: Bytes of an origin.
ORIGIN_BYTES = _ORIGIN.size

#: Bytes of a sender's name, and of a nonce before it is written as text.
NAME_BYTES = 8

#: Most senders that are remembered; a sender is forgotten when it was not heard of for longest.
MOST_SENDERS = 5_000

#: Seconds after which a listener no longer waits for the end of a replay.
REPLAY_PATIENCE = 2.0

#: Most events that wait for the end of a replay.
_MOST_HELD = 10_000


def origin(sender: bytes, number: int) -> bytes:
    """Return the origin of an event: the frame behind the event."""
    return _ORIGIN.pack(sender, number)


def read_origin(frame: bytes) -> tuple[bytes, int] | None:
    """Return (name of the sender, number of the event); None if the frame is no origin."""
    if len(frame) != ORIGIN_BYTES:
        return None
    sender, number = _ORIGIN.unpack(frame)
    return bytes(sender), int(number)


class LastNumbers:
    """The number of the last event of each sender. Numbers rise."""

    def __init__(self, most: int = MOST_SENDERS) -> None:
        self._most = most
        self._numbers: OrderedDict[bytes, int] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def is_new(self, sender: bytes, number: int) -> bool:
        """Return whether the event comes after the last one of its sender, and remember it if so."""
        if number <= self._numbers.get(sender, 0):
            return False
        self._numbers[sender] = number
        self._numbers.move_to_end(sender)
        if len(self._numbers) > self._most:
            self._numbers.popitem(last=False)
        return True

    def all(self) -> dict[bytes, int]:
        """Return {sender: number of its last event}."""
        return dict(self._numbers)


@dataclass(frozen=True, slots=True)
class Question:
    """A listener's request for a replay: the seconds since it began to listen, its prefixes, and the numbers that it has."""

    nonce: bytes
    age: float
    prefixes: tuple[bytes, ...]
    numbers: Mapping[bytes, int]

    @property
    def topic(self) -> bytes:
        """The topic by which the listener asks."""
        body: bytes = msgpack.packb([self.age, list(self.prefixes), dict(self.numbers)])
        return QUESTIONS + self.nonce + b"/" + body

    @property
    def replies(self) -> bytes:
        """The first frame of each reply."""
        return REPLIES + self.nonce

    def wants(self, frame: bytes, sender: bytes, number: int, age: float) -> bool:
        """Return whether the listener lacks an event, which came to the event publisher ``age`` seconds ago."""
        had = self.numbers.get(sender)
        if (age > self.age) if had is None else (number <= had):
            return False
        return frame.startswith(self.prefixes)


def read_question(topic: bytes) -> Question | None:
    """Return the Question in a topic; None if it is malformed."""
    nonce, _, body = topic.removeprefix(QUESTIONS).partition(b"/")
    try:
        age, prefixes, numbers = msgpack.unpackb(body, strict_map_key=False, raw=True)
        if not nonce or not isinstance(numbers, dict) or not all(isinstance(one, int) for one in numbers.values()):
            return None
        return Question(nonce, float(age), tuple(map(bytes, prefixes)), numbers)
    except (ValueError, TypeError, msgpack.UnpackException):
        return None


class EventOrder:
    """What a listener has received: passes each event once, and holds live events back while a replay is awaited."""

    def __init__(self, now: float) -> None:
        """Begin to listen at ``now``, seconds of a monotonic clock."""
        self._since = now
        self._last = LastNumbers()
        self._held: deque[Sequence[bytes]] = deque(maxlen=_MOST_HELD)
        #: First frame of the replies that are awaited, and until when; empty: none are.
        self._replies = b""
        self._deadline = 0.0

    @property
    def waits(self) -> bool:
        """Whether a replay is awaited."""
        return bool(self._replies)

    def ask(self, nonce: bytes, prefixes: Sequence[bytes], now: float) -> Question | None:
        """Return what to ask another event publisher, because the connection to one was lost; None if no event had an origin."""
        if not self._last and not self._replies:
            return None
        question = Question(nonce, now - self._since, tuple(prefixes), self._last.all())
        self._replies, self._deadline = question.replies, now + REPLAY_PATIENCE
        return question

    def take(self, message: Sequence[bytes]) -> Sequence[bytes]:
        """Take one message (its frames) from the event publisher, and return the events that the listener may have now, oldest
        first, each as the bytes of one frame: none while an earlier event is missing.
        """
        first = message[0]
        if first.startswith(REPLIES):
            if first != self._replies:
                # Another listener's.
                return ()
            return self._event(message[1:]) if len(message) > 1 else self._end()
        if self._replies:
            self._held.append(message)
            return ()
        return self._event(message)

    def overdue(self, now: float) -> Sequence[bytes]:
        """Return the events that were held back for a replay that does not end."""
        return self._end() if self._replies and now > self._deadline else ()

    def _event(self, message: Sequence[bytes]) -> Sequence[bytes]:
        if len(message) == 1:
            return message
        known = read_origin(message[1])
        return (message[0],) if known is None or self._last.is_new(*known) else ()

    def _end(self) -> Sequence[bytes]:
        self._replies = b""
        found = [event for message in self._held for event in self._event(message)]
        self._held.clear()
        return found
