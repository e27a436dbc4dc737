"""One state run at a time: whose turn it is, as a table; and marks of processes that run, wait and are gone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from statecore.runtime.state_runs.state_queue import QueueDecision, QueueEntry, judge

RUNS = QueueEntry("20260102030405678901", 1, "state.apply")
LATE = QueueEntry("20270102030405678901", 2, "state.highstate")
WAITS = QueueEntry("20260102030405678902", 3, "state.apply", waits=True)
LATE_WAITS = QueueEntry("20270102030405678902", 4, "state.apply", waits=True)

#: Ours, between the two.
JID = "20260601000000000000"

SENTENCE = (
    'The function "state.apply" is running as PID 1 and was started at 2026, Jan 02 03:04:05.678901'
    " with jid 20260102030405678901"
)


@pytest.mark.parametrize(
    ("others", "queue", "waiting", "turn"),
    [
        ([], False, False, QueueDecision.GO),
        ([], True, False, QueueDecision.GO),
        ([], 1, False, QueueDecision.GO),
        ([RUNS], False, False, QueueDecision.REFUSED),
        ([LATE], False, False, QueueDecision.REFUSED),
        ([WAITS], False, False, QueueDecision.REFUSED),
        ([LATE_WAITS], False, False, QueueDecision.REFUSED),
        ([RUNS], True, False, QueueDecision.WAIT),
        # It runs already, though its job id is later.
        ([LATE], True, False, QueueDecision.WAIT),
        ([WAITS], True, True, QueueDecision.WAIT),
        ([LATE_WAITS], True, True, QueueDecision.GO),
        ([RUNS, WAITS, LATE_WAITS], True, True, QueueDecision.WAIT),
        ([RUNS], 0, False, QueueDecision.WAIT),
        ([RUNS, WAITS], 0, False, QueueDecision.WAIT),
        ([RUNS], 1, False, QueueDecision.REFUSED),
        ([RUNS], 2, False, QueueDecision.WAIT),
        ([RUNS, WAITS], 2, False, QueueDecision.REFUSED),
        ([RUNS, LATE_WAITS], 2, False, QueueDecision.WAIT),
        # It was let in; others that come now do not put it out.
        ([RUNS, WAITS], 2, True, QueueDecision.WAIT),
    ],
)
def test_whose_turn_it_is(others, queue, waiting, turn):
    assert judge(others, JID, queue, waiting=waiting) is turn


def test_without_a_job_id_everybody_is_before_us():
    assert judge([LATE_WAITS], "", True) is QueueDecision.WAIT


def marks(plain) -> Path:
    return Path(plain.opts["cachedir"]) / "state_queue"


def leave(plain, mark: QueueEntry, *, lives: bool = True) -> None:
    """Another process's mark, and its job where it lives."""
    marks(plain).mkdir(parents=True, exist_ok=True)
    told = {"jid": mark.jid, "pid": mark.pid, "fun": mark.fun, "waits": mark.waits}
    (marks(plain) / mark.jid).write_text(json.dumps(told))
    if lives:
        plain.ports.jobs.append({"jid": mark.jid, "pid": mark.pid, "fun": mark.fun})


def test_a_second_run_is_refused(plain):
    leave(plain, RUNS)
    ctx = plain.context()
    assert ctx.call("state.apply", "a") == [SENTENCE]
    assert ctx.scratch["retcode"] == 1
    assert plain.ports.asked == []


@pytest.mark.parametrize(
    ("function", "args"),
    [
        ("apply", ()),
        ("highstate", ()),
        ("sls", ("a",)),
        ("sls_id", ("a", "b")),
        ("single", ("test.nop", "a")),
        ("high", ({},)),
        ("low", ({"state": "test", "fun": "nop", "name": "a"},)),
        ("template", ("/a",)),
        ("template_str", ("",)),
        ("top", ("a.sls",)),
        ("test", ("a",)),
        ("request", ("a",)),
    ],
)
def test_every_function_that_runs_states_takes_turns(plain, function, args):
    leave(plain, RUNS)
    assert plain.call(f"state.{function}", *args) == [SENTENCE]
    assert plain.ports.asked == []


@pytest.mark.parametrize(
    ("function", "args"),
    [("show_top", ()), ("show_highstate", ()), ("show_sls", ("a",)), ("show_state_usage", ()), ("sls_exists", ("a",))],
)
def test_looking_takes_no_turn(plain, function, args):
    leave(plain, RUNS)
    plain.ports.answer = {"vim": {}}
    plain.call(f"state.{function}", *args, queue=False)
    assert len(plain.ports.asked) == 1


