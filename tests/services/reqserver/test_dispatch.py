"""The dispatcher as tables: what happens, and what is to be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest

from saltern.kit.links.worker_link import AGAIN
from saltern.reqserver.clear_header import ClearHeader
from saltern.reqserver.dispatch import (
    CALL_AFTER,
    DEFERRED_SECONDS,
    HANDOVER_GRACE,
    MAX_ATTEMPTS,
    WORKERLESS,
    Answer,
    Assign,
    Call,
    Dispatcher,
    GiveUp,
    Instruction,
    Refuse,
)
from saltern.reqserver.queue import Side
from saltern.reqserver.workers import CALL_PATIENCE

#: (time, name of the event, its arguments, what is to be done)
Step: TypeAlias = tuple[float, str, tuple[Any, ...], list[str]]


def shown(instructions: list[Instruction]) -> list[str]:
    """Instructions as short words: who gets which request, which answer goes where."""
    lines = []
    for one in instructions:
        match one:
            case Assign(worker, request):
                lines.append(f"hand {request.payload.decode()} to {worker.decode()}")
            case Answer(request, payload):
                lines.append(f"answer {request.route[0].decode()} {payload.decode()}")
            case Call(worker, wanted):
                lines.append(f"{'call' if wanted else 'do not call'} {worker.decode()}")
            case GiveUp(request, why):
                lines.append(f"give up {request.payload.decode()}: {why}")
            case Refuse(request, why):
                lines.append(f"refuse {request.payload.decode()}: {why}")
    return lines


def play(dispatcher: Dispatcher, steps: list[Step]) -> None:
    for now, event, arguments, wanted in steps:
        assert shown(tell(dispatcher, now, event, *arguments)) == wanted, f"{event} {arguments} at {now}"


def tell(dispatcher: Dispatcher, now: float, event: str, *arguments: Any) -> list[Instruction]:
    if event == "request":
        (payload,) = arguments
        return dispatcher.request(Side.MINION, (b"from-" + payload, b""), "", payload, now)
    if event == "tick":
        return dispatcher.tick(now)
    happening: list[Instruction] = getattr(dispatcher, event)(*arguments, now)
    return happening


@dataclass(frozen=True)
class Story:
    """A course of events."""

    name: str
    steps: list[Step]


STORIES = (
    Story(
        "a request goes to the idle worker and its answer back to the sender",
        [
            (0.0, "ready", (b"w1",), []),
            (0.1, "request", (b"a",), ["hand a to w1"]),
            (0.2, "reply", (b"w1", 1, b"done"), ["answer from-a done"]),
        ],
    ),
    Story(
        "requests wait while all are busy, first in first out",
        [
            (0.0, "ready", (b"w1",), []),
            (0.1, "request", (b"a",), ["hand a to w1"]),
            (0.2, "request", (b"b",), []),
            (0.3, "request", (b"c",), []),
            (0.4, "reply", (b"w1", 1, b"A"), ["hand b to w1", "answer from-a A"]),
            (0.5, "reply", (b"w1", 2, b"B"), ["hand c to w1", "answer from-b B"]),
        ],
    ),
    Story(
        "a request that came before any worker waits for one",
        [(0.0, "request", (b"a",), []), (1.0, "ready", (b"w1",), ["hand a to w1"])],
    ),
    Story(
        "the worker that became idle last works first",
        [
            (0.0, "ready", (b"w1",), []),
            (0.1, "ready", (b"w2",), []),
            (0.2, "request", (b"a",), ["hand a to w2"]),
            (0.3, "request", (b"b",), ["hand b to w1"]),
        ],
    ),
    Story(
        "a request that is answered later leaves its worker free, and is answered by whomever",
        [
            (0.0, "ready", (b"w1",), []),
            (0.1, "request", (b"a",), ["hand a to w1"]),
            (0.2, "request", (b"b",), []),
            (0.3, "defer", (b"w1", 1), ["hand b to w1"]),
            (0.4, "defer", (b"w1", 1), []),
            (0.5, "bye", (b"w1",), []),
            (9.0, "reply", (b"child", 1, b"A"), ["answer from-a A"]),
            (9.1, "reply", (b"child", 1, b"again"), []),
        ],
    ),
    Story(
        "what nobody answers later is forgotten at last",
        [
            (0.0, "ready", (b"w1",), []),
            (0.1, "request", (b"a",), ["hand a to w1"]),
            (0.2, "defer", (b"w1", 1), []),
            (DEFERRED_SECONDS, "ready", (b"w1",), []),
            (DEFERRED_SECONDS, "tick", (), []),
            (DEFERRED_SECONDS + 1, "tick", (), ["give up a: the process that was to answer it did not"]),
            (DEFERRED_SECONDS + 2, "reply", (b"child", 1, b"A"), []),
        ],
    ),
    Story(
        "a silent worker loses its request to another",
        [
            (0.0, "ready", (b"w1",), []),
            (0.1, "request", (b"a",), ["hand a to w1"]),
            (3.0, "ready", (b"w2",), []),
            (4.0, "tick", (), []),
            (4.1, "tick", (), ["hand a to w2"]),
            (4.2, "reply", (b"w2", 1, b"A"), ["answer from-a A"]),
        ],
    ),
    Story(
        "a worker whose connection has ended loses its request to another at once",
        [
            (0.0, "ready", (b"w1",), []),
            (0.1, "request", (b"a",), ["hand a to w1"]),
            (0.2, "request", (b"b",), []),
            (0.3, "ready", (b"w2",), ["hand b to w2"]),
            (0.4, "disconnected", ([b"w1"],), []),
            (0.5, "reply", (b"w2", 2, b"B"), ["hand a to w2", "answer from-b B"]),
            (0.6, "reply", (b"w1", 1, b"A"), []),
            (0.7, "reply", (b"w2", 1, b"A"), ["answer from-a A"]),
        ],
    ),
    Story(
        "a busy worker that pulses keeps its request",
        [
            (0.0, "ready", (b"w1",), []),
            (0.0, "request", (b"a",), ["hand a to w1"]),
            (3.9, "pulse", (b"w1",), []),
            (7.8, "tick", (), []),
            (7.8, "reply", (b"w1", 1, b"A"), ["answer from-a A"]),
        ],
    ),
    Story(
        "a worker that says goodbye gives its request back to the head of the queue",
        [
            (0.0, "ready", (b"w1",), []),
            (0.1, "request", (b"a",), ["hand a to w1"]),
            (0.2, "request", (b"b",), []),
            (0.3, "bye", (b"w1",), []),
            (0.4, "ready", (b"w2",), ["hand a to w2"]),
        ],
    ),
    Story(
        "the answer of a worker that was given up is not sent twice",
        [
            (0.0, "ready", (b"w1",), []),
            (0.0, "request", (b"a",), ["hand a to w1"]),
            (4.0, "ready", (b"w2",), []),
            (5.0, "tick", (), ["hand a to w2"]),
            (5.1, "reply", (b"w1", 1, b"late"), []),
            (5.2, "reply", (b"w2", 1, b"A"), ["answer from-a A"]),
            (5.3, "reply", (b"w2", 1, b"again"), []),
        ],
    ),
    Story(
        "a worker that was given up works again once it is ready",
        [
            (0.0, "ready", (b"w1",), []),
            (5.0, "tick", (), []),
            (5.1, "request", (b"a",), []),
            (5.2, "pulse", (b"w1",), []),
            (5.3, "reply", (b"w1", 9, b"late"), []),
            (5.4, "ready", (b"w1",), ["hand a to w1"]),
        ],
    ),
    Story(
        "a ready that crossed the request on the wire takes nothing back",
        [
            (0.0, "ready", (b"w1",), []),
            (1.0, "request", (b"a",), ["hand a to w1"]),
            (1.0 + HANDOVER_GRACE / 2, "ready", (b"w1",), []),
            (2.5, "reply", (b"w1", 1, b"A"), ["answer from-a A"]),
        ],
    ),
    Story(
        "a ready long after the request means that it was lost on its way",
        [
            (0.0, "ready", (b"w1",), []),
            (1.0, "request", (b"a",), ["hand a to w1"]),
            (1.0 + HANDOVER_GRACE, "ready", (b"w1",), ["hand a to w1"]),
            (3.0, "reply", (b"w1", 1, b"A"), ["answer from-a A"]),
        ],
    ),
    Story(
        "repeated readys of an idle worker make it one idle worker",
        [
            (0.0, "ready", (b"w1",), []),
            (1.0, "ready", (b"w1",), []),
            (1.1, "request", (b"a",), ["hand a to w1"]),
            (1.2, "request", (b"b",), []),
        ],
    ),
    Story(
        "without a worker a request is given up after the deadline",
        [
            (0.0, "request", (b"a",), []),
            (60.0, "tick", (), []),
            (60.1, "tick", (), ["give up a: no worker is connected"]),
            (60.2, "ready", (b"w1",), []),
        ],
    ),
    Story(
        "with busy workers the reason is another one, and what they hold is not given up",
        [
            (0.0, "ready", (b"w1",), []),
            (0.0, "request", (b"a",), ["hand a to w1"]),
            (0.0, "request", (b"b",), []),
            (0.5, "request", (b"c",), []),
            (59.0, "pulse", (b"w1",), []),
            (60.2, "tick", (), ["give up b: all 1 workers were busy for 60 s"]),
            (60.3, "reply", (b"w1", 1, b"A"), ["hand c to w1", "answer from-a A"]),
        ],
    ),
    Story(
        "words of strangers change nothing",
        [
            (0.0, "pulse", (b"w9",), []),
            (0.0, "bye", (b"w9",), []),
            (0.0, "reply", (b"w9", 1, b"?"), []),
            (0.1, "request", (b"a",), []),
            (0.2, "ready", (b"w1",), ["hand a to w1"]),
            (0.3, "reply", (b"w9", 1, b"forged"), []),
            (0.4, "reply", (b"w1", 2, b"other ticket"), []),
            (0.5, "reply", (b"w1", 1, b"A"), ["answer from-a A"]),
        ],
    ),
)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_stories(story: Story) -> None:
    play(Dispatcher(), story.steps)


def test_a_request_that_kills_workers_is_given_up() -> None:
    dispatcher = Dispatcher()
    assert shown(tell(dispatcher, 0, "request", b"poison")) == []
    for number in range(1, MAX_ATTEMPTS + 1):
        name = b"w%d" % number
        assert shown(tell(dispatcher, number, "ready", name)) == [f"hand poison to w{number}"]
        wanted = [] if number < MAX_ATTEMPTS else [f"give up poison: {MAX_ATTEMPTS} workers died over it"]
        assert shown(tell(dispatcher, number, "hung", name)) == wanted
    assert dispatcher.requeued == MAX_ATTEMPTS - 1
    assert dispatcher.refused == {"deadly": 1}
    assert not dispatcher.waiting.count
    assert not len(dispatcher.workers)


def test_a_worker_learns_that_another_died_over_the_request() -> None:
    """A request that came before has no effect, unless the worker before may have died with half of it done."""
    dispatcher = Dispatcher()
    tell(dispatcher, 0, "request", b"event")
    sides = []
    for number in range(MAX_ATTEMPTS):
        (assigned,) = tell(dispatcher, number, "ready", b"w%d" % number)
        assert isinstance(assigned, Assign)
        sides.append(assigned.request.side_for_worker)
        tell(dispatcher, number, "hung", b"w%d" % number)
    assert sides == [b"minion", *[AGAIN] * (MAX_ATTEMPTS - 1)]


def test_workers_that_end_well_do_not_count_against_what_they_never_read() -> None:
    dispatcher = Dispatcher()
    tell(dispatcher, 0, "request", b"a")
    for number in range(1, MAX_ATTEMPTS + 3):
        name = b"w%d" % number
        assert shown(tell(dispatcher, number, "ready", name)) == [f"hand a to w{number}"]
        assert shown(tell(dispatcher, number, "bye", name)) == []


def test_sides_clients_and_routes_travel_with_the_request() -> None:
    dispatcher = Dispatcher()
    dispatcher.ready(b"w1", 0)
    (hand,) = dispatcher.request(Side.CONTROL, (b"id", b"", b"42"), "cli", b"payload", 0)
    assert isinstance(hand, Assign)
    assert (hand.request.side, hand.request.client, hand.request.payload) == (Side.CONTROL, "cli", b"payload")
    (answer,) = dispatcher.reply(b"w1", hand.request.ticket, b"ok", 0)
    assert isinstance(answer, Answer)
    assert answer.request.route == (b"id", b"", b"42")


def test_busy_counts_workers_that_hold_a_request() -> None:
    dispatcher = Dispatcher()
    assert dispatcher.busy == 0
    dispatcher.ready(b"w1", 0)
    dispatcher.ready(b"w2", 0)
    assert dispatcher.busy == 0
    tell(dispatcher, 0, "request", b"a")
    assert dispatcher.busy == 1
    dispatcher.reply(b"w9", 7, b"late", 0)
    assert dispatcher.busy == 1, "a worker that was given up and answers late holds nothing"


def test_an_operator_is_told_soon_that_there_is_no_worker_and_a_minion_is_kept_waiting():
    dispatcher = Dispatcher(deadline=60.0)
    dispatcher.request(Side.MINION, (b"m",), "", b"return", 0.0)
    dispatcher.request(Side.CONTROL, (b"c",), "cli", b"publish", 0.0)
    assert dispatcher.tick(WORKERLESS) == []
    (given_up,) = dispatcher.tick(WORKERLESS + 0.1)
    assert isinstance(given_up, GiveUp)
    assert (given_up.request.payload, given_up.why) == (b"publish", "no worker is connected")
    assert [request.payload for request in dispatcher.waiting] == [b"return"]


# -------------------------------------------------------------------------------------------------------- several reqservers


def ready(dispatcher: Dispatcher, name: bytes, now: float, offer: bytes) -> list[str]:
    return shown(dispatcher.ready(name, now, offer=offer, reqservers=2))


def test_a_worker_that_goes_gives_an_unread_request_back() -> None:
    one = Dispatcher()
    assert ready(one, b"w1", 0.0, b"1") == []
    assert shown(tell(one, 0.1, "request", b"a")) == ["hand a to w1"]
    assert shown(one.away(b"w1", 0.2, "", 2)) == []
    assert (one.waiting.count, one.unread, one.requeued) == (1, 1, 0)
    assert ready(one, b"w2", 0.3, b"1") == ["hand a to w2"]
    # What the first worker says of it now is too late.
    assert shown(one.reply(b"w1", 1, b"late", 0.4)) == []
    assert shown(one.reply(b"w2", 1, b"done", 0.5)) == ["answer from-a done"]


def test_another_offer_means_that_the_request_before_was_not_read() -> None:
    one = Dispatcher()
    ready(one, b"w1", 0.0, b"1")
    tell(one, 0.1, "request", b"a")
    assert ready(one, b"w1", 0.11, b"1") == [], "sent before the request arrived"
    assert ready(one, b"w1", 0.12, b"2") == ["hand a to w1"]


def test_an_unread_request_counts_as_no_attempt() -> None:
    one = Dispatcher()
    ready(one, b"w1", 0.0, b"1")
    tell(one, 0.1, "request", b"a")
    for offer in range(2, 10):
        assert ready(one, b"w1", offer / 10, b"%d" % offer) == ["hand a to w1"]
    (worker,) = [one.workers.get(b"w1")]
    assert worker is not None
    assert worker.request is not None
    assert worker.request.side_for_worker == b"minion"


def test_workers_that_are_away_are_called_as_many_as_requests_wait() -> None:
    one = Dispatcher()
    for name in (b"w1", b"w2", b"w3"):
        one.away(name, 0.0, "", 2)
    assert shown(one.call(0.05)) == []
    tell(one, 0.1, "request", b"a")
    # Nobody is here, so nobody is waited for. The one that was last known to be idle is called first.
    assert shown(one.call(0.1)) == ["call w3"]
    assert shown(one.call(0.101)) == []
    # It is busy: the next one.
    assert shown(one.call(0.1 + CALL_PATIENCE)) == ["call w2"]
    assert ready(one, b"w2", 0.11, b"7") == ["hand a to w2"]
    assert shown(one.tick(0.2)) == ["do not call w3"]
    assert not one.calls_soon()


def test_a_request_waits_a_moment_for_a_worker_that_is_here() -> None:
    one = Dispatcher()
    ready(one, b"w1", 0.0, b"1")
    one.away(b"w2", 0.0, "", 2)
    tell(one, 0.1, "request", b"a")
    tell(one, 0.1, "request", b"b")
    assert shown(one.call(0.1)) == []
    assert one.calls_soon()
    assert shown(one.call(0.1 + CALL_AFTER)) == ["call w2"]


def test_nobody_is_called_for_a_request_that_may_not_start() -> None:
    one = Dispatcher(at_once=2)
    ready(one, b"w1", 0.0, b"1")
    one.away(b"w2", 0.0, "", 2)
    header = ClearHeader(sender=b"web1")
    for payload in (b"a", b"b"):
        one.request(Side.MINION, (payload, b""), "", payload, 0.1, header=header)
    # Each of two reqservers works on one request of the minion.
    assert shown(one.call(9.0)) == []
    one.request(Side.MINION, (b"c", b""), "", b"c", 0.1, header=ClearHeader(sender=b"web2"))
    assert shown(one.call(9.1)) == ["call w2"]


def test_the_last_answer_of_a_worker_that_goes() -> None:
    one = Dispatcher()
    ready(one, b"w1", 0.0, b"1")
    tell(one, 0.1, "request", b"a")
    tell(one, 0.1, "request", b"b")
    assert shown(one.reply(b"w1", 1, b"done", 0.2, last=True)) == ["answer from-a done"]
    assert (one.workers.away("default"), one.workers.here("default"), one.busy) == (1, 0, 0)


def test_rates_of_a_minion_are_parted_among_reqservers() -> None:
    def waits(reqservers: int) -> bool:
        one = Dispatcher(requests_per_second=1)
        one.ready(b"w1", 0.0, offer=b"1", reqservers=reqservers)
        header = ClearHeader(sender=b"web1")
        for number in range(8):
            one.request(Side.MINION, (b"%d" % number, b""), "", b"x", 0.0, header=header)
            one.reply(b"w1", number + 1, b"", 0.0)
        return bool(one.waiting.count)

    assert (waits(1), waits(2)) == (False, True)
