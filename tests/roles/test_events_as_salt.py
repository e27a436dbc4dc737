"""A day at a master: its events beside what a stock master with a stock minion said of the same (tests/interop/events.json)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.interop import acts
from tests.interop.stock import Bus
from tests.roles.conftest import NewLab
from tests.roles.lab import STARTUP, until

pytestmark = pytest.mark.roles

RECORDED = Path(__file__).parents[1] / "interop" / "events.json"

#: Of the stock master alone: resources are not here.
NOT_HERE = frozenset({f"resource/refresh/{acts.MINION}"})

#: Of ours alone: the states of an orchestration are told of as those of minions are (docs/differences.md).
MORE_HERE = frozenset({"salt/job/JID/prog/master_master/N"})

#: In the data of stock minions alone: when they sent it, which ``_stamp`` says, and the publication that had them send it.
PASSED_OVER = ("ts", "data.__pub_")


def test_the_day_sounds_the_same(new_lab: NewLab, tmp_path: Path) -> None:
    for path, text in acts.TREE.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    options = {**acts.OPTIONS, "file_roots": {"base": [str(tmp_path)]}, "loop_interval": 1}
    lab = new_lab(minions=(acts.MINION,), options=options)
    lab.start_all(*lab.roles)
    bus = Bus.of_lab(lab)
    try:
        lab.start(acts.MINION)
        until(lambda: lab.keys()["minions_pre"] == [acts.MINION], STARTUP, "the minion's key waits")
        for words, tag in acts.ACTS:
            lab.run(*words)
            if tag:
                bus.await_event(tag)
        for tag in ("salt/presence/present", "salt/presence/change", "key", "salt/fileserver/roots/update"):
            bus.await_event(tag)
        heard = acts.reduced(bus.events())
    finally:
        bus.close()
    stock = json.loads(RECORDED.read_text())
    assert set(heard) - MORE_HERE == set(stock) - NOT_HERE
    lacking = {
        (tag, name)
        for tag, kinds in stock.items()
        for names in kinds
        if tag not in NOT_HERE and not any(_needed(names) <= set(ours) for ours in heard[tag])
        for name in _needed(names)
    }
    assert not lacking, {tag: heard[tag] for tag, _ in lacking}
    assert lab.tracebacks() == []


def _needed(names: list[str]) -> set[str]:
    return {name for name in names if not name.startswith(PASSED_OVER)}
