"""The minion's schedule: where jobs come from, what is handed out, what changes and is saved."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from saltern.kit.config.minion_options import load_minion
from saltern.minion.duties.schedule import Schedule
from statecore.system.scheduling.due import Clock

START = datetime(2026, 3, 14, 12, 0, 0)


class Time:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.passed = 0.0

    def __call__(self) -> Clock:
        return Clock(START + timedelta(seconds=self.passed), 1000.0 + self.passed)


class Made:
    """A schedule and what surrounds it."""

    def __init__(self, file: Path, configured: dict[str, Any] | None = None, **more: Any) -> None:
        self.file = file
        self.time = Time()
        self.running: dict[str, int] = {}
        self.schedule = Schedule("web1", configured or {}, file, draw=lambda low, high: low, clock=self.time, **more)

    def due(self, seconds: float = 0) -> list[dict[str, Any]]:
        self.time.passed += seconds
        return list(self.schedule.due(lambda name: self.running.get(name, 0)))

    def names(self, seconds: float = 0) -> list[str]:
        return [load["schedule"] for load in self.due(seconds)]

    def manage(self, verb: str, **request: Any) -> dict[str, Any]:
        return self.schedule.manage({"verb": verb, **request})

    def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.manage("job_status", name=name)["data"]
        return found

    @property
    def saved(self) -> Any:
        return yaml.safe_load(self.file.read_text())["schedule"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "minion.d" / "_schedule.conf"


PING = {"function": "test.ping", "seconds": 20}


def test_what_is_handed_out(file: Path) -> None:
    job = {
        "function": "cmd.run",
        "args": ["echo a=b"],
        "kwargs": {"cwd": "/tmp"},
        "seconds": 20,
        "return_job": "nocache",
        "returner": ["redis", "local_cache"],
        "return_config": "other",
        "return_kwargs": {"redis.host": "h"},
        "metadata": {"why": "nightly"},
    }
    made = Made(file, {"j": job}, returners="local_cache,syslog")
    (load,) = made.due()
    metadata = load.pop("metadata")
    assert (metadata["why"], sorted(metadata)) == ("nightly", ["_TOS", "_TS", "_TT", "why"])
    assert len(load.pop("jid")) == 20
    assert load == {
        "fun": "cmd.run",
        "arg": ["echo a=b", {"__kwarg__": True, "cwd": "/tmp"}],
        "tgt": "web1",
        "tgt_type": "glob",
        "own": True,
        "schedule": "j",
        "jid_include": True,
        "return_job": "nocache",
        "ret": "redis,local_cache,syslog",
        "ret_config": "other",
        "ret_kwargs": {"redis.host": "h"},
    }


def test_jobs_of_one_moment_have_ids_of_their_own(file: Path) -> None:
    loads = Made(file, {f"j{number}": PING for number in range(50)}).due()
    assert len({load["jid"] for load in loads}) == 50


def test_a_dry_run_runs_nothing(file: Path) -> None:
    made = Made(file, {"j": {**PING, "dry_run": True}})
    assert made.names() == []
    assert made.status("j")["_last_run"] == "2026-03-14T12:00:00"


def test_the_configuration_stands_in_for_the_pillar(file: Path) -> None:
    made = Made(file, {"both": {"function": "test.version", "seconds": 20}})
    made.schedule.update({"schedule": {"both": PING, "own": PING}}, {})
    assert {load["schedule"]: load["fun"] for load in made.due()} == {"both": "test.version", "own": "test.ping"}
    assert sorted(made.manage("list", where="pillar")["schedule"]) == ["both", "own"]
    assert sorted(made.manage("list", where="opts")["schedule"]) == ["both"]
    made.schedule.update({}, {})
    assert made.names(20) == ["both"]


def test_a_job_goes_on_when_pillar_is_read_anew_and_begins_anew_when_it_changed(file: Path) -> None:
    made = Made(file)
    made.schedule.update({"schedule": {"j": PING}}, {})
    assert made.names() == ["j"]
    made.schedule.update({"schedule": {"j": dict(PING)}}, {})
    assert made.names(5) == []
    made.schedule.update({"schedule": {"j": {**PING, "seconds": 30}}}, {})
    assert made.names() == ["j"]


@pytest.mark.parametrize("source", ["pillar", "grains"])
def test_dates_have_names_in_pillar_and_grains(file: Path, source: str) -> None:
    made = Made(file, {"j": {"function": "test.ping", "when": "tea"}})
    assert "Unknown string format" in made.status("j")["_error"]
    whens = {"whens": {"tea": "12:00:30"}}
    made.schedule.update(whens if source == "pillar" else {}, whens if source == "grains" else {})
    assert made.names() == []
    assert made.names(30) == ["j"]


def test_what_is_wrong_is_left_out_by_name(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        made = Made(file, {"bad": {"function": "test.ping", "seconds": "often"}, "none": "text", "good": PING})
    assert made.names() == ["good"]
    said = "schedule: the job bad is ignored: seconds must be a whole number, not 'often'"
    assert said in caplog.text
    assert made.status("bad")["_error"] == "seconds must be a whole number, not 'often'. Ignoring job bad."
    # Whoever lists the jobs sees which of them never run.
    assert sorted(made.manage("list")["errors"]) == ["bad", "none"]
    made.schedule.update({"schedule": ["x"], "whens": "x"}, {})
    assert "pillar: schedule must be a map of jobs" in caplog.text
    assert "pillar: whens must be a map of dates" in caplog.text
    # Pillar is read often.
    assert caplog.text.count(said) == 1


def test_an_unknown_option_of_a_job_is_told_and_the_job_runs(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        made = Made(file, {"j": {**PING, "maxruning": 5}})
        made.schedule.update({}, {})
    said = "schedule: the job j: 'maxruning' is not an option of a job; the nearest is 'maxrunning'"
    assert (made.names(), caplog.text.count(said)) == (["j"], 1)
    with pytest.raises(ValueError, match="'maxruning' is not an option of a job"):
        made.manage("add", name="other", schedule={**PING, "maxruning": 5})


#: What minions of Salt 3006 to 3008 have in _schedule.conf: jobs that ran, that were added, and that the minion added by itself.
STOCK_SCHEDULE = """\
schedule:
  __master_alive_10.0.0.1:
    function: status.master
    jid_include: true
    kwargs: {connected: true, master: 10.0.0.1}
    maxrunning: 1
    return_job: false
    seconds: 30
  __mine_interval:
    enabled: true
    function: mine.update
    jid_include: true
    maxrunning: 2
    minutes: 60
    name: __mine_interval
    return_job: false
    run: true
    run_on_start: true
    splay: null
  added:
    enabled: true
    function: test.ping
    jid_include: true
    maxrunning: 1
    name: added
    seconds: 60
  enabled: true
  paused:
    enabled: false
    function: test.ping
    hours: 1
    jid_include: true
    maxrunning: 1
    name: paused
    run: false
    splay: null
  ran:
    args: [echo a]
    enabled: true
    function: cmd.run
    jid_include: true
    kwargs: null
    maxrunning: 1
    metadata: null
    name: ran
    range: null
    returner: null
    run: true
    run_explicit: []
    seconds: 60.0
    skip_explicit: []
    splay: null
    until: null
    when: null
