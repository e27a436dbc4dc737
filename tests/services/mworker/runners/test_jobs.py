"""Questions about jobs: every way to search, over a job cache of several pages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from saltern.mworker.runners import job_queries, jobs
from saltern.mworker.runners.runner import RunnerFault, RunnerTools

pytestmark = pytest.mark.redis

#: Minute of 2026-01-01 -> what its job is about.
JOBS: dict[int, dict[str, Any]] = {
    1: {"fun": "test.ping", "tgt": "*", "metadata": {"a": 1, "b": 2}},
    2: {"fun": "state.apply", "tgt": ["web1", "db1"], "user": "ann"},
    3: {"fun": "saltutil.find_job", "tgt": "web1"},
    4: {"fun": "test.echo", "tgt": "db1", "arg": ["x", {"__kwarg__": True, "metadata": {"a": 1}}]},
    5: {"fun": "test.ping", "tgt": "web*"},
}


def jid(minute: int) -> str:
    return f"2026010100{minute:02}00000000"


@pytest.fixture
def tools(worker: Any, monkeypatch: pytest.MonkeyPatch) -> RunnerTools:
    monkeypatch.setattr(jobs, "_PAGE", 2)
    worker.accept("web1")
    for minute, load in JOBS.items():
        load = {"jid": jid(minute), "arg": [], "tgt_type": "glob", "user": "root", **load}
        ret = {"jid": jid(minute), "id": "web1", "fun": load["fun"], "return": True, "retcode": int(minute == 4)}
        worker.store.jobs.store_external(jid(minute), load, ret)
    return cast(RunnerTools, SimpleNamespace(store=worker.store, options=worker.context.options, jid="1", sender=None))


@pytest.mark.parametrize(
    ("search", "minutes"),
    [
        ({}, [1, 2, 3, 4, 5]),
        ({"limit": 2}, [4, 5]),
        ({"limit": 2, "cursor": "20260101000400000000"}, [2, 3]),
        ({"cursor": "20260101000100000000"}, []),
        ({"function": "test.*"}, [1, 4, 5]),
        ({"function": "no.such"}, []),
        ({"minion": "web*"}, [1, 2, 3, 4, 5]),
        ({"minion": "db1"}, []),
        ({"user": "ann"}, [2]),
        ({"user": "a*,nobody"}, [2]),
        ({"target": "web*"}, [2, 3, 5]),
        ({"target": "web1"}, [3]),
        ({"success": False}, [4]),
        ({"success": True, "function": "test.*"}, [1, 5]),
        ({"state": "running"}, []),
        ({"after": "20260101000300000000"}, [3, 4, 5]),
        ({"before": "2026-01-01T00:03:00"}, [1, 2]),
        ({"before": "1h", "limit": 1}, [5]),
        ({"target": "*", "search_metadata": {"a": 1}, "limit": 1}, [4]),
        ({"limit": 1, "search_function": "state.*"}, [2]),
        ({"search_function": "test.*"}, [1, 4, 5]),
        ({"search_function": "test.ping,state.apply"}, [1, 2, 5]),
        ({"search_function": ["test.echo"]}, [4]),
        ({"search_target": "db*"}, [2, 4]),
        ({"search_target": "web1"}, [2, 3]),
        ({"search_metadata": {"a": 1}}, [1, 4]),
        ({"search_metadata": {"a": 9, "b": 2}}, [1]),
        ({"search_metadata": {"c": None}}, []),
        ({"start_time": "2026-01-01T00:03:00"}, [3, 4, 5]),
        ({"start_time": "2026, Jan 01 00:02", "end_time": "2026, Jan 01 00:04:00.000000"}, [2, 3, 4]),
        ({"end_time": "2025/12/31"}, []),
        ({"search_function": "test.*", "search_target": "db1", "search_metadata": {"a": 1}}, [4]),
    ],
    ids=str,
)
def test_jobs_are_found(tools: RunnerTools, search: dict[str, Any], minutes: list[int]) -> None:
    assert list(jobs.list_jobs(tools, **search)) == [jid(minute) for minute in minutes]


def test_how_they_are_shown(tools: RunnerTools) -> None:
    assert jobs.list_jobs(tools, search_function="test.echo", outputter="yaml") == {
        "outputter": "yaml",
        "data": {
            jid(4): {
                "Function": "test.echo",
                "Arguments": JOBS[4]["arg"],
                "Target": "db1",
                "Target-type": "glob",
                "User": "root",
                "Metadata": {"a": 1},
                "StartTime": "2026, Jan 01 00:04:00.000000",
            }
        },
    }


def test_the_newest(tools: RunnerTools) -> None:
    def jids(**how: Any) -> list[str]:
        return [job["JID"] for job in cast(list[dict[str, Any]], jobs.list_jobs_filter(tools, 3, **how))]

    # A list, as Salt's: who reads its JSON finds the JID in each entry.
    assert jids() == [jid(2), jid(4), jid(5)]
    assert jids(filter_find_job=False) == [jid(3), jid(4), jid(5)]
    assert list(cast(dict[str, Any], jobs.last_run(tools, function="test.ping"))) == [jid(5)]
    assert jobs.last_run(tools, target="no-such") is False


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"search_metadata": "a"}, "search_metadata is a map"),
        ({"start_time": "yesterday"}, "^start_time: 'yesterday' is not a time"),
        ({"after": "yesterday"}, "^after: 'yesterday' is not a time"),
        ({"search_function": {"a": "b"}}, "^search_function is a name"),
        ({"limit": "many"}, "limit must be a whole number"),
        ({"end_time": "later"}, "end_time: 'later' is not a time"),
        ({"stat": "lost"}, "'stat' is no filter of jobs; the nearest is 'state'"),
        (
            {"search_fun": "a.b"},
            r"nearest is .search_function.\. There are search_function, .*, end_time, after",
        ),
        ({"function": "a.b", "search_function": "a.b"}, "function and search_function say the same"),
        ({"after": "2h", "start_time": "2026-01-01"}, "after and start_time say the same"),
        ({"ext_source": "nosuch"}, "ext_source: 'nosuch.get_jids' is not available"),
        ({"ext_source": ["mysql"]}, r"ext_source is the name of a returner, not \['mysql'\]"),
    ],
)
def test_what_is_refused(tools: RunnerTools, search: dict[str, Any], said: str) -> None:
    with pytest.raises(RunnerFault, match=said):
        jobs.list_jobs(tools, **search)


@pytest.mark.parametrize("fun", [jobs.lookup_jid, jobs.list_job, jobs.print_job, jobs.exit_success, job_queries.rerun])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("20200101000000000000", "no job with the JID 20200101000000000000 is in the job cache"),
        ("123", "'123' is not a JID"),
        (20200101, "'20200101' is not a JID"),
        ("20201301000000000000", "is not a JID"),
        (None, "'None' is not a JID"),
    ],
)
def test_what_is_no_job(tools: RunnerTools, fun: Any, given: Any, said: str) -> None:
    with pytest.raises(RunnerFault, match=said):
        fun(tools, given, **({"all": True} if fun is job_queries.rerun else {}))
