"""Attacks of operators who have no right to saltutil.find_job, which a waiting `salt` may send about its own job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from saltern.kit.links.rights import question_of
from tests.services.mworker.conftest import Worker

NewWorker = Callable[..., Worker]

#: Operator -> its row of publisher_acl.
ACL: dict[str, Any] = {"ann": ["test.ping"], "bob": ["test.version"], "carl": ["@jobs"]}


@pytest.fixture
def master(new_worker: NewWorker) -> Worker:
    """A master with three minions; web1 and web2 have a job of ann's."""
    made = new_worker(publisher_acl=ACL)
    made.accept("web1", "web2", "db1")
    return made


def job_of(master: Worker, client: str = "ann", fun: str = "test.ping") -> str:
    return str(master.control("publish", client, tgt=["web1", "web2"], tgt_type="list", fun=fun)["jid"])


def question(jid: str, /, **changes: Any) -> dict[str, Any]:
    asked = {
        "tgt": ["web1"],
        "tgt_type": "list",
        "fun": "saltutil.find_job",
        "arg": [jid],
        "user": "x",
        "request_id": "r",
    }
    return {name: value for name, value in (asked | changes).items() if value is not ...}


#: Attack -> what it changes in the question of a waiting `salt`.
CHANGED: dict[str, dict[str, Any]] = {
    "a returner": {"ret": "smtp"},
    "an executor": {"kwargs": {"module_executors": ["docker"]}},
    "an executor's options": {"kwargs": {"executor_opts": {"user": "root"}}},
    "a returner's configuration": {"kwargs": {"ret_config": "other"}},
    "a returner's arguments": {"kwargs": {"ret_kwargs": {"host": "evil"}}},
    "metadata": {"kwargs": {"metadata": {"a": 1}}},
    "a start event": {"kwargs": {"start_event": True}},
    "all minions": {"tgt": "*", "tgt_type": "glob"},
    "a glob in a list": {"tgt": ["*"]},
    "a list as text": {"tgt": "web1,db1"},
    "a grain": {"tgt": "os:*", "tgt_type": "grain"},
    "a compound target": {"tgt": "web1 or db1", "tgt_type": "compound"},
    "a minion that has not the job": {"tgt": ["web1", "db1"]},
    "a minion that is not there": {"tgt": ["web1", "db9"]},
    "no target type": {"tgt_type": ...},
    "another function": {"fun": "cmd.run", "arg": ["id"]},
    "another function of the module": {"fun": "saltutil.kill_job"},
    "a function that begins so": {"fun": "saltutil.find_jobs"},
    "a second function": {"fun": ["saltutil.find_job", "cmd.run"], "arg": [["x"], ["id"]]},
    "a list of one function": {"fun": ["saltutil.find_job"], "arg": [["20260101000000000000"]]},
    "a job that is not there": {"arg": ["20260101000000000000"]},
    "no job": {"arg": []},
    "a keyword argument": {"arg": [{"__kwarg__": True, "jid": "20260101000000000000"}]},
    "a second argument": {"arg": ["20260101000000000000", "x"]},
    "text that is no JID": {"arg": ["../../x"]},
    "a JID of its own": {"jid": "20260101000000000009"},
    "that waits for minions": {"when_back": 3600},
    "a field that is not known yet": {"more": True},
}


@pytest.mark.parametrize("attack", CHANGED)
def test_a_changed_question_is_refused(master: Worker, attack: str) -> None:
    jid = job_of(master)
    asked = question(jid, **CHANGED[attack])
    before = master.store.jobs.count()
    assert master.control("publish", "ann", **asked)[0] == "AuthorizationError"
    assert master.store.jobs.count() == before


@pytest.mark.parametrize(
    ("client", "acl"),
    [
        ("eve", {}),
        ("eve", {"publisher_acl": {**ACL, "eve": []}}),
        ("eve", {"control_acl": {"eve": []}}),
        ("eve", {"control_acl": {"eve": ["@runner"]}}),
        ("bob", {"control_acl": {"bob": ["test.version"]}}),
        ("bob", {}),
    ],
    ids=[
        "no row",
        "an empty row",
        "an empty row of control_acl",
        "runners alone",
        "another function, no @jobs",
        "another function on the same minions",
    ],
)
def test_a_job_of_somebody_else_is_not_asked_about(new_worker: NewWorker, client: str, acl: dict[str, Any]) -> None:
    master = new_worker(**({"publisher_acl": ACL} | acl))
    master.accept("web1", "web2")
    jid = job_of(master)
    assert master.control("publish", client, **question(jid))[0] == "AuthorizationError"


@pytest.mark.parametrize("client", ["ann", "carl"])
@pytest.mark.ordinary
def test_a_waiting_command_may_ask(master: Worker, client: str) -> None:
    """carl may read all jobs."""
    jid = job_of(master)
    answer = master.control("publish", client, **question(jid, tgt=["web1", "web2"], ret="", kwargs={}))
    assert answer["minions"] == ["web1", "web2"]
    assert master.store.jobs.load(answer["jid"])["user"] == client  # type: ignore[index]


@pytest.mark.ordinary
def test_whoever_has_the_right_asks_anything(new_worker: NewWorker) -> None:
    master = new_worker(publisher_acl={"ann": ["saltutil.find_job"]})
    master.accept("web1", "web2")
    assert master.control("publish", "ann", tgt="*", fun="saltutil.find_job", arg=["x"])["minions"] == ["web1", "web2"]


@pytest.mark.parametrize("value", [None, 5, "saltutil.find_job", b"x", ["saltutil.find_job"], {}])
@pytest.mark.parametrize("field", ["fun", "arg", "tgt", "tgt_type"])
@pytest.mark.ordinary
def test_any_value_is_read(field: str, value: object) -> None:
    asked = question("20260101000000000000") | {field: value}
    whole = (field, value) in (("fun", "saltutil.find_job"), ("tgt", ["saltutil.find_job"]))
    assert (question_of(asked) is not None) is whole