def test_who_knows_no_jobs_touches_no_marks(plain):
    leave(plain, RUNS, lives=False)
    plain.call("state.apply", "a")
    assert len(plain.ports.asked) == 1
    assert (marks(plain) / RUNS.jid).exists()


def test_a_dead_process_is_in_nobodys_way(plain):
    leave(plain, RUNS, lives=False)
    (marks(plain) / "1").write_text("no mark")
    plain.ports.jobs.append({"jid": JID, "pid": os.getpid(), "fun": "state.apply"})
    plain.call("state.apply", "a")
    assert len(plain.ports.asked) == 1
    assert [path.name for path in marks(plain).iterdir() if path.name[0] != "."] == []


def test_a_process_of_the_same_number_is_another(plain):
    leave(plain, RUNS, lives=False)
    plain.ports.jobs.append({"jid": "20260601000000000001", "pid": RUNS.pid, "fun": "test.ping"})
    plain.call("state.apply", "a")
    assert len(plain.ports.asked) == 1


def test_concurrent_runs_when_asked_for(plain):
    leave(plain, RUNS)
    plain.call("state.apply", "a", concurrent=True)
    assert len(plain.ports.asked) == 1
    assert plain.call("state.running", concurrent=True) == []
    assert plain.call("state.running") == [SENTENCE]


def test_others_see_a_run_while_it_lasts(plain):
    plain.ports.jobs.append({"jid": JID, "pid": os.getpid(), "fun": "state.apply"})
    seen = {}

    def sls(*_asked):
        seen["mark"] = json.loads((marks(plain) / JID).read_text())
        return {}

    plain.ports.sls = sls
    plain.call("state.apply", "a")
    assert seen["mark"] == {"jid": JID, "pid": os.getpid(), "fun": "state.apply", "waits": False}
    assert not (marks(plain) / JID).exists()


def test_a_run_that_fails_gives_up_its_turn(plain):
    plain.ports.jobs.append({"jid": JID, "pid": os.getpid(), "fun": "state.apply"})

    def sls(*_asked):
        raise RuntimeError

    plain.ports.sls = sls
    ctx = plain.context()
    with pytest.raises(RuntimeError):
        ctx.call("state.apply", "a")
    assert not (marks(plain) / JID).exists()
    assert "state.turn" not in ctx.scratch


def test_a_queued_run_waits_until_it_is_first(plain, monkeypatch):
    leave(plain, RUNS)
    leave(plain, WAITS)
    plain.ports.jobs.append({"jid": JID, "pid": os.getpid(), "fun": "state.apply"})
    looks = []

    def sleep(_seconds):
        looks.append(json.loads((marks(plain) / JID).read_text())["waits"])
        del plain.ports.jobs[0]

    monkeypatch.setattr("statecore.runtime.state_runs.state_queue.time.sleep", sleep)
    plain.call("state.apply", "a", queue=True)
    assert looks == [True, True]
    assert len(plain.ports.asked) == 1


def test_a_full_queue_refuses(plain):
    leave(plain, RUNS)
    leave(plain, WAITS)
    ctx = plain.context()
    assert len(ctx.call("state.apply", "a", queue=2)) == 2
    assert ctx.scratch["retcode"] == 1


def test_the_queue_of_the_configuration(plain, monkeypatch):
    leave(plain, RUNS)
    plain.opts["state_queue"] = True
    monkeypatch.setattr(
        "statecore.runtime.state_runs.state_queue.time.sleep", lambda _seconds: plain.ports.jobs.clear()
    )
    plain.call("state.apply", "a")
    assert len(plain.ports.asked) == 1


def test_a_state_that_applies_states_is_part_of_the_run(plain):
    leave(plain, RUNS)
    ctx = plain.context()
    ctx.scratch["state.turn"] = True
    ctx.call("state.apply", "a")
    assert len(plain.ports.asked) == 1
    assert ctx.scratch["state.turn"] is True


def test_the_function_of_a_job_of_many(plain):
    plain.ports.jobs.append({"jid": JID, "pid": os.getpid(), "fun": ["test.ping", "state.highstate"]})
    seen = []
    plain.ports.highstate = lambda *_asked: seen.append(json.loads((marks(plain) / JID).read_text())["fun"])
    plain.call("state.highstate")
    assert seen == ["state.highstate"]


def test_without_a_place_to_write_states_run_all_the_same(plain, tmp_path):
    plain.opts["cachedir"] = str(tmp_path / "file" / "cache")
    (tmp_path / "file").write_text("")
    plain.ports.jobs.append({"jid": JID, "pid": os.getpid(), "fun": "state.apply"})
    plain.call("state.apply", "a")
    assert len(plain.ports.asked) == 1
