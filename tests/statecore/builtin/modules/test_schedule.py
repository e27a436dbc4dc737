"""The module and the state ``schedule``: what a running minion is asked, what is said, and what real Salt says of the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from saltern.minion.duties.schedule import Schedule
from statecore.model.errors import CommandError
from tests.conftest import Oracle

PING = {"function": "test.ping", "seconds": 3600}

#: What an added job has beside what was said.
BUILT = {"maxrunning": 1, "enabled": True, "jid_include": True}

_SALT = Path(__file__).parents[1] / "states" / "salt_states.py"


@pytest.fixture
def live(plain, tmp_path):
    """A running minion's schedule, behind the port."""
    file = tmp_path / "minion.d" / "_schedule.conf"
    plain.opts["schedule_file"] = str(file)
    schedule = Schedule("web1", {}, file, own={"__mine_interval": {"function": "mine.update", "cron": "0 * * * *"}})

    def manage(request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return schedule.manage(request)
        except ValueError as error:
            raise CommandError(str(error)) from error

    plain.ports.managers["schedule"] = manage
    return schedule


@pytest.mark.usefixtures("live")
def test_jobs_are_listed(plain):
    assert plain.call("schedule.list") == "schedule: {}\n"
    plain.call("schedule.add", "j", **PING)
    plain.call("schedule.add", "passing", **PING, persist=False, enabled=False)
    job = {**PING, **BUILT, "name": "j"}
    listed = yaml.safe_load(plain.call("schedule.list"))["schedule"]
    assert listed == {
        "j": {**job, "saved": True},
        "passing": {**job, "name": "passing", "enabled": False, "saved": False},
    }
    assert plain.call("schedule.list", show_disabled=False, return_yaml=False) == {"j": job}
    own = {"function": "mine.update", "cron": "0 * * * *", "enabled": True}
    assert plain.call("schedule.list", show_all=True, return_yaml=False)["__mine_interval"] == own
    assert plain.call("schedule.list", return_yaml=False, offline=True) == {"j": job}
    assert plain.call("schedule.is_enabled", "j") == job
    assert plain.call("schedule.is_enabled", "other") == {}
    assert plain.call("schedule.is_enabled") is True


@pytest.mark.usefixtures("live")
def test_jobs_come_change_and_go(plain):
    would = plain.call("schedule.add", "j", **PING, test=True)
    assert would == {"comment": "Job: j would be added to schedule.", "result": True, "changes": {}}
    added = plain.call("schedule.add", "j", **PING)
    assert added == {"comment": "Added job: j to schedule.", "result": True, "changes": {"j": "added"}}
    again = plain.call("schedule.add", "j", **PING)
    assert again == {"comment": "Job j already exists in schedule.", "result": False, "changes": {}}
    assert plain.call("schedule.modify", "j", seconds=3600)["comment"] == "Job j in correct state"
    old, new = ({**PING, **BUILT, "name": "j", "seconds": seconds} for seconds in (3600, 60))
    changed = {"j": {"old": old, "new": new}}
    assert plain.call("schedule.modify", "j", seconds=60, test=True) == {
        "comment": "Job: j would be modified in schedule.",
        "changes": changed,
        "result": True,
    }
    modified = plain.call("schedule.modify", "j", seconds=60)
    assert modified == {"comment": "Modified job: j in schedule.", "changes": changed, "result": True}
    assert plain.call("schedule.modify", "other", seconds=60)["comment"] == "Job other does not exist in schedule."
    assert plain.call("schedule.delete", "j", test=True)["comment"] == "Job: j would be deleted from schedule."
    deleted = plain.call("schedule.delete", "j")
    assert deleted == {"comment": "Deleted Job j from schedule.", "result": True, "changes": {"j": "removed"}}
    gone = plain.call("schedule.delete", "j")
    assert gone == {"comment": "Job j does not exist.", "result": False, "changes": {}}


@pytest.mark.usefixtures("live")
def test_purge_leaves_the_jobs_of_the_minion(plain):
    for name in ("a", "b"):
        plain.call("schedule.add", name, **PING)
    plain.call("schedule.disable")
    assert plain.call("schedule.purge", test=True)["changes"] == {}
    assert plain.call("schedule.purge") == {
        "comment": ["Deleted job: a from schedule.", "Deleted job: b from schedule."],
        "changes": {"a": "removed", "b": "removed"},
        "result": True,
    }
    left = plain.call("schedule.list", show_all=True, return_yaml=False)
    assert sorted(left) == ["__mine_interval", "enabled"]


@pytest.mark.usefixtures("live")
def test_switches(plain):
    plain.call("schedule.add", "j", **PING)
    for able in ("disable", "enable"):
        told = plain.call(f"schedule.{able}_job", "j")
        assert told == {
            "comment": f"{able.capitalize()}d Job j in schedule.",
            "result": True,
            "changes": {"j": f"{able}d"},
        }
        missing = plain.call(f"schedule.{able}_job", "other")
        assert missing == {"comment": "Job other does not exist.", "result": False, "changes": {}}
        told = plain.call(f"schedule.{able}")
        assert told == {
            "comment": f"{able.capitalize()}d schedule on minion.",
            "result": True,
            "changes": {"schedule": f"{able}d"},
        }
        assert plain.call("schedule.is_enabled") is (able == "enable")
        assert plain.call(f"schedule.{able}", test=True)["comment"] == f"Schedule would be {able}d."


def test_jobs_of_pillar_stay_as_they_are(plain, live):
    live.update({"schedule": {"j": PING}}, {})
    assert plain.call("schedule.delete", "j") == {
        "comment": "Failed to delete job j from schedule.",
        "result": False,
        "changes": {},
    }
    assert plain.call("schedule.disable_job", "j")["comment"] == "Failed to disable job j in schedule."
    time = "2026-01-01T03:00:00"
    assert plain.call("schedule.skip_job", "j", time) == {
        "comment": "Failed to skip job j in schedule.",
        "result": False,
    }
    with pytest.raises(CommandError, match="it's in the pillar"):
        plain.call("schedule.modify", "j", seconds=5)


def test_jobs_run_when_asked_for(plain, live):
    plain.call("schedule.add", "j", **PING, run_on_start=False, enabled=False)
    assert plain.call("schedule.run_job", "j") == {"comment": "Job j is disabled.", "result": True}
    assert [load["fun"] for load in live.due(lambda _: 0)] == []
    assert plain.call("schedule.run_job", "j", force=True) == {
        "comment": "Scheduling Job j on minion.",
        "result": True,
    }
    assert [load["fun"] for load in live.due(lambda _: 0)] == ["test.ping"]
    assert plain.call("schedule.run_job", "other") == {"comment": "Job other does not exist.", "result": False}


def test_times(plain, live):
    plain.call("schedule.add", "j", function="test.ping", when="2036-01-01 03:00")
    assert list(live.due(lambda _: 0)) == []
    assert plain.call("schedule.show_next_fire_time", "j") == {"result": True, "next_fire_time": "2036-01-01T03:00:00"}
    time, new = "2036-01-01T03:00:00", "2036-01-01T04:00:00"
    assert plain.call("schedule.skip_job", "j", time) == {"comment": "Added Skip Job j in schedule.", "result": True}
    postponed = plain.call("schedule.postpone_job", "j", time, new)
    assert postponed == {"comment": "Postponed Job j in schedule.", "result": True}
    status = plain.call("schedule.job_status", "j")
    assert [one["time"] for one in status["skip_explicit"]] == [time, time]
    assert [one["time"] for one in status["run_explicit"]] == [new]
    assert status["_next_fire_time"] == time
    unread = plain.call("schedule.skip_job", "j", "soon")
    assert unread == {"comment": "Date string could not be parsed: soon, %Y-%m-%dT%H:%M:%S", "result": False}
    assert plain.call("schedule.postpone_job", "j", "", new)["comment"] == "Job current time is required."


@pytest.mark.usefixtures("live")
def test_saved_jobs_are_read_again(plain):
    plain.call("schedule.add", "j", **PING, persist=False)
    assert plain.call("schedule.save", test=True)["comment"] == "Schedule would be saved."
    assert plain.call("schedule.save") == {"comment": "Schedule (non-pillar items) saved.", "result": True}
    plain.call("schedule.delete", "j", persist=False)
    plain.pillar["schedule"] = {}
    assert plain.call("schedule.reload") == {
        "comment": ["Reloaded schedule from pillar on minion.", "Reloaded schedule on minion from _schedule.conf."],
        "result": True,
    }
    assert plain.ports.asked == ["refresh_pillar"]
    assert sorted(plain.call("schedule.list", return_yaml=False)) == ["j"]


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize(
    ("given", "comment"),
    [
        ({"function": "f", "seconds": 5, "when": "5pm"}, 'Error: Unable to use "seconds", "minutes"'),
        ({"function": "f", "when": "5pm", "cron": "* * * * *"}, 'Unable to use "when" and "cron" options together'),
        ({"function": "f", "when": "sometime"}, "Invalid date string: 'sometime'"),
        ({"function": "f", "job_args": "x"}, "job_args is not a list. please correct and try again."),
        ({"function": "f", "job_kwargs": "x"}, "job_kwargs is not a dict. please correct and try again."),
        ({"seconds": 5}, "function is missing"),
        ({"function": "f", "secnds": 5}, "'secnds' is not an option of a job; the nearest is 'seconds'"),
    ],
)
def test_what_is_no_job_is_not_added(plain, given, comment):
    told = plain.call("schedule.add", "j", **given)
    assert told["result"] is False
    assert told["comment"].startswith(comment)
    assert plain.call("schedule.list", return_yaml=False) == {}
    if "function" in given:
        entry = plain.state(
            "schedule.present", name="j", **{k: v for k, v in given.items() if k != "secnds"}, after="x"
        )
        assert entry["result"] is False


def test_without_a_running_minion(plain, tmp_path):
    """What is saved can be changed; the rest says why not."""

    def nobody(request: Mapping[str, Any]) -> dict[str, Any]:
        raise CommandError("no minion runs")

    plain.ports.managers["schedule"] = nobody
    plain.opts["schedule_file"] = str(tmp_path / "_schedule.conf")
    with pytest.raises(CommandError, match="no minion runs"):
        plain.call("schedule.add", "j", **PING)
    assert plain.call("schedule.add", "j", **PING, offline=True)["result"] is True
    assert plain.call("schedule.modify", "j", seconds=5, offline=True)["result"] is True
    saved = yaml.safe_load((tmp_path / "_schedule.conf").read_text())
    assert saved == {"schedule": {"j": {**PING, **BUILT, "seconds": 5, "name": "j"}}}
    assert plain.call("schedule.delete", "j", offline=True)["changes"] == {"j": "removed"}
    assert plain.call("schedule.list", offline=True, return_yaml=False) == {}


def test_a_change_that_cannot_be_saved_says_so(plain, live, tmp_path):
    (tmp_path / "minion.d").write_text("a file where a directory should be")
    told = plain.call("schedule.add", "j", **PING)
    assert told["result"] is True
    assert "Added job: j to schedule. It is not saved: " in told["comment"]
    entry = plain.state("schedule.present", name="k", **PING)
    assert "Adding new job k to schedule. It is not saved: " in entry["comment"]
    assert plain.call("schedule.save")["result"] is False


# --------------------------------------------------------------------------------------------------------------- the states


@pytest.mark.usefixtures("live")
def test_switching_states(plain):
    plain.call("schedule.add", "j", **PING)
    assert plain.state("schedule.enabled", name="j")["changes"] == {}
    would = plain.state("schedule.disabled", name="j", test=True)
    assert (would["result"], would["comment"]) == (None, "Job: j would be disabled in schedule.")
    done = plain.state("schedule.disabled", name="j")
    assert (done["result"], done["comment"]) == (True, "Disabled job j from schedule")
    assert done["changes"] == {"j": "disabled"}
    again = plain.state("schedule.disabled", name="j")
    assert (again["result"], again["comment"], again["changes"]) == (True, "Disabled job j from schedule", {})
    missing = plain.state("schedule.enabled", name="other")
    assert (missing["result"], missing["comment"]) == (True, "Job other not present in schedule")
    assert plain.state("schedule.disabled", name="j", offline=True)["result"] is False


#: (function, arguments) of calls in turn, each in test mode first, then twice applied.
CALLS: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("present", {"function": "test.ping", "seconds": 3600}),
    ("present", {"function": "test.version", "seconds": 60, "maxrunning": 3, "enabled": False}),
    ("absent", {}),
    ("present", {"function": "test.ping", "seconds": 60, "splay": {"start": 1, "end": 5}, "maxrunning": 3}),
    ("absent", {}),
    (
        "present",
        {"function": "state.sls", "job_args": ["httpd"], "job_kwargs": {"test": True}, "when": ["Monday 5:00pm"]},
    ),
    ("absent", {}),
    ("present", {"function": "state.sls", "cron": "*/15 * * * *", "returner": "xmpp", "return_job": False}),
    ("absent", {}),
    ("present", {"function": "f", "once": "2036-01-01T00:00:00", "metadata": {"a": 1}, "enabled": False}),
    ("present", {"function": "f", "seconds": 5, "when": "5:00pm"}),
    ("present", {"function": "f", "when": "5:00pm", "cron": "* * * * *"}),
    ("present", {"function": "f", "seconds": 5, "job_args": "x"}),
    ("absent", {}),
)


