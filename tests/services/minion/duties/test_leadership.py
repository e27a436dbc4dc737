"""What a minion has once: who holds the lock has it, and the next one when he ends."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.duties.leadership import PATIENCE, Leadership
from saltern.minion.jobs.spool import Spool
from saltern.minion.master.masters import Masters
from saltern.minion.master.other_masters import OtherMasters


def test_one_of_several_has_them(tmp_path: Path, eventually: Any) -> None:
    options = MinionOptions(id="m", cachedir=str(tmp_path))
    first, second = Leadership(options, shared=True), Leadership(options, shared=True)
    assert first.duties is second.duties is None
    assert first.claim() is True
    assert first.claim() is False
    assert second.claim() is False
    assert first.duties is not None
    assert second.duties is None
    first.close()
    eventually(second.claim)
    assert second.duties is not None
    second.close()


def test_whose_master_is_away_leaves_them_to_the_next(tmp_path: Path) -> None:
    every, file = {"function": "test.ping", "hours": 1}, tmp_path / "_schedule.conf"
    options = MinionOptions(
        id="m", cachedir=str(tmp_path), schedule={"j": every}, schedule_file=str(file), startup_states="highstate"
    )
    first, second = (Leadership(options, shared=True, start="today") for _ in range(2))

    def due(leadership: Leadership) -> list[str]:
        assert leadership.duties is not None
        leadership.duties.update({}, {})
        return [load["fun"] for load in leadership.duties.due()]

    now = time.monotonic()
    assert first.claim()
    assert due(first) == ["state.highstate", "test.ping"]
    assert first.duties is not None
    first.duties.answer({"area": "schedule", "verb": "add", "name": "k", "schedule": {**every, "run_on_start": False}})
    assert not first.release(connected=True, now=now)
    assert not first.release(connected=False, now=now)
    assert not first.release(connected=False, now=now + PATIENCE - 0.1)
    assert not second.release(connected=False, now=now + PATIENCE)
    second._next_try = 0.0
    assert not second.claim()
    assert first.release(connected=False, now=now + PATIENCE + 0.1)
    # It has its turn later.
    assert not first.claim()
    second._next_try = 0.0
    assert second.claim()
    # The minion did not start just now, and what was added counts.
    assert due(second) == []
    assert second.duties is not None
    assert second.duties.answer({"area": "schedule", "verb": "list"})["schedule"].keys() == {"j", "k"}
    # The first one goes on where it was.
    second.close()
    first._next_try = 0.0
    assert first.claim()
    assert due(first) == []
    first.close()
    # At the next start all begins anew.
    third = Leadership(options, shared=True, start="tomorrow")
    assert third.claim()
    assert due(third) == ["state.highstate", "test.ping"]
    third.close()


def test_one_alone_needs_no_lock(tmp_path: Path) -> None:
    leadership = Leadership(MinionOptions(id="m", cachedir=str(tmp_path)), shared=False)
    assert leadership.duties is not None
    assert leadership.claim() is False
    assert sorted(path.name for path in tmp_path.iterdir()) == ["minion.sock", "proc"]
    leadership.close()


def test_events_go_to_whomever_is_spoken_to(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    leadership = Leadership(MinionOptions(id="m", cachedir=str(tmp_path), ping_interval=1), shared=False)
    duties = leadership.duties
    assert duties is not None
    heard: list[Any] = []
    leadership.set_sender(heard.extend)
    duties._next_ping = 1e-9
    list(duties.due())
    assert [event["tag"] for event in heard] == ["minion_ping"]
    leadership.close()


def test_at_the_next_master_beacons_look_and_the_schedule_runs_again(tmp_path: Path) -> None:
    job = {"function": "test.ping", "hours": 1}
    options = MinionOptions(id="m", cachedir=str(tmp_path), beacons={"load": [{"interval": 1}]}, schedule={"j": job})
    leadership = Leadership(options, shared=False)
    duties = leadership.duties
    assert duties is not None
    leadership.set_sender(lambda events: None)
    duties.update({}, {})
    assert [load["schedule"] for load in duties.due()] == ["j"]
    assert (duties.beacon_process_due(), duties.beacon_process_due()) == (True, False)
    # The preloaded process of the first master ends with it, and tells nobody of its jobs any more.
    leadership.set_sender(lambda events: None)
    assert duties.beacon_process_due() is True
    duties.answer({"area": "schedule", "verb": "run_job", "name": "j"})
    assert [load["schedule"] for load in duties.due()] == ["j"]
    leadership.close()


def test_what_others_are_to_hear_waits_for_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options = MinionOptions(id="m", cachedir=str(tmp_path), spool_max_bytes=200)
    others = OtherMasters(Masters("a", ("a", "b", "c")), options)
    others.send({"cmd": "_mine", "data": {"x": 1}})
    others.send({"cmd": "_return", "jid": "20260101000000000000", "return": "y" * 400})
    with caplog.at_level(logging.ERROR):
        others.send({"cmd": "_mine", "data": {}})
    assert "its spool has more than spool_max_bytes" in caplog.text
    for name in ("b", "c"):
        spool = Spool(tmp_path / "masters" / name / "spool")
        assert [spool.read(path)["cmd"] for path in spool.waiting()] == ["_mine", "_return"]  # type: ignore[index]
    assert not (tmp_path / "masters" / "a").exists()
    OtherMasters(Masters("a"), options).send({"cmd": "_mine"})
