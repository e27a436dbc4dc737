"""What waits has an end, and no minion has all of it; pools by command."""

from __future__ import annotations

import msgpack
import pytest

from saltern.kit.config.worker_pools import Pools
from saltern.reqserver import clear_header
from saltern.reqserver.clear_header import ClearHeader
from saltern.reqserver.dispatch import RETRY_AFTER, WORKERLESS, Answer, Assign, Dispatcher, GiveUp, Instruction, Refuse
from saltern.reqserver.queue import Side

POOLS = Pools({"auth": 1, "slow": 1, "rest": 2}, {"_auth": "auth", "_pillar": "slow"}, "rest")


def ask(
    dispatcher: Dispatcher, sender: str, payload: bytes = b"x", cmd: str = "", now: float = 0.0
) -> list[Instruction]:
    header = ClearHeader(cmd, sender.encode())
    return dispatcher.request(Side.MINION, (sender.encode(), b""), "", payload, now, header=header, address="10.0.0.1")


def order(dispatcher: Dispatcher, payload: bytes = b"x", now: float = 0.0) -> list[Instruction]:
    return dispatcher.request(Side.CONTROL, (payload, b"", b"1"), "cli", payload, now, header=ClearHeader("publish"))


def refusals(dispatcher: Dispatcher) -> dict[str, int]:
    return dict(dispatcher.refused)


def test_more_than_the_count_are_refused_at_once() -> None:
    dispatcher = Dispatcher(max_count=2)
    assert ask(dispatcher, "web1") == ask(dispatcher, "web2") == []
    (refused,) = ask(dispatcher, "web3")
    assert isinstance(refused, Refuse)
    assert (refused.why, refused.retry_after) == ("too many requests wait already", RETRY_AFTER)
    (refused,) = order(dispatcher)
    assert isinstance(refused, Refuse)
    assert refusals(dispatcher) == {"count": 2}
    # What waits is not touched, and there is room again once one is worked on.
    assert isinstance(dispatcher.ready(b"w1", 1.0)[0], Assign)
    assert ask(dispatcher, "web3", now=1.0) == []


def test_more_than_the_bytes_are_refused_and_a_single_large_one_is_not() -> None:
    dispatcher = Dispatcher(max_bytes=1000)
    assert ask(dispatcher, "web1", b"x" * 2000) == []
    (refused,) = ask(dispatcher, "web2", b"x")
    assert isinstance(refused, Refuse)
    assert refused.why == "requests of too many bytes wait already"
    dispatcher.ready(b"w1", 1.0)
    assert ask(dispatcher, "web2", b"x") == []


@pytest.mark.parametrize(("payload", "most"), [(b"x", 10), (b"x" * 40, 2)], ids=["by count", "by bytes"])
def test_a_flood_of_one_minion_leaves_room_for_the_others(payload: bytes, most: int) -> None:
    dispatcher = Dispatcher(max_count=100, max_bytes=1000)
    told = [ask(dispatcher, "flood", b"%d" % number + payload) for number in range(50)]
    assert [bool(one) for one in told] == [False] * most + [True] * (50 - most)
    assert set(refusals(dispatcher)) == {"sender"}
    assert ask(dispatcher, "web1") == []
    # Under its name from elsewhere is somebody else.
    header = ClearHeader("", b"flood")
    assert dispatcher.request(Side.MINION, (b"other", b""), "", b"x", 0.0, header=header, address="10.0.0.2") == []


def test_one_minion_does_not_hold_all_workers() -> None:
    dispatcher = Dispatcher()
    for name in (b"w1", b"w2", b"w3"):
        dispatcher.ready(name, 0.0)
    told = [one for number in range(5) for one in ask(dispatcher, "flood", b"%d" % number)]
    assert [type(one) for one in told] == [Assign, Assign]
    (hand,) = ask(dispatcher, "web1")
    assert isinstance(hand, Assign)
    # Its next one is worked on when one of its own is done, not when another's is.
    assert [type(one) for one in dispatcher.reply(hand.worker, hand.request.ticket, b"", 1.0)] == [Answer]
    assert isinstance(told[0], Assign)
    assert [type(one) for one in dispatcher.reply(told[0].worker, told[0].request.ticket, b"", 1.0)] == [Assign, Answer]


