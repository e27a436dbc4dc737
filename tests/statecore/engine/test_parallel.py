"""States that run at once, in real processes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statecore.model.types import Low

from .conftest import Bench

STATES = '''
"""States in Salt's style."""

import os
import signal


def done(name, result=True, changes=None):
    return {"name": name, "changes": changes or {}, "result": result, "comment": "done"}


def meets(name, fifo, mode):
    """Returns when another one has opened the other end."""
    signal.alarm(30)
    open(fifo, mode).close()
    return done(name, changes={"met": os.getpid()})


def dies(name):
    os.kill(os.getpid(), signal.SIGKILL)


def ends(name):
    os._exit(3)


def odd(name):
    return done(name, changes={"fun": lambda: None})


def again(name, file):
    with open(file, "a") as counter:
        counter.write("x")
    return done(name, result=os.path.getsize(file) > 2)


def changes(name):
    return done(name, changes={"x": 1})


def mod_watch(name, **kwargs):
    return done(name, changes={"watched": [each["__id__"] for each in __low__["__reqs__"]["watch"]]})
'''


@pytest.fixture
def own(bench: Bench, low: Callable[..., Low]) -> Callable[..., Low]:
    """A maker of parallel chunks of the states above."""
    bench.write("states/own.py", STATES)
    return lambda id_, fun, **arguments: {**low(id_, fun, **arguments), "state": "own", "parallel": True}


def test_two_states_run_at_once(bench: Bench, own: Callable[..., Low], tmp_path: Any) -> None:
    fifo = str(tmp_path / "fifo")
    os.mkfifo(fifo)
    running = bench.run(own("a", "meets", fifo=fifo, mode="r"), own("b", "meets", fifo=fifo, mode="w"))
    entries = [running[f"own_|-{id_}_|-{id_}_|-meets"] for id_ in "ab"]
    assert [(entry["result"], entry["__parallel__"], entry["__run_num__"]) for entry in entries] == [
        (True, True, 0),
        (True, True, 1),
    ]
    assert len({os.getpid(), *(entry["changes"]["met"] for entry in entries)}) == 3


def test_no_more_than_may_run_at_once(bench: Bench, own: Callable[..., Low], tmp_path: Any) -> None:
    running = bench.run(*(own(id_, "done") for id_ in "abcd"), max_parallel=1)
    assert [entry["result"] for entry in running.values()] == [True] * 4
    assert sorted(entry["__run_num__"] for entry in running.values()) == [0, 1, 2, 3]


ENDS = {
    "killed": ("dies", "Parallel process failed to return: it was ended by signal 9"),
    "exit": ("ends", "Parallel process failed to return: exit code 3"),
}


@pytest.mark.parametrize(("fun", "comment"), ENDS.values(), ids=ENDS)
def test_a_process_that_returns_nothing_is_a_failed_state(
    bench: Bench, own: Callable[..., Low], low: Callable[..., Low], fun: str, comment: str
) -> None:
    running = bench.run(own("a", fun), low("b", require=[{"own": "a"}]), low("c"))
    entry = running[f"own_|-a_|-a_|-{fun}"]
    assert (entry["result"], entry["comment"], entry["__id__"]) == (False, comment, "a")
    assert running["test_|-b_|-b_|-nop"]["comment"] == "One or more requisite failed: web.a"
    assert running["test_|-c_|-c_|-nop"]["result"] is True
    assert len({entry["__run_num__"] for entry in running.values()}) == 3


def test_what_cannot_leave_a_process_is_told_as_text(bench: Bench, own: Callable[..., Low]) -> None:
    (entry,) = bench.run(own("a", "odd")).values()
    assert entry["changes"]["fun"].startswith("<function odd")


def test_retry_and_watch_are_the_childs(bench: Bench, own: Callable[..., Low], tmp_path: Any) -> None:
    file = str(tmp_path / "tries")
    running = bench.run(
        own("a", "again", file=file, retry={"attempts": 5, "interval": 0}),
        own("c", "changes"),
        own("w", "done", watch=[{"own": "c"}]),
    )
    tried = running["own_|-a_|-a_|-again"]
    assert (tried["result"], tried["comment"].count("Attempt")) == (True, 2)
    assert running["own_|-w_|-w_|-done"]["changes"] == {"watched": ["c"]}


def test_a_failhard_ends_the_run_when_all_that_run_have_ended(bench: Bench, own: Callable[..., Low]) -> None:
    running = bench.run(
        own("a", "done", result=False, failhard=True, order=1),
        own("b", "done", order=2),
        own("c", "done", require=[{"own": "a"}], order=3),
        own("d", "done", require=[{"own": "b"}], order=4),
    )
    assert running["own_|-a_|-a_|-done"]["result"] is False
    assert running["own_|-b_|-b_|-done"]["result"] is True
    assert "own_|-c_|-c_|-done" not in running


def test_events_tell_the_result(bench: Bench, own: Callable[..., Low]) -> None:
    bench.run(own("a", "changes"), events=True, jid="20260101")
    ((_, data),) = bench.port.fired
    assert data["ret"]["changes"] == {"x": 1}


def test_where_there_can_be_no_more_processes_states_run_in_their_place(
    bench: Bench, own: Callable[..., Low], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fork() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fork)
    running = bench.run(own("a", "changes"), own("b", "done", require=[{"own": "a"}]))
    assert [(entry["result"], entry["__run_num__"]) for entry in running.values()] == [(True, 0), (True, 1)]


def test_no_child_is_left(bench: Bench, own: Callable[..., Low]) -> None:
    # Other tests may have servers of theirs.
    before = _children()
    bench.run(own("a", "done"), own("b", "dies"))
    assert _children() == before


def _children() -> set[str]:
    return {pid for task in Path("/proc/self/task").glob("*/children") for pid in task.read_text().split()}
