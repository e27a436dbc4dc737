"""What a minion does by itself: nothing is loaded before there is something, and each thing begins and ends when it should."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.duties import duties as module
from saltern.minion.duties.duties import Duties

PING = {"function": "test.ping", "seconds": 3600}


class Made:
    """Duties, and the events that they sent."""

    def __init__(self, directory: Path, **options: Any) -> None:
        self.sent: list[Any] = []
        cache, file = str(directory / "cache"), str(directory / "_schedule.conf")
        chosen = MinionOptions(id="web1", cachedir=cache, schedule_file=file, **options)
        self.duties = Duties(chosen, self.sent.extend)

    def due(self) -> list[str]:
        return [load.get("schedule", load["fun"]) for load in self.duties.due()]

    def listed(self) -> dict[str, Any]:
        answer: dict[str, Any] = dict(self.duties.answer({"area": "schedule", "verb": "list"}))["schedule"]
        return answer


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Made]:
    return lambda **options: Made(tmp_path, **options)


def test_an_idle_minion_loads_nothing(tmp_path: Path) -> None:
    program = (
        "import sys; from saltern.kit.config.minion_options import MinionOptions; from saltern.minion.duties.duties import Duties\n"
        f"duties = Duties(MinionOptions(id='m', cachedir={str(tmp_path)!r}), lambda events: None)\n"
        "duties.update({}, {}); assert list(duties.due()) == [] and not duties.beacon_process_due()\n"
        "own = ('saltern.minion.duties.schedule', 'saltern.minion.duties.beacons', 'statecore.system.scheduling',"
        " 'statecore.runtime.beacon_runs')\n"
        "print([name for name in sys.modules if name.startswith(own)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_schedule_begins_with_its_first_job(make: Callable[..., Made]) -> None:
    made = make(schedule={"configured": PING})
    assert made.due() == []
    made.duties.update({"schedule": {"of_pillar": PING}}, {})
    assert sorted(made.due()) == ["configured", "of_pillar"]
    later = make()
    later.duties.update({}, {})
    later.duties.answer({"area": "schedule", "verb": "add", "name": "added", "schedule": PING})
    assert later.due() == ["added"]
    with pytest.raises(ValueError, match="unknown area dance"):
        later.duties.answer({"area": "dance"})


def test_a_job_counts_as_running_until_its_process_ended(make: Callable[..., Made]) -> None:
    made = make(schedule={"j": PING})
    made.duties.update({}, {})
    (load,) = made.duties.due()

    def runs_again() -> bool:
        made.duties.answer({"area": "schedule", "verb": "run_job", "name": "j"})
        return made.due() == ["j"]

    assert not runs_again()
    made.duties.job_ended(load["jid"])
    assert runs_again()
    assert not runs_again()
    made.duties.zygote_lost()
    assert runs_again()


@pytest.mark.parametrize(
    ("options", "pillar", "own"),
    [
        ({}, {}, {}),
        ({"mine_functions": {"test.ping": []}}, {}, {"__mine_interval": "mine.update"}),
        ({"mine_functions": ["test.ping"], "mine_enabled": False}, {}, {}),
        ({}, {"mine_functions": {"test.ping": []}}, {"__mine_interval": "mine.update"}),
        ({"grains_refresh_every": 5}, {}, {"__update_grains": "saltutil.refresh_grains"}),
    ],
)
def test_jobs_of_the_minion_itself(
    make: Callable[..., Made], options: dict[str, Any], pillar: dict[str, Any], own: dict[str, str]
) -> None:
    made = make(**options)
    made.duties.update(pillar, {})
    assert {name: job["function"] for name, job in made.listed().items()} == own
    assert made.due() == (["__mine_interval"] if "__mine_interval" in own else [])
    made.duties.update({}, {})
    assert ("__mine_interval" in made.listed()) == (bool(own) and bool(options.get("mine_functions")))


@pytest.mark.parametrize(
    ("options", "fun", "arg"),
    [
        ({"startup_states": "highstate"}, "state.highstate", []),
        ({"startup_states": "sls", "sls_list": ["a", "b"]}, "state.sls", [["a", "b"]]),
        ({"startup_states": "top", "top_file": "other.sls"}, "state.top", ["other.sls"]),
    ],
)
def test_states_at_the_start(make: Callable[..., Made], options: dict[str, Any], fun: str, arg: list[Any]) -> None:
    made = make(**options)
    made.duties.update({}, {})
    (load,) = made.duties.due()
    assert (load["fun"], load["arg"], load["own"]) == (fun, arg, True)
    assert made.due() == []


def test_the_minion_tells_that_it_is_there(make: Callable[..., Made], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    clock = type("Clock", (), {"monotonic": staticmethod(lambda: now[0]), "time": staticmethod(time.time)})
    monkeypatch.setattr(module, "time", clock)
    made = make(ping_interval=2)
    made.duties.update({}, {})
    for passed in (0, 119, 1, 60, 60):
        now[0] += passed
        made.due()
    assert made.sent == [{"tag": "minion_ping", "data": {"data": "ping", "id": "web1"}}] * 2


def test_the_process_of_beacons_is_wanted_while_there_is_one(
    make: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(module, "time", type("Clock", (), {"monotonic": staticmethod(lambda: now[0])}))
    made = make()
    made.duties.update({}, {})
    assert not made.duties.beacon_process_due()
    made.duties.update({"beacons": {"load": []}}, {})
    assert made.duties.beacon_process_due()
    assert not made.duties.beacon_process_due()
    made.duties.beacon_process_ended()
    assert not made.duties.beacon_process_due()
    now[0] += 6
    assert made.duties.beacon_process_due()
    made.duties.zygote_lost()
    assert made.duties.beacon_process_due()
    made.duties.update({}, {})
    made.duties.beacon_process_ended()
    now[0] += 6
    assert not made.duties.beacon_process_due()