@pytest.mark.oracle
def test_salt_says_the_same_of_saved_jobs(plain, oracle: Oracle, tmp_path: Path) -> None:
    """Of a minion that does not run: there both work on the file. In test mode Salt says True; what is changed keeps its old
    options there, so the cases that have others begin anew."""
    plain.opts["schedule_file"] = str(tmp_path / "ours" / "_schedule.conf")
    phases = [(test, fun, arguments) for fun, arguments in CALLS for test in (True, False, False)]
    asked = {"directory": str(tmp_path / "salt"), "tree": str(tmp_path / "tree"), "pillar": {}, "grains": {}}
    (tmp_path / "salt").mkdir()
    asked["phases"] = [
        [test, {"j": {"schedule": [fun, {"offline": True}, *({key: arguments[key]} for key in arguments)]}}]
        for test, fun, arguments in phases
    ]
    told = json.loads(oracle.run("python", str(_SALT), stdin=json.dumps(asked), timeout=240))
    for (test, fun, arguments), running in zip(phases, told, strict=True):
        (theirs,) = running.values()
        ours = plain.state(f"schedule.{fun}", name="j", test=test, offline=True, **arguments)
        assert ours["comment"] == theirs["comment"], (test, fun, arguments)
        assert (ours["result"] is not False) == theirs["result"], (test, fun, arguments)
        if not test:
            assert ours["changes"] == theirs["changes"], (test, fun, arguments)
        else:
            assert (ours["result"] is None) == bool(ours["changes"])
    saved = yaml.safe_load((tmp_path / "salt" / "etc" / "minion.d" / "_schedule.conf").read_text())
    assert saved == yaml.safe_load((tmp_path / "ours" / "_schedule.conf").read_text())