def test_operators_take_turns_with_minions_and_have_no_bound_of_their_own() -> None:
    dispatcher = Dispatcher(max_count=100)
    for number in range(50):
        ask(dispatcher, f"web{number}")
    for number in range(12):
        order(dispatcher, b"order %d" % number)
    (first,) = dispatcher.ready(b"w1", 0.0)
    assert isinstance(first, Assign)
    answered = [first.request]
    for _ in range(5):
        hand, _ = dispatcher.reply(b"w1", answered[-1].ticket, b"", 0.0)
        assert isinstance(hand, Assign)
        answered.append(hand.request)
    assert [one.side for one in answered] == [Side.CONTROL, Side.MINION] * 3


def test_a_sign_in_takes_the_place_of_the_one_that_its_minion_has_given_up() -> None:
    """In a storm each minion sends another one after five seconds: answering the old ones would answer nobody."""
    dispatcher = Dispatcher()
    ask(dispatcher, "web1", b"first", "_auth")
    ask(dispatcher, "web2", b"other", "_auth")
    assert ask(dispatcher, "web1", b"second", "_auth", now=5.0) == []
    (hand,) = dispatcher.ready(b"w1", 6.0)
    assert isinstance(hand, Assign)
    assert hand.request.payload == b"second"
    assert dispatcher.waiting.count == 1


def test_a_request_that_is_sent_again_on_its_connection_waits_once() -> None:
    dispatcher = Dispatcher()
    ask(dispatcher, "web1", b"return")
    assert ask(dispatcher, "web1", b"return", now=4.0) == []
    assert dispatcher.waiting.count == 1
    ask(dispatcher, "web1", b"another", now=4.0)
    assert dispatcher.waiting.count == 2


def test_commands_wait_for_as_long_as_their_deadline() -> None:
    dispatcher = Dispatcher(deadline=60.0, deadlines={"_auth": 10.0})
    ask(dispatcher, "web1", cmd="_auth")
    ask(dispatcher, "web2")
    (gone,) = dispatcher.tick(10.5)
    assert isinstance(gone, GiveUp)
    assert gone.request.cmd == "_auth"
    assert refusals(dispatcher) == {"overdue": 1}


# ----------------------------------------------------------------------------------------------------------------------- pools


def test_workers_go_where_they_lack_most_or_are_told_to() -> None:
    dispatcher = Dispatcher(pools=POOLS)
    for name in (b"w1", b"w2", b"w3", b"w4"):
        dispatcher.ready(name, 0.0)
    assert {pool: dispatcher.workers.size(pool) for pool in POOLS.names} == dict(POOLS.workers)
    dispatcher.ready(b"w5", 0.0, "slow")
    assert dispatcher.workers.size("slow") == 2
    # One that ends leaves its place to the next.
    dispatcher.bye(b"w1", 0.0)
    dispatcher.ready(b"w6", 0.0)
    assert dispatcher.workers.size("rest") == 2


def test_a_sealed_request_is_opened_where_it_may_belong_and_then_goes_where_it_does() -> None:
    dispatcher = Dispatcher(pools=POOLS)
    dispatcher.ready(b"rest", 0.0, "rest")
    dispatcher.ready(b"slow", 0.0, "slow")
    (opened,) = ask(dispatcher, "web1", b"pillar")
    assert isinstance(opened, Assign)
    assert (opened.worker, opened.opening_pool) == (b"rest", "rest")
    (hand,) = dispatcher.wrong_pool(b"rest", opened.request.ticket, "slow", 0.0)
    assert isinstance(hand, Assign)
    assert (hand.worker, hand.opening_pool, hand.request.attempts) == (b"slow", "", 1)
    dispatcher.reply(b"slow", hand.request.ticket, b"", 0.0)
    # The next one of this connection is opened there first.
    (hand,) = ask(dispatcher, "web1", b"again")
    assert isinstance(hand, Assign)
    assert (hand.worker, hand.opening_pool) == (b"slow", "slow")
    assert dispatcher.handed_back == 1


def test_what_is_in_the_clear_goes_to_its_pool_at_once() -> None:
    dispatcher = Dispatcher(pools=POOLS)
    dispatcher.ready(b"rest", 0.0, "rest")
    assert ask(dispatcher, "web1", cmd="_auth") == []
    (hand,) = dispatcher.ready(b"auth", 0.0, "auth")
    assert isinstance(hand, Assign)
    assert (hand.worker, hand.opening_pool) == (b"auth", "")


