"""The outbox as a machine: one thing in flight, again after a pause, nobody in the way of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saltern.minion.jobs.outbox import Outbox
from saltern.minion.jobs.spool import Spool


@pytest.fixture
def box(tmp_path: Path) -> Outbox:
    return Outbox(Spool(tmp_path / "spool"), shortest=5.0, longest=10.0)


def put(box: Outbox, *names: str) -> None:
    for name in names:
        box.spool.put({"jid": name, "fun": "a", "return": 1})
    box.spooled()


def sent(box: Outbox, now: float) -> Any:
    load = box.next_request(now)
    return load and (load.get("jid") or load.get("tag"))


def test_returns_leave_in_order_one_at_a_time(box: Outbox) -> None:
    put(box, "1", "2")
    assert sent(box, 0) == "1"
    assert sent(box, 0) is None
    box.answered()
    assert sent(box, 0) == "2"
    box.answered()
    assert sent(box, 0) is None
    assert box.spool.waiting() == []


def test_what_was_left_by_an_earlier_life_is_sent_first(box: Outbox, tmp_path: Path) -> None:
    put(box, "1")
    again = Outbox(Spool(tmp_path / "spool"), 5.0, 10.0)
    assert sent(again, 0) == "1"


def test_events_come_before_returns_and_are_sent_once(box: Outbox) -> None:
    put(box, "1")
    box.events.extend([{"tag": "start"}, {"tag": "ready"}])
    seen = []
    for _ in range(3):
        seen.append(sent(box, 0))
        box.answered()
    assert seen == ["start", "ready", "1"]
    assert not box.events


def test_a_master_that_is_slow_for_long_gets_more_time(box: Outbox) -> None:
    """Else each answer comes after it was given up, and nothing of this minion ever gets through."""
    put(box, "1")
    now = 0.0
    for _ in range(6):
        assert sent(box, now) == "1"
        now += 100
        assert box.overdue(now)
        box.unanswered(now)
        now += 100
    assert sent(box, now) == "1"
    assert not box.overdue(now + 19.9)
    assert box.overdue(now + 40.1)
    box.answered()
    put(box, "2")
    assert sent(box, now) == "2"
    assert box.overdue(now + 10.1)


def test_an_unacknowledged_return_stays_and_is_sent_again(box: Outbox) -> None:
    put(box, "1")
    assert sent(box, 0) == "1"
    assert not box.overdue(4.9)
    assert box.overdue(10.1)
    box.failed(10.1)
    assert len(box.spool.waiting()) == 1
    assert sent(box, 10.2) is None
    assert sent(box, 20.0) == "1"
    box.answered()
    assert box.spool.waiting() == []


def test_the_pause_grows_to_an_end_and_is_forgotten_after_a_success(box: Outbox) -> None:
    put(box, "1")
    pauses, now = [], 0.0
    for _ in range(8):
        assert sent(box, now) == "1"
        box.failed(now)
        pauses.append(box._due - now)
        now = box._due
    for number, pause in enumerate(pauses):
        doubled = 2 ** min(number, 4) / 4
        assert 5.0 * doubled <= pause <= 10.0 * doubled
    assert sent(box, now) == "1"
    box.answered()
    put(box, "2")
    assert sent(box, now) == "2"


def test_a_return_that_is_refused_is_not_in_the_way_of_the_others(box: Outbox) -> None:
    put(box, "poison", "1", "2")
    now, order = 0.0, []
    for _ in range(5):
        name = sent(box, now)
        order.append(name)
        if name == "poison":
            box.failed(now)
            now = box._due
        else:
            box.answered()
    assert order == ["poison", "1", "2", "poison", "poison"]


def test_two_that_are_refused_take_turns(box: Outbox) -> None:
    put(box, "a", "b")
    now, order = 0.0, []
    for _ in range(6):
        order.append(sent(box, now))
        box.failed(now)
        now = box._due
    assert order == ["a", "b", "a", "b", "a", "b"]


def test_an_event_that_is_refused_is_not_in_the_way_of_returns(box: Outbox) -> None:
    box.events.append({"tag": "refused"})
    put(box, "1", "2")
    now, order = 0.0, []
    for _ in range(5):
        name = sent(box, now)
        order.append(name)
        if name == "refused":
            box.failed(now)
            now = box._due
        else:
            box.answered()
    assert order[0] == "refused"
    assert {"1", "2"} <= set(order)
    assert box.spool.waiting() == []


def test_a_broken_file_is_passed_over(box: Outbox, tmp_path: Path) -> None:
    (tmp_path / "spool" / "0-broken.ret").write_bytes(b"\xc1")
    put(box, "1")
    assert sent(box, 0) == "1"


def test_the_directory_is_read_only_when_something_may_have_come(box: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sent(box, 0) is None
    looks: list[int] = []
    monkeypatch.setattr(box.spool, "waiting", lambda: looks.append(1) or [])
    for _ in range(5):
        assert sent(box, 0) is None
    assert looks == []
    box.spooled()
    assert sent(box, 0) is None
    assert looks == [1]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(["put", "event", "ok", "fail", "time"]), max_size=40))
def test_everything_leaves_once_the_master_takes_it(box: Outbox, happenings: list[str]) -> None:
    now, number, acknowledged, put_in = 0.0, 0, [], []
    for what in [*happenings, *["ok"] * 100]:
        if what == "put":
            number += 1
            put(box, f"r{number}")
            put_in.append(f"r{number}")
        elif what == "event":
            number += 1
            box.events.append({"tag": f"e{number}"})
            put_in.append(f"e{number}")
        elif what == "time":
            now += 3.0
        else:
            now = max(now, box._due)
            name = sent(box, now)
            if name is not None and what == "ok":
                box.answered()
                acknowledged.append(name)
            elif name is not None:
                box.failed(now)
    assert sorted(acknowledged) == sorted(put_in)
    assert not box.spool.waiting()


def silent(box: Outbox, now: float) -> Any:
    """Sends the next, which gets no answer until it is overdue; returns the load."""
    load = box.next_request(max(now, box._due))
    assert box.overdue(1e9)
    box.unanswered(max(now, box._due))
    return load


def test_a_large_return_that_the_master_never_reads_is_given_up(box: Outbox) -> None:
    """It closes the connection on what is too large for it, without a word: the minion finds out that it is there."""
    box.spool.put({"jid": "1", "fun": "test.large", "return": "x" * 100_000})
    box.spooled()
    for _ in range(3):
        assert silent(box, 0)["return"] == "x" * 100_000
        assert box.next_request(box._due) == {"cmd": "_file_envs"}
        box.answered()
    load = box.next_request(box._due)
    assert load is not None
    assert (load["jid"], load["retcode"], load["success"]) == ("1", 1, False)
    assert load["return"].startswith("ReturnTooLarge: what test.large returned is 100")
    box.answered()
    assert box.spool.waiting() == []


def test_a_large_return_waits_for_a_master_that_is_away(box: Outbox) -> None:
    box.spool.put({"jid": "1", "fun": "test.large", "return": "x" * 100_000})
    box.spooled()
    asked = [silent(box, 0) for _ in range(20)]
    assert {load.get("cmd") for load in asked} == {None, "_file_envs"}
    while (load := box.next_request(box._due)) == {"cmd": "_file_envs"}:
        box.answered()
    assert load is not None
    assert load["return"] == "x" * 100_000
    box.answered()
    assert box.spool.waiting() == []


def test_small_returns_are_sent_for_as_long_as_it_takes(box: Outbox) -> None:
    put(box, "1")
    assert [silent(box, 0)["jid"] for _ in range(20)] == ["1"] * 20


def test_a_large_return_has_longer_for_its_answer(box: Outbox) -> None:
    box.spool.put({"jid": "1", "fun": "test.large", "return": "x" * 20_000_000})
    box.spooled()
    assert box.next_request(0.0) is not None
    assert not box.overdue(23.0)
    assert box.overdue(31.0)


def test_a_busy_master_is_left_alone_for_as_long_as_it_says_and_no_two_minions_as_long(box: Outbox) -> None:
    put(box, "1")
    pauses = []
    for number in range(20):
        began = 1000.0 * number
        assert box.next_request(began) is not None
        box.refused(began, 5.0)
        assert box.next_request(began + 4.9) is None
        pauses.append(next(tenth / 10 for tenth in range(49, 120) if box.next_request(began + tenth / 10)))
        box.refused(began, 0.0)
    assert all(5.0 <= pause <= 10.1 for pause in pauses)
    assert len(set(pauses)) > 3, "minions that were refused together do not come back together"
