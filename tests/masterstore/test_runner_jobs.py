"""Jobs of runners in the store: begun once, alive while somebody says so, ended once."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from masterstore.store import Store

pytestmark = pytest.mark.redis

JID, OTHER = "20260101000000000000", "20260101000001000000"
LOAD: dict[str, Any] = {"jid": JID, "fun": "runner.test.sleep", "tgt": "master", "arg": [9], "user": "root"}
RET: dict[str, Any] = {
    "jid": JID,
    "id": "master",
    "fun": "runner.test.sleep",
    "return": True,
    "success": True,
    "retcode": 0,
}
TTL = 600


def begun(store: Store, jid: str = JID, request: str = "r") -> str:
    return store.runner_jobs.begin(request, {**LOAD, "jid": jid}, "master", ttl=TTL)


def test_a_request_begins_one_job(store: Store) -> None:
    assert [begun(store), begun(store, OTHER)] == [JID, JID]
    assert store.jobs.load(JID) == LOAD
    assert store.jobs.load(OTHER) is None


def test_it_is_listed_once_it_has_ended(store: Store) -> None:
    begun(store)
    assert store.jobs.recent(9) == []
    assert store.jobs.returns(JID) == {}
    assert store.runner_jobs.end(LOAD, RET, ttl=TTL)
    (job,) = store.jobs.recent(9)
    assert (job.jid, job.meta["answered"], job.meta["failed"]) == (JID, "1", "0")
    assert store.jobs.returns(JID) == {"master": RET}


def test_a_job_ends_once(store: Store) -> None:
    begun(store)
    lost = {**RET, "return": "killed", "success": False, "retcode": 1}
    assert store.runner_jobs.end(LOAD, lost, ttl=TTL)
    assert not store.runner_jobs.end(LOAD, RET, ttl=TTL)
    assert store.jobs.returns(JID)["master"]["return"] == "killed"
    assert store.jobs.meta(JID)["failed"] == "1"


def test_who_is_silent_is_known(store: Store) -> None:
    begun(store)
    begun(store, OTHER, "another")
    threading.Event().wait(0.05)
    assert store.runner_jobs.alive(OTHER, "process 5 of worker w")
    assert list(store.runner_jobs.silent(40)) == [JID]
    assert store.jobs.meta(OTHER)["where"] == "process 5 of worker w"
    store.runner_jobs.end(LOAD, RET, ttl=TTL)
    assert list(store.runner_jobs.silent(0)) == [OTHER]


def test_who_has_ended_gives_no_sign(store: Store) -> None:
    begun(store)
    store.runner_jobs.end(LOAD, RET, ttl=TTL)
    assert not store.runner_jobs.alive(JID, "here")
    assert store.runner_jobs.silent(0) == {}


def test_what_is_dropped_may_be_asked_for_again(store: Store) -> None:
    begun(store)
    store.runner_jobs.drop("r", JID)
    assert store.jobs.load(JID) is None
    assert store.runner_jobs.silent(0) == {}
    assert begun(store, OTHER) == OTHER


def test_a_result_that_was_never_begun_is_kept(store: Store) -> None:
    """It was started while the store was away."""
    assert store.runner_jobs.end(LOAD, RET, ttl=TTL)
    assert store.jobs.job(JID) is not None