def test_a_busy_pool_does_not_keep_others_from_opening_requests() -> None:
    dispatcher = Dispatcher(pools=POOLS)
    dispatcher.ready(b"rest", 0.0, "rest")
    dispatcher.ready(b"auth", 0.0, "auth")
    ask(dispatcher, "web1", b"file")
    (opened,) = ask(dispatcher, "web2", b"file")
    assert isinstance(opened, Assign)
    assert (opened.worker, opened.opening_pool) == (b"auth", "auth")
    # It waits for its own, and the worker of signing in is free again.
    assert dispatcher.wrong_pool(b"auth", opened.request.ticket, "rest", 0.0) == []
    assert dispatcher.workers.idle("auth") == b"auth"


def test_others_stand_in_for_a_pool_without_workers_after_a_while() -> None:
    dispatcher = Dispatcher(pools=POOLS)
    dispatcher.ready(b"rest", 0.0, "rest")
    ask(dispatcher, "web1", cmd="_auth")
    dispatcher.pulse(b"rest", 3.0)
    assert dispatcher.tick(WORKERLESS) == []
    (hand,) = dispatcher.tick(WORKERLESS + 0.1)
    assert isinstance(hand, Assign)
    assert (hand.worker, hand.opening_pool) == (b"rest", "")


def test_a_pool_that_is_none_here_means_the_one_of_the_rest() -> None:
    dispatcher = Dispatcher(pools=POOLS)
    dispatcher.ready(b"w1", 0.0, "gone")
    assert dispatcher.workers._by_name[b"w1"].pool == "rest"
    (opened,) = ask(dispatcher, "web1")
    assert isinstance(opened, Assign)
    (again,) = dispatcher.wrong_pool(b"w1", opened.request.ticket, "gone", 0.0)
    assert isinstance(again, Assign)
    assert (again.worker, again.opening_pool) == (b"w1", "")


def packed(value: object) -> bytes:
    made: bytes = msgpack.packb(value, use_bin_type=False)
    return made


@pytest.mark.parametrize(
    ("payload", "seen"),
    [
        (packed({"enc": "clear", "load": {"cmd": "_auth", "id": "web1"}, "version": 3}), ClearHeader("_auth", b"web1")),
        (packed({"enc": "aes", "load": b"\xff" * 99, "version": 3, "id": "web1"}), ClearHeader("", b"web1")),
        (packed({"enc": "aes", "load": b"\xff" * 99, "id": "web1", "patient": True}), ClearHeader("", b"web1", True)),
        (packed({"enc": "aes", "load": b"\xff" * 9999, "id": "web1", "patient": True}), ClearHeader("", b"web1", True)),
        (packed({"enc": "aes", "load": "x" * 99999, "id": "web1"}), ClearHeader("", b"web1")),
        (packed({"load": {"cmd": "x" * 5000}, "id": "web1"}), ClearHeader()),
        (packed({"id": ["web1"], "load": 7}), ClearHeader()),
        (packed([1, 2]), ClearHeader()),
        (packed({1: 2, None: 3}), ClearHeader()),
        (b"", ClearHeader()),
        (b"\xde", ClearHeader()),
        (b"\x81\xa2id", ClearHeader()),
        (b"\xdf" + b"\xff" * 9000, ClearHeader()),
        (b"\x8f" + b"\xdb\xff\xff\xff\xff" * 2000, ClearHeader()),
        (b"\x91" * 3000, ClearHeader()),
        (b"\x91" * 90000, ClearHeader()),
        (b"\xc1" * 10, ClearHeader()),
    ],
)
def test_what_a_request_shows(payload: bytes, seen: ClearHeader) -> None:
    assert clear_header.of_minion(payload) == seen


def test_what_an_operators_request_shows() -> None:
    assert clear_header.of_operator(msgpack.packb({"cmd": "publish", "arg": ["x" * 99999]})).cmd == "publish"
    assert clear_header.of_operator(msgpack.packb({"cmd": "publish", "arg": [1]})).cmd == "publish"
    assert clear_header.of_operator(b"garbage").cmd == ""
