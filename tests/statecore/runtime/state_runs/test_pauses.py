"""What a run in progress is told, and what it makes of that."""

from __future__ import annotations

import pytest

from statecore.host.content import data_files
from statecore.model.errors import CommandError
from statecore.runtime.state_runs import pauses

JID = "20260102030405678901"


class Clock:
    """Time passes while somebody waits; ``then`` happens at a moment."""

    def __init__(self, then=None, at=1.0):
        self.now, self.then, self.at = 0.0, then, at

    def wait(self, seconds):
        self.now += seconds
        assert self.now < 60, "nobody let it go on"
        if self.then and self.now >= self.at:
            self.then()

    def gate(self, place):
        return pauses.Gate(pauses.FileOrders(place / JID), self.wait, lambda: self.now)


@pytest.mark.parametrize(
    ("orders", "goes_on", "waited"),
    [
        ({}, True, 0),
        ({"git": {"kill": True}}, True, 0),
        ({"vim": {"kill": True}}, False, 0),
        ({"__all__": {"kill": True}}, False, 0),
        ({"vim": {"duration": 3}}, True, 3),
        ({"__all__": {"duration": 3}}, True, 3),
        # What is said of the very state counts.
        ({"vim": {"duration": 2}, "__all__": {"kill": True}}, True, 2),
        ({"vim": {"duration": 2, "kill": True}}, False, 0),
    ],
)
def test_a_state_is_told(tmp_path, orders, goes_on, waited):
    pauses.give(tmp_path, JID, orders)
    clock = Clock()
    assert clock.gate(tmp_path).may_go_on({"__id__": "vim"}) is goes_on
    assert clock.now == waited


def test_nothing_was_told(tmp_path):
    assert Clock().gate(tmp_path / "absent").may_go_on({"__id__": "vim"})


def test_a_pause_lasts_until_it_is_taken_back(tmp_path):
    pauses.give(tmp_path, JID, {"vim": {}})
    clock = Clock(lambda: pauses.give(tmp_path, JID, {}), at=5)
    assert clock.gate(tmp_path).may_go_on({"__id__": "vim"})
    assert clock.now >= 5


def test_a_paused_run_can_be_ended(tmp_path):
    pauses.give(tmp_path, JID, {"__all__": {}})
    clock = Clock(lambda: pauses.give(tmp_path, JID, {"__all__": {"kill": True}}))
    assert not clock.gate(tmp_path).may_go_on({"__id__": "vim"})


def test_damaged_orders_stop_nothing(tmp_path):
    (tmp_path / JID).write_bytes(b"\xc1")
    assert Clock().gate(tmp_path).may_go_on({"__id__": "vim"})


def test_the_end_of_a_run_forgets_its_orders(tmp_path):
    pauses.give(tmp_path, JID, {"vim": {}})
    gate = Clock().gate(tmp_path)
    gate.end()
    gate.end()
    assert list(tmp_path.iterdir()) == []


def test_kept_files(tmp_path):
    place = tmp_path / "deep" / "er"
    assert data_files.load(place) is None
    data_files.store(place, {"a": [1, {2}], 3: None})
    assert data_files.load(place) == {"a": [1, "{2}"], 3: None}
    assert place.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in place.parent.iterdir()] == ["er"]
    assert data_files.remove(place) is True
    assert data_files.remove(place) is False
    ring: list = []
    ring.append(ring)
    with pytest.raises(CommandError, match="cannot be stored"):
        data_files.store(place, ring)
    with pytest.raises(CommandError, match="cannot be read"):
        data_files.load(tmp_path / "deep")


@pytest.mark.parametrize(("name", "plain"), [("a", True), ("2026", True), ("..", False), ("a/b", False), ("", False)])
def test_plain_names(name, plain):
    assert data_files.is_plain(name) is plain
