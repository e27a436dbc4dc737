"""Two reactors of one master: each event is answered once, whoever of them lives; what cannot be answered is kept and said."""

from __future__ import annotations

import signal
from collections import Counter
from typing import Any

import pytest

from masterstore.event_codes import EventCodes
from masterstore.store import Store
from saltern.kit.keys.events_key import load_event_macs
from saltern.kit.links.event_bus import pack
from tests.ports import free_port
from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, Lab, until

pytestmark = pytest.mark.roles

#: Puts the number of its event into a job of its own.
COUNT = "count:\n  local.test.echo:\n    - tgt: web1\n    - args:\n      - text: number-{{ data['n'] }}\n"


@pytest.fixture(scope="module")
def twins(module_labs: NewLab, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A lab with one minion and two reactors."""
    place = tmp_path_factory.mktemp("sls")
    (place / "count.sls").write_text(COUNT)
    rows = [{"site/count": [str(place / "count.sls")]}, {"site/late": [str(place / "late.sls")]}]
    lab = module_labs(minions=("web1",), options={"reactor": rows, "reactor_tries": 1})
    lab.port["reactor2"] = free_port()
    lab.start_all()
    lab.start("reactor2")
    lab.await_ready("reactor2")
    (lab.root / "sls").symlink_to(place)
    return lab


def fire(lab: Lab, tag: str, first: int, count: int) -> None:
    """As a worker does."""
    codes = EventCodes(load_event_macs(lab.etc / "keys" / "mworker"))
    store = Store.open(lab.master_options.redis_url, client_name="test", event_codes=codes)
    for number in range(first, first + count):
        store.events.keep(pack(tag, {"n": number}), 1000)


def answered(lab: Lab) -> Counter[int]:
    """Number of an event -> jobs that answer it."""
    jobs = lab.runner("jobs.list_jobs", "search_function=test.echo")
    return Counter(int(job["Arguments"][0]["text"].removeprefix("number-")) for job in jobs.values())


def backlog(lab: Lab) -> float:
    return max(lab.metric(name, "salt_reactor_backlog") for name in ("reactor", "reactor2") if name in lab.processes)


def test_both_work_and_no_event_is_answered_twice(twins: Lab) -> None:
    assert twins.runner("event.send", "site/count", '{"n": 0}') is True
    fire(twins, "site/count", 1, 19)
    until(lambda: len(answered(twins)) == 20, SOON, "twenty answers")
    assert set(answered(twins).values()) == {1}
    assert [twins.metric(name, "salt_reactions_total") > 0 for name in ("reactor", "reactor2")] == [True, True]
    until(lambda: backlog(twins) == 0, SOON, "nothing is left")


def test_one_is_killed_with_events_in_hand(twins: Lab) -> None:
    """It holds some when it stops; the other takes them over, and what was asked for already is not asked again."""
    twins.processes["reactor2"].send_signal(signal.SIGSTOP)
    fire(twins, "site/count", 100, 10)
    twins.kill("reactor2")
    fire(twins, "site/count", 110, 10)
    until(lambda: set(range(100, 120)) <= set(answered(twins)), SOON, "twenty more answers")
    assert set(answered(twins).values()) == {1}
    twins.start("reactor2")
    twins.await_ready("reactor2")


def test_without_any_events_wait(twins: Lab) -> None:
    for name in ("reactor", "reactor2"):
        twins.kill(name, signal.SIGTERM)
    assert twins.runner("event.send", "site/count", '{"n": 200}') is True
    assert twins.runner("reactor.backlog")["waiting"] == 1
    twins.start("reactor")
    until(lambda: answered(twins)[200] == 1, SOON, "the event of the time without a reactor is answered")
    twins.await_ready("reactor")


def test_what_fails_is_listed_and_can_be_given_back(twins: Lab) -> None:
    def late() -> dict[str, Any]:
        # One try: an event that a killed reactor of the tests above had answered and not acknowledged is given up, too.
        return {one: told for one, told in twins.runner("reactor.dead").items() if told["tag"] == "site/late"}

    fire(twins, "site/late", 300, 1)
    dead = until(late, SOON, "the event is given up")
    ((one, told),) = dead.items()
    assert (told["tag"], told["data"]["n"], told["tries"]) == ("site/late", 300, 1)
    assert "there is no file" in told["why"]
    assert any("salt-run reactor.dead" in twins.log(name) for name in ("reactor", "reactor2"))
    (twins.root / "sls" / "late.sls").write_text(COUNT)
    assert twins.runner("reactor.retry", one) == [one]
    until(lambda: answered(twins)[300] == 1, SOON, "given back, it is answered")
    assert late() == {}
    for words, said in (
        (("reactor.retry", one), "no event"),
        (("reactor.drop", "nonsense"), "is no id of an event"),
        (("reactor.dead", "limit=none"), "limit is a number of events"),
    ):
        answer = twins.run("salt-run", *words)
        assert (answer.code, said in answer.out) == (1, True), answer
    dropped = twins.runner("reactor.drop", "all")
    assert one not in dropped
    # Events of the killed reactors can be given up between two commands, too.
    assert not set(dropped) & set(twins.runner("reactor.dead"))
    assert twins.tracebacks() == []
