"""Jobs of a returner of the site's (``ext_source``), which Salt's own functions read from."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from masterstore.jobs import Job
from saltern.mworker.runners import jobs
from saltern.mworker.runners.runner import RunnerFault, RunnerTools

pytestmark = pytest.mark.redis

#: A user's returner as Salt's documentation has them, with the jobs of a morning; some of its functions fail.
RETURNER = """
LOADS = {
    "20260101000100000000": {"fun": "test.ping", "arg": [], "tgt": "*", "tgt_type": "glob", "user": "root", "Minions": ["a", "b"]},
    "20260101000200000000": {"fun": "state.apply", "arg": ["web"], "tgt": ["a"], "tgt_type": "list", "user": "ann",
                             "metadata": {"why": "x"}},
}

def get_load(jid):
    return LOADS.get(jid, {})

def get_jid(jid):
    if jid == "20260101000200000000":
        return {"a": {"return": {"x": 1}, "success": False, "out": "highstate"}}
    return {"a": {"return": True}} if jid in LOADS else {}

def get_jids():
    names = {"fun": "Function", "arg": "Arguments", "tgt": "Target", "tgt_type": "Target-type", "user": "User"}
    names["metadata"] = "Metadata"
    return {jid: {names[key]: value for key, value in load.items() if key in names} for jid, load in LOADS.items()}
"""

BROKEN = """
def get_load(jid):
    raise OSError("no database")

def get_jids():
    return [1]
"""

FIRST, SECOND = "20260101000100000000", "20260101000200000000"


@pytest.fixture
def tools(new_worker: Any, tmp_path: Path) -> RunnerTools:
    directory = tmp_path / "returners"
    directory.mkdir()
    (directory / "mine.py").write_text(RETURNER)
    (directory / "broken.py").write_text(BROKEN)
    worker = new_worker(returner_dirs=[str(directory)], extension_modules=str(tmp_path / "none"))
    made = SimpleNamespace(store=worker.store, options=worker.context.options, jid="1", sender=None)
    return cast(RunnerTools, made)


def test_one_job(tools: RunnerTools) -> None:
    assert jobs.lookup_jid(tools, FIRST, ext_source="mine") == {"a": True}
    assert jobs.lookup_jid(tools, FIRST, "mine", missing=True) == {"a": True, "b": "Minion did not return"}
    assert jobs.lookup_jid(tools, SECOND, "mine") == {"outputter": "highstate", "data": {"a": {"x": 1}}}
    shown = jobs.list_job(tools, FIRST, "mine")
    assert shown == {
        "jid": FIRST,
        "Function": "test.ping",
        "Arguments": [],
        "Target": "*",
        "Target-type": "glob",
        "User": "root",
        "StartTime": "2026, Jan 01 00:01:00.000000",
        "Minions": ["a", "b"],
        "Result": {"a": {"return": True}},
    }
    assert jobs.print_job(tools, FIRST, "mine") == {FIRST: {k: v for k, v in shown.items() if k != "jid"}}
    assert jobs.exit_success(tools, FIRST, "mine") == {"a": True, "b": False}
    assert jobs.exit_success(tools, SECOND, "mine") == {"a": False}


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ({}, [FIRST, SECOND]),
        ({"limit": 1}, [SECOND]),
        ({"cursor": SECOND}, [FIRST]),
        ({"function": "test.*"}, [FIRST]),
        ({"search_function": "state.*"}, [SECOND]),
        ({"search_target": "a"}, [SECOND]),
        ({"search_metadata": {"why": "x"}}, [SECOND]),
        ({"user": "a*"}, [SECOND]),
        ({"target": "*"}, [FIRST, SECOND]),
        ({"target": "b"}, []),
        ({"end_time": "2026-01-01T00:01:00"}, [FIRST]),
        ({"after": "2026-01-01T00:01:30"}, [SECOND]),
    ],
    ids=str,
)
def test_jobs_are_found(tools: RunnerTools, search: dict[str, Any], found: list[str]) -> None:
    assert list(jobs.list_jobs(tools, "mine", **search)) == found


def test_the_newest(tools: RunnerTools) -> None:
    newest = jobs.list_jobs_filter(tools, 1, ext_source="mine")
    assert isinstance(newest, list)
    assert [job["JID"] for job in newest] == [SECOND]
    run = jobs.last_run(tools, "mine", function="test.*")
    assert isinstance(run, dict)
    assert run[FIRST]["Result"] == {"a": {"return": True}}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda tools: jobs.lookup_jid(tools, "20250101000000000000", "mine"), "mine has no job with the JID 2025"),
        (lambda tools: jobs.lookup_jid(tools, "5", "mine"), "'5'"),
        (lambda tools: jobs.lookup_jid(tools, FIRST, "broken"), "broken.get_load failed: OSError: no database"),
        (lambda tools: jobs.list_jobs(tools, "broken"), "broken.get_jids must return a map, not list"),
        (lambda tools: jobs.list_jobs(tools, "none"), "'none.get_jids' is not available"),
        (lambda tools: jobs.list_jobs(tools, "mine", success=True), "success: jobs of the returner mine are not found"),
        (lambda tools: jobs.list_jobs(tools, "mine", minion="a"), "minion: jobs of the returner mine are not found"),
    ],
)
def test_what_is_refused(tools: RunnerTools, call: Any, said: str) -> None:
    with pytest.raises(RunnerFault, match=said):
        call(tools)


def test_redis_is_the_job_cache(tools: RunnerTools) -> None:
    load = {"jid": FIRST, "fun": "test.ping", "arg": [], "tgt": "*", "tgt_type": "glob", "user": "root"}
    tools.store.jobs.store_external(FIRST, load, {"jid": FIRST, "id": "a", "fun": "test.ping", "return": 5})
    assert isinstance(tools.store.jobs.job(FIRST), Job)
    for name in ("redis", "local_cache", None):
        assert jobs.lookup_jid(tools, FIRST, name) == {"a": 5}
