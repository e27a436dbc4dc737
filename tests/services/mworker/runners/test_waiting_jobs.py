"""``jobs.list_waiting`` and ``jobs.cancel``."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from saltern.mworker.runners import waiting_jobs
from saltern.mworker.runners.runner import RunnerFault, RunnerTools

pytestmark = pytest.mark.redis


@pytest.fixture
def tools(worker: Any) -> RunnerTools:
    worker.accept("web1", "web2")
    return cast(RunnerTools, SimpleNamespace(store=worker.store))


def publish(worker: Any, **more: Any) -> str:
    fields: dict[str, Any] = {"tgt": "web*", "tgt_type": "glob", "fun": "cmd.run", "arg": ["df"], "user": "ann"}
    return str(worker.control("publish", **fields, **more)["jid"])


def test_nothing_waits(tools: RunnerTools, worker: Any) -> None:
    publish(worker)
    assert waiting_jobs.list_waiting(tools) == {}


def test_who_waits_for_whom_and_until_when(tools: RunnerTools, worker: Any) -> None:
    jid = publish(worker, when_back="2h")
    soon = publish(worker, when_back="1h")
    listed = waiting_jobs.list_waiting(tools)
    assert sorted(listed) == sorted([jid, soon])
    until = listed[jid].pop("Until")
    assert time.strftime("%Y-%m-%d %H:", time.gmtime(time.time() + 7200)) == until[:14]
    assert listed[jid] == {
        "Function": "cmd.run",
        "Arguments": ["df"],
        "Target": "web*",
        "Target-type": "glob",
        "User": "ann",
        "Waits for": ["web1", "web2"],
    }
    worker.store.jobs.record_return({"jid": jid, "id": "web1", "fun": "cmd.run", "return": ""}, ttl=600)
    assert waiting_jobs.list_waiting(tools)[jid]["Waits for"] == ["web2"]


def test_a_job_is_called_off(tools: RunnerTools, worker: Any) -> None:
    jid = publish(worker, when_back="2h")
    worker.store.jobs.sign("web1", [(jid, "started", int(time.time() * 1000))], int(time.time() * 1000))
    assert waiting_jobs.cancel(tools, jid) == {"Cancelled": ["web2"], "Too late for": {"web1": "started"}}
    assert waiting_jobs.list_waiting(tools) == {}
    assert waiting_jobs.cancel(tools, jid) == {"Cancelled": [], "Too late for": {"web1": "started"}}


def test_only_on_some(tools: RunnerTools, worker: Any) -> None:
    jid = publish(worker, when_back="2h")
    assert waiting_jobs.cancel(tools, jid, "web2") == {"Cancelled": ["web2"], "Too late for": {}}
    assert waiting_jobs.list_waiting(tools)[jid]["Waits for"] == ["web1"]


@pytest.mark.parametrize(
    ("jid", "minions", "why"),
    [
        ("20260101000000000000", (), "There is no job 20260101000000000000"),
        ("yesterday", (), "'yesterday' is not a JID"),
        (5, (), "'5' is not a JID"),
    ],
)
def test_what_is_no_job(tools: RunnerTools, jid: Any, minions: tuple[str, ...], why: str) -> None:
    with pytest.raises(RunnerFault, match=why):
        waiting_jobs.cancel(tools, jid, *minions)


def test_a_minion_of_another_job_is_named(tools: RunnerTools, worker: Any) -> None:
    jid = publish(worker, when_back="2h")
    with pytest.raises(RunnerFault, match="is not for db1; nothing was called off"):
        waiting_jobs.cancel(tools, jid, "web1", "db1")
    assert waiting_jobs.list_waiting(tools)[jid]["Waits for"] == ["web1", "web2"]