"""


def test_the_saved_schedule_of_a_stock_minion_is_read_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "minion").write_text("id: web1\nschedule:\n  main: {function: test.ping, seconds: 60}\n")
    (tmp_path / "minion.d").mkdir()
    saved = tmp_path / "minion.d" / "_schedule.conf"
    saved.write_text(STOCK_SCHEDULE)
    with caplog.at_level(logging.WARNING):
        options = load_minion(str(tmp_path), env={})
        own = {"__mine_interval": {"function": "mine.update", "minutes": 5}}
        made = Made(Path(options.schedule_file), options.schedule, own=own)
        assert sorted(made.names()) == ["__mine_interval", "added", "ran"]
        assert sorted(made.names(60)) == ["added", "ran"]
    assert caplog.text == ""
    listed = made.manage("list")
    assert (sorted(listed["schedule"]), listed["errors"]) == (
        ["__mine_interval", "added", "enabled", "paused", "ran"],
        {},
    )
    assert listed["schedule"]["__mine_interval"] == own["__mine_interval"]
    # And it is still Salt's when it was saved here.
    made.manage("enable_job", name="paused")
    assert made.saved == {
        **{name: job for name, job in yaml.safe_load(STOCK_SCHEDULE)["schedule"].items() if not name.startswith("__")},
        "paused": {**yaml.safe_load(STOCK_SCHEDULE)["schedule"]["paused"], "enabled": True},
    }


def test_no_more_than_maxrunning_of_a_job_run(file: Path) -> None:
    made = Made(file, {"one": PING, "two": {**PING, "maxrunning": 2}, "any": {**PING, "jid_include": False}})
    made.running = {"one": 1, "two": 1, "any": 5}
    assert made.names() == ["two", "any"]
    assert made.status("one")["_skip_reason"] == "maxrunning"
    made.running = {}
    assert made.names(20) == ["one", "two", "any"]


def test_a_job_is_run_when_somebody_asks(file: Path) -> None:
    made = Made(file, {"j": {"function": "test.ping", "enabled": False}})
    made.manage("run_job", name="j")
    assert made.names() == ["j"]
    assert made.names() == []
    with pytest.raises(ValueError, match="Job other does not exist"):
        made.manage("run_job", name="other")


def test_jobs_are_added_changed_and_removed(file: Path) -> None:
    made = Made(file)
    assert made.manage("add", name="j", schedule=PING) == {"schedule": {"j": PING}, "unsaved": ""}
    assert made.saved == {"j": PING}
    assert made.names() == ["j"]
    made.manage("modify", name="j", schedule={**PING, "seconds": 30}, persist=False)
    assert made.saved == {"j": PING}
    assert made.names() == ["j"]
    assert made.manage("delete", name="j")["schedule"] == {}
    assert made.saved == {}
    assert made.names(100) == []


def test_a_job_that_is_none_is_not_added(file: Path) -> None:
    made = Made(file)
    with pytest.raises(ValueError, match="function is missing"):
        made.manage("add", name="j", schedule={"seconds": 5})
    # By these names a schedule says what holds for all of its jobs.
    for name in ("enabled", "skip_function", "skip_during_range", "splay"):
        with pytest.raises(ValueError, match=f"no job can be called '{name}'"):
            made.manage("add", name=name, schedule={"function": "test.ping", "seconds": 5})
    assert made.manage("list")["schedule"] == {}
    assert not file.exists()


def test_jobs_of_pillar_are_not_for_the_minion_to_change(file: Path) -> None:
    made = Made(file)
    made.schedule.update({"schedule": {"j": PING}}, {})
    with pytest.raises(ValueError, match="Cannot modify job j, it's in the pillar!"):
        made.manage("modify", name="j", schedule=PING)
    for verb in ("delete", "disable_job", "skip_job"):
        assert made.manage(verb, name="j", time="2026-03-14T12:00:00")["schedule"] == {"j": PING}
    assert made.names() == ["j"]


def test_jobs_and_the_schedule_are_switched_off_and_on(file: Path) -> None:
    made = Made(file, {"j": {**PING, "run_on_start": False}})
    assert made.names() == []
    made.manage("disable_job", name="j")
    assert made.saved["j"]["enabled"] is False
    assert made.names(20) == []
    made.manage("enable_job", name="j")
    assert made.names(20) == ["j"]
    made.manage("disable")
    assert made.saved["enabled"] is False
    assert made.names(20) == []
    assert made.status("j")["_skip_reason"] == "disabled"
    made.manage("enable")
    assert made.names(20) == ["j"]


def test_a_run_is_put_off(file: Path) -> None:
    made = Made(file, {"j": {"function": "test.ping", "cron": "1 12 * * *"}})
    assert made.names() == []
    due = made.manage("next_fire_time", name="j")["next_fire_time"]
    assert due == "2026-03-14T12:01:00"
    made.manage("postpone_job", name="j", time=due, new_time="2026-03-14T12:02:00")
    assert made.names(60) == []
    assert made.names(60) == ["j"]
    assert not file.exists()
    assert made.manage("next_fire_time", name="other") == {"next_fire_time": None}


def test_a_run_is_left_out(file: Path) -> None:
    made = Made(file, {"j": {**PING, "run_on_start": False}})
    assert made.names() == []
    made.manage("skip_job", name="j", time=made.manage("next_fire_time", name="j")["next_fire_time"])
    assert made.names(20) == []
    assert made.names(20) == ["j"]


def test_what_is_known_of_a_job(file: Path) -> None:
    made = Made(file, {"j": {**PING, "splay": 5}})
    assert made.status("j") == {**PING, "splay": 5, "name": "j", "_next_fire_time": None, "_splay": None} | {
        "_run_on_start": True,
        "_seconds": 20,
    }
    made.due()
    assert made.status("j") == {**PING, "splay": 5, "name": "j"} | {
        "_next_fire_time": "2026-03-14T12:00:21",
        "_splay": "2026-03-14T12:00:21",
        "_run_on_start": False,
        "_seconds": 20,
        "_last_run": "2026-03-14T12:00:00",
    }
    assert made.manage("job_status", name="j", time_fmt="%H")["data"]["_last_run"] == "12"
    assert made.status("other") == {}


def test_jobs_of_the_minion_itself_are_not_saved(file: Path) -> None:
    made = Made(file, own={"__mine_interval": PING})
    assert made.names() == ["__mine_interval"]
    made.manage("add", name="j", schedule={**PING, "_note": 1})
    assert made.saved == {"j": PING}


def test_what_cannot_be_saved_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    made = Made(tmp_path / "file" / "_schedule.conf")
    told = made.manage("add", name="j", schedule=PING)
    assert told["unsaved"] == f"{tmp_path}/file/_schedule.conf: cannot be written: File exists"
    assert made.names() == ["j"]


def test_a_request_that_is_none(file: Path) -> None:
    made = Made(file)
    with pytest.raises(ValueError, match="unknown verb dance for the schedule; use one of list, add"):
        made.manage("dance")
    with pytest.raises(ValueError, match="a schedule is a map of jobs"):
        made.manage("reload", schedule="x")


def test_what_was_saved_stands_for_the_schedule_of_the_main_file(tmp_path: Path) -> None:
    """As in Salt: what was saved is the whole schedule, so that a job of the main file stays deleted."""
    (tmp_path / "minion").write_text(yaml.safe_dump({"id": "web1", "schedule": {"a": PING, "b": PING}}))
    assert load_minion(str(tmp_path), env={}).schedule == {"a": PING, "b": PING}
    (tmp_path / "minion.d").mkdir()
    for name, job in (("_schedule", "a"), ("site", "c")):
        (tmp_path / "minion.d" / f"{name}.conf").write_text(yaml.safe_dump({"schedule": {job: PING}}))
    options = load_minion(str(tmp_path), env={})
    assert options.schedule == {"a": PING, "c": PING}
    assert options.schedule_file == str(tmp_path / "minion.d" / "_schedule.conf")
