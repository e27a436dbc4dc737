"""What commands that watch and export ask the master: answers in numbers, refusals by name."""

from __future__ import annotations

import time
from typing import Any

import pytest

from masterstore.life import State
from saltern.kit.links.control import CONTROL_PATIENCE

pytestmark = pytest.mark.redis

JID = "20200101000000000000"


@pytest.fixture
def jid(worker: Any) -> str:
    worker.accept("web1", "web2")
    return str(worker.control("publish", tgt="*", fun="test.ping", user="ann", request_id="r")["jid"])


def test_status(worker: Any, jid: str) -> None:
    now = int(time.time() * 1000)
    worker.store.jobs.sign("web1", [(jid, State.STARTED, now)], now)
    worker.store.jobs.record_return({"jid": jid, "id": "web2", "fun": "test.ping", "return": 1, "retcode": 3}, ttl=60)
    told = worker.control("job_status", jid=jid)
    assert now <= told["now"] <= now + CONTROL_PATIENCE * 1000
    assert (told["jid"], told["fun"], told["user"], told["tgt"]) == (jid, "test.ping", "ann", "*")
    assert (told["complete"], told["ended"]) == (False, None)
    assert told["counts"] == {"expected": 2, "answered": 1, "returned": 1, "failed": 1, "late": 0, "duplicates": 0}
    web1, web2 = told["minions"]["web1"], told["minions"]["web2"]
    assert (web1["state"], web1["late"], web1["seen"]) == ("started", False, now)
    assert web1["since"] == web1["times"]["started"]
    assert (web2["state"], "seen" in web2) == ("returned", False)
    assert worker.control("failed_of", jid=jid, minions=["web1", "web2", "ghost"]) == {"web2": 1}
    worker.store.jobs.record_return({"jid": jid, "id": "web1", "fun": "test.ping", "return": 1}, ttl=60, now_ms=now + 5)
    told = worker.control("job_status", jid=jid)
    assert told["complete"] is True
    assert told["ended"] >= now


def test_pages(worker: Any, jid: str) -> None:
    second = str(worker.control("publish", tgt="web1", fun="test.echo", user="ann", request_id="r2")["jid"])
    page = worker.control("find_jobs", filters={"limit": 1})
    assert [job["jid"] for job in page["jobs"]] == [second]
    assert page["cursor"] == second
    assert page["jobs"][0]["load"]["fun"] == "test.echo"
    assert page["jobs"][0]["meta"]["expected"] == "1"
    page = worker.control("find_jobs", filters={"cursor": second})
    assert ([job["jid"] for job in page["jobs"]], page["cursor"]) == ([jid], "")
    assert worker.control("find_jobs") == worker.control("find_jobs", filters={})
    assert worker.control("find_jobs", filters={"minion": "web2", "function": "test.e*"}) == {"jobs": [], "cursor": ""}


@pytest.mark.parametrize(
    ("cmd", "fields", "name", "said"),
    [
        ("job_status", {"jid": JID}, "UnknownJob", f"no job with the JID {JID}"),
        ("job_status", {"jid": "12"}, "JidError", "'12' is not a JID"),
        ("job_status", {}, "JidError", "'None' is not a JID"),
        ("find_jobs", {"filters": {"stat": 1}}, "FilterError", "'stat' is no filter of jobs; the nearest is 'state'"),
        ("find_jobs", {"filters": {"after": "soon"}}, "FilterError", "after: 'soon' is not a time"),
        ("find_jobs", {"filters": [1]}, "InvocationError", "filters must be a map"),
        ("failed_of", {"jid": JID}, "InvocationError", "minions must be a list"),
        ("failed_of", {"jid": JID, "minions": ["m"] * 101}, "InvocationError", "of 100 ids at most"),
    ],
    ids=str,
)
def test_refusals(worker: Any, cmd: str, fields: dict[str, Any], name: str, said: str) -> None:
    refused = worker.control(cmd, **fields)
    assert refused[0] == name
    assert said in refused[1]


def test_returns_of_some(worker: Any, jid: str) -> None:
    for minion in ("web1", "web2"):
        worker.store.jobs.record_return({"jid": jid, "id": minion, "fun": "test.ping", "return": minion}, ttl=60)
    assert set(worker.control("job_returns", jid=jid)) == {"web1", "web2"}
    assert set(worker.control("job_returns", jid=jid, minions=["web2", "ghost"])) == {"web2"}
    assert worker.control("job_returns", jid=jid, minions="web2")[0] == "InvocationError"


@pytest.mark.parametrize("cmd", ["job_status", "find_jobs", "failed_of"])
def test_who_may_ask(new_worker: Any, cmd: str) -> None:
    worker = new_worker(control_acl={"cli": ["test.*"]})
    assert worker.control(cmd, jid=JID)[0] == "AuthorizationError"
