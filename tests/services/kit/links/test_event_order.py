"""Several event publishers: each event once, in its sender's order, whichever of them dies and whatever is repeated."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saltern.eventpublisher.history import History
from saltern.kit.links.event_links import Kept
from saltern.kit.links.event_order import (
    QUESTIONS,
    REPLAY_PATIENCE,
    REPLIES,
    EventOrder,
    LastNumbers,
    Question,
    origin,
    read_origin,
    read_question,
)

ANN, BOB = b"ann-----", b"bob-----"


def event(sender: bytes, number: int, prefix: bytes = b"a/") -> list[bytes]:
    return [prefix + sender + b" %d" % number, origin(sender, number)]


def test_an_origin_is_read_back() -> None:
    assert read_origin(origin(ANN, 7)) == (ANN, 7)
    assert read_origin(b"") is None


def test_a_question_is_read_back() -> None:
    asked = Question(b"n0", 1.5, (b"salt/", b""), {ANN: 3})
    assert read_question(asked.topic) == asked


@pytest.mark.parametrize(
    "topic",
    [QUESTIONS, QUESTIONS + b"n/", QUESTIONS + b"n/\xc1", QUESTIONS + b"n/\x93\x01\x90\x91", QUESTIONS + b"/\x01"],
)
def test_a_malformed_question_is_none(topic: bytes) -> None:
    assert read_question(topic) is None


def test_only_the_last_senders_are_remembered() -> None:
    last = LastNumbers(most=2)
    assert [last.is_new(one, 1) for one in (b"a", b"b", b"a", b"c", b"b", b"a")] == [
        True,
        True,
        False,
        True,
        False,
        True,
    ]


def test_events_without_an_origin_pass() -> None:
    order = EventOrder(0.0)
    assert order.take([b"tag\n\nx"]) == [b"tag\n\nx"]
    assert order.ask(b"n", (b"",), 1.0) is None


def test_live_events_wait_for_the_replay() -> None:
    order = EventOrder(0.0)
    assert order.take(event(ANN, 1)) == (event(ANN, 1)[0],)
    question = order.ask(b"n", (b"a/",), 2.0)
    assert question == Question(b"n", 2.0, (b"a/",), {ANN: 1})
    assert order.take(event(ANN, 4)) == ()
    assert order.take([REPLIES + b"of another", *event(ANN, 9)]) == ()
    assert [list(order.take([question.replies, *event(ANN, number)])) for number in (2, 3, 4)] == [
        [event(ANN, number)[0]] for number in (2, 3, 4)
    ]
    assert order.take([question.replies]) == []
    assert not order.waits
    assert order.take(event(ANN, 4)) == ()
    assert order.take(event(ANN, 5)) == (event(ANN, 5)[0],)


def test_a_replay_that_does_not_end_holds_nothing_for_long() -> None:
    order = EventOrder(0.0)
    order.take(event(ANN, 1))
    order.ask(b"n", (b"",), 2.0)
    order.take(event(ANN, 2))
    assert order.overdue(2.0 + REPLAY_PATIENCE) == ()
    assert order.overdue(2.1 + REPLAY_PATIENCE) == [event(ANN, 2)[0]]


def test_the_history_gives_what_a_listener_lacks() -> None:
    history = History()
    for at, one in enumerate([event(ANN, 1), event(BOB, 1), event(ANN, 2, b"b/"), event(ANN, 3), event(BOB, 2)]):
        assert history.add(*one, float(at))
    # It knows Ann's first event, and has listened for two seconds: Bob's first one came before.
    asked = Question(b"n", 2.0, (b"a/",), {ANN: 1})
    assert list(history.replay(asked, 4.5)) == [
        [asked.replies, *event(ANN, 3)],
        [asked.replies, *event(BOB, 2)],
        [asked.replies],
    ]


def test_the_history_drops_what_came_before() -> None:
    history = History()
    assert [history.add(*event(ANN, number), 0.0) for number in (1, 2, 1, 2, 3)] == [True, True, False, False, True]
    assert len(history) == 3


@pytest.mark.parametrize(
    ("history", "left"),
    [(History(seconds=2.5), 3), (History(events=4), 4), (History(size=5 * len(event(ANN, 1)[0])), 5)],
    ids=["seconds", "events", "bytes"],
)
def test_the_history_is_bounded(history: History, left: int) -> None:
    for number in range(1, 10):
        history.add(*event(ANN, number), float(number))
    assert len(history) == left


def test_what_a_sender_keeps_is_bounded() -> None:
    kept = Kept(seconds=10.0, events=3, size=1000)
    for number in range(1, 6):
        kept.add(event(ANN, number), float(number))
    assert kept.since(6.0) == [event(ANN, number) for number in (3, 4, 5)]
    assert kept.since(14.5) == [event(ANN, 5)]


# ---------------------------------------------------------------------------------------------------------- all together


@dataclass
class Bus:
    """Two event publishers, senders and one listener. A connection keeps the order of what it carries, until it is lost."""

    seed: int
    now: float = 100.0
    histories: list[History] = field(default_factory=lambda: [History(), History()])
    #: On the way: (sender, event publisher) -> messages.
    up: dict[tuple[bytes, int], deque[list[bytes]]] = field(default_factory=dict)
    down: deque[list[bytes]] = field(default_factory=deque)
    heard: list[bytes] = field(default_factory=list)
    fired: dict[bytes, list[bytes]] = field(default_factory=lambda: {ANN: [], BOB: []})
    kept: dict[bytes, Kept] = field(default_factory=lambda: {ANN: Kept(), BOB: Kept()})

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.order = EventOrder(self.now)
        self.at = 0
        self.asked: Question | None = None
        self.up = {(sender, number): deque() for sender in self.fired for number in (0, 1)}

    def fire(self) -> None:
        sender = self.random.choice((ANN, BOB))
        message = event(sender, len(self.fired[sender]) + 1)
        self.fired[sender].append(message[0])
        self.kept[sender].add(message, self.now)
        for number in (0, 1):
            self.up[sender, number].append(message)

    def arrive(self) -> None:
        """An event publisher receives a message, and sends it to the listener if that is connected to it."""
        sender, number = self.random.choice(list(self.up))
        if self.up[sender, number]:
            message = self.up[sender, number].popleft()
            if self.histories[number].add(*message, self.now) and number == self.at:
                self.down.append(message)

    def hear(self) -> None:
        if self.down:
            self.heard += self.order.take(self.down.popleft())

    def die(self) -> None:
        """The listener's event publisher is killed, with all that it holds; another one is started in its place."""
        dead, self.at = self.at, 1 - self.at
        self.down.clear()
        self.histories[dead] = History()
        for sender in self.fired:
            # What was on the way is lost; the sender sends what it has kept over the next connection.
            self.up[sender, dead] = deque(self.kept[sender].since(self.now))
        question = self.order.ask(b"%d" % self.random.randrange(2**32), (b"a/",), self.now)
        if question is not None:
            read = read_question(question.topic)
            assert read is not None
            self.down.extend(self.histories[self.at].replay(read, self.now))

    def cut(self) -> None:
        """A connection between a sender and an event publisher is lost."""
        sender, number = self.random.choice(list(self.up))
        self.up[sender, number] = deque(self.kept[sender].since(self.now))


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_each_event_comes_once_and_in_order(seed: int) -> None:
    bus = Bus(seed)
    # The listener has heard of both.
    for sender in (ANN, BOB):
        message = event(sender, 1)
        bus.fired[sender].append(message[0])
        bus.heard += bus.order.take(message)
        for history in bus.histories:
            history.add(*message, bus.now)
    for _ in range(300):
        bus.now += 0.001
        bus.random.choice((bus.fire, bus.arrive, bus.arrive, bus.arrive, bus.hear, bus.hear))()
        if bus.random.random() < 0.02:
            bus.random.choice((bus.die, bus.cut))()
    for _ in range(5000):
        bus.arrive()
        bus.hear()
    for sender, fired in bus.fired.items():
        assert [one for one in bus.heard if sender in one] == fired
