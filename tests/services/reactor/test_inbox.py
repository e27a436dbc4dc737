"""The reactor's share of the events, over a real Redis: at least once, tried again, buried, taken over."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import redis

from masterstore.store import Store
from saltern.kit.config.master import MasterOptions
from saltern.kit.config.reactor_rows import rows_of
from saltern.kit.links.event_bus import pack
from saltern.kit.process.service import Role
from saltern.reactor import inbox as inbox_module
from saltern.reactor.inbox import GROUP, EventTask, Inbox
from saltern.reactor.table import ReactorTable
from tests.conftest import Eventually

pytestmark = pytest.mark.redis

ORDERS = "salt/reactors/manage/"


class Bench:
    """A master's reactors, without sockets: what they are given, and what they do with it is the test's."""

    def __init__(self, url: str, new_role: Callable[[str, MasterOptions], Role], options: MasterOptions) -> None:
        self.url, self.options = url, options
        self.store = Store.open(url, client_name="test")
        self._new_role = new_role
        self.reacted: list[tuple[str, str, int]] = []
        self.answers: list[tuple[str, Mapping[str, Any]]] = []
        #: Tag -> what its reactions fail with, one a try; the last for ever.
        self.fails: dict[str, list[str]] = {}
        self._numbers = itertools.count(1)
        self.held: list[EventTask] = []

    def reactor(self, url: str = "", rows: Any = None) -> Inbox:
        role = self._new_role("reactor", self.options)
        table = ReactorTable(rows_of(self.options.reactor if rows is None else rows), "master")
        store = Store.open(url or self.url, timeout=1.0, client_name="reactor")
        return Inbox(role, store, table, lambda tag, data: self.answers.append((tag, data)))

    def fire(self, tag: str, **data: Any) -> None:
        self.store.events.keep(pack(tag, data), 1000)

    def turn(self, one: Inbox, name: str = "one") -> None:
        """One time round; each event ends at once."""

        def react(task: EventTask) -> None:
            self.reacted.append((name, task.tag, task.tries))
            if task.tag == "held":
                self.held.append(task)
                return
            failures = self.fails.get(task.tag)
            if failures:
                why = failures.pop(0) if len(failures) > 1 else failures[0]
                if why.startswith("away"):
                    task.waits_for = why
                elif why:
                    task.failures.append(why)
            one.finished(task)

        one.poll(react)

    @property
    def tags(self) -> list[str]:
        return [tag for _, tag, _ in self.reacted]


@pytest.fixture
def bench(
    redis_url: str,
    new_role: Callable[[str, MasterOptions], Role],
    new_options: Callable[..., MasterOptions],
    monkeypatch: pytest.MonkeyPatch,
) -> Bench:
    monkeypatch.setattr(inbox_module, "_BLOCK", 20)
    monkeypatch.setattr(inbox_module, "PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setattr(inbox_module, "_ALIVE_EVERY", 0.0)
    monkeypatch.setattr(inbox_module, "_MEASURE_EVERY", 0.0)
    return Bench(redis_url, new_role, new_options(reactor=[{"site/*": ["/x.sls"]}], redis_url=redis_url))


def test_events_are_worked_on_in_order_and_done(bench: Bench) -> None:
    one = bench.reactor()
    bench.turn(one)
    for number in range(3):
        bench.fire(f"site/{number}")
    for _ in range(3):
        bench.turn(one)
    assert bench.tags == ["site/0", "site/1", "site/2"]
    assert (one.open_tasks, bench.store.event_groups.backlog(GROUP).in_hand) == (0, 0)
    assert bench.store.events.wanted() == {GROUP: ["salt/reactors/manage/*", "site/*"]}


def test_what_was_fired_shortly_before_the_first_reactor_counts(bench: Bench) -> None:
    bench.fire("site/early")
    one = bench.reactor()
    bench.turn(one)
    assert bench.tags == ["site/early"]


def test_two_share_the_work(bench: Bench) -> None:
    one, two = bench.reactor(), bench.reactor()
    for each, name in ((one, "one"), (two, "two")):
        bench.turn(each, name)
    for number in range(40):
        bench.fire(f"site/{number}")
        bench.turn((one, two)[number % 2], ("one", "two")[number % 2])
    assert sorted(bench.tags) == sorted(f"site/{number}" for number in range(40))
    assert {name for name, _, _ in bench.reacted} == {"one", "two"}


def test_a_reaction_that_fails_is_tried_again_and_then_buried(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    bench.fails = {"site/bad": ["first", "second", "third"], "site/once": ["sometimes", ""]}
    one = bench.reactor()
    bench.fire("site/bad", id="web1")
    bench.fire("site/once")
    for _ in range(6):
        bench.turn(one)
    assert [tries for _, tag, tries in bench.reacted if tag == "site/bad"] == [1, 2, 3]
    assert [tries for _, tag, tries in bench.reacted if tag == "site/once"] == [1, 2]
    (dead,) = bench.store.event_groups.dead(GROUP, 10)
    assert (dead.why, dead.tries) == ("third", 3)
    assert "an event site/bad is given up after 3 tries: third" in caplog.text
    assert one.open_tasks == 0
    # Given back, it is tried anew.
    bench.fails.clear()
    assert bench.store.event_groups.revive(GROUP, dead.id, 100)
    bench.turn(one)
    bench.turn(one)
    assert bench.reacted[-1] == ("one", "site/bad", 1)
    assert bench.store.event_groups.backlog(GROUP).dead == 0


def test_a_master_that_is_away_buries_nothing(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    bench.fails = {"site/up": ["away: no worker"] * 9 + [""]}
    one = bench.reactor()
    bench.fire("site/up")
    for _ in range(12):
        bench.turn(one)
    assert bench.tags == ["site/up"] * 10
    assert {tries for _, _, tries in bench.reacted} == {1}
    assert bench.store.event_groups.backlog(GROUP).dead == 0
    assert caplog.text.count("reactions to site/up wait: away: no worker") == 1


def test_who_dies_leaves_its_events_to_the_others(
    bench: Bench, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_module, "_SILENCE", 0.05)
    one, two = bench.reactor(), bench.reactor()
    bench.turn(one)
    bench.fire("held")
    bench.turn(one)
    assert bench.reacted == [("one", "held", 1)]

    def taken_over() -> bool:
        bench.turn(two, "two")
        return ("two", "held", 2) in bench.reacted

    eventually(taken_over)
    two.finished(bench.held[-1])
    bench.turn(two, "two")
    assert bench.store.event_groups.backlog(GROUP).in_hand == 0


def test_an_event_that_ends_every_reactor_is_buried(
    bench: Bench, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_module, "_SILENCE", 0.05)
    bench.turn(bench.reactor())
    bench.fire("held")
    for _ in range(5):
        one = bench.reactor()

        def seen(one: Inbox = one, before: int = len(bench.reacted)) -> bool:
            bench.turn(one)
            return len(bench.reacted) > before or bool(bench.store.event_groups.dead(GROUP, 1))

        eventually(seen)
    assert [tries for _, _, tries in bench.reacted] == [1, 2, 3]
    (dead,) = bench.store.event_groups.dead(GROUP, 10)
    assert dead.why == "3 reactors ended while they worked on it"


def test_who_ends_well_leaves_its_events_at_once(bench: Bench) -> None:
    one, two = bench.reactor(), bench.reactor()
    bench.turn(one)
    bench.fire("held")
    bench.turn(one)
    one.close()
    bench.turn(two, "two")
    assert bench.reacted[-1] == ("two", "held", 2)


def test_a_reaction_has_one_name_in_every_try(bench: Bench) -> None:
    """The master knows a request by it, and carries it out once."""
    one, two = bench.reactor(), bench.reactor()
    bench.turn(one)
    bench.fire("held")
    bench.turn(one)
    one.close()
    bench.turn(two)
    first, second = (task.request_id("/x.sls#0") for task in bench.held)
    assert first == second
    assert first != bench.held[0].request_id("/x.sls#1")


def test_without_redis_events_wait(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    away = bench.reactor("redis://127.0.0.1:1/0")
    for _ in range(3):
        bench.turn(away)
    assert caplog.text.count("events wait until that is over") == 1
    away.close()


def test_a_redis_that_was_emptied_is_begun_anew(bench: Bench) -> None:
    one = bench.reactor()
    bench.turn(one)
    with redis.Redis.from_url(bench.url) as raw:
        raw.flushall()
    bench.turn(one)
    bench.fire("site/after")
    bench.turn(one)
    bench.turn(one)
    assert bench.tags == ["site/after"]


def test_orders_are_obeyed_by_one_and_count_for_all(bench: Bench) -> None:
    one, two = bench.reactor(), bench.reactor()
    for each in (one, two):
        bench.turn(each)
    bench.fire(ORDERS + "add", event="new/*", reactors=["/y.sls"])
    bench.turn(one)
    bench.turn(two)
    ((tag, answer),) = bench.answers
    assert (tag, answer["result"]["status"]) == (ORDERS + "add-complete", True)
    bench.fire(ORDERS + "list")
    bench.turn(two)
    assert bench.answers[-1][1]["reactors"] == [{"site/*": ["/x.sls"]}, {"new/*": ["/y.sls"]}]
    assert bench.store.events.wanted() == {GROUP: ["new/*", "salt/reactors/manage/*", "site/*"]}
    # A reactor that is started later has it, one with another configuration brings its own.
    late = bench.reactor()
    bench.turn(late)
    bench.fire(ORDERS + "list")
    bench.turn(late)
    assert len(bench.answers[-1][1]["reactors"]) == 2
    other = bench.reactor(rows=[{"other/*": ["/z.sls"]}])
    bench.turn(other)
    bench.fire(ORDERS + "list")
    bench.turn(other)
    assert bench.answers[-1][1]["reactors"] == [{"other/*": ["/z.sls"]}]


def test_an_order_that_nobody_waits_for_is_not_obeyed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "_ORDER_SECONDS", -1.0)
    one = bench.reactor()
    bench.turn(one)
    bench.fire(ORDERS + "add", event="new/*", reactors=["/y.sls"])
    bench.turn(one)
    bench.turn(one)
    assert bench.answers == []
    assert "new/*" not in bench.store.events.wanted()[GROUP]
    assert bench.store.event_groups.backlog(GROUP).in_hand == 0


def test_figures_are_told(bench: Bench) -> None:
    bench.fails = {"site/bad": ["no"]}
    one = bench.reactor()
    bench.turn(one)
    bench.fire("held")
    bench.fire("site/bad")
    for _ in range(6):
        bench.turn(one)
    bench.turn(one)
    said = one._role.metrics.registry.text()
    assert "salt_reactor_backlog 1" in said
    assert "salt_reactor_dead 1" in said
    assert "salt_reactor_events_missed 0" in said


def test_noise_in_the_stream_is_passed_by(bench: Bench) -> None:
    one = bench.reactor()
    bench.turn(one)
    with redis.Redis.from_url(bench.url) as raw:
        raw.xadd("salt:events", {"strange": "entry"})
        raw.xadd("salt:events", {"n": "x", "event": b"\xff"})
    bench.fire("site/after")
    bench.turn(one)
    bench.turn(one)
    assert bench.tags == ["site/after"]
    assert bench.store.event_groups.backlog(GROUP).in_hand == 0
