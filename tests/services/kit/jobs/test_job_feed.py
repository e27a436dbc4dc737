"""Events that come before their job is waited for: kept while a publication is on its way, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from saltern.kit.config.master import MasterOptions
from saltern.kit.jobs import job_feed
from saltern.kit.jobs.job_feed import JobFeed
from saltern.kit.jobs.job_runs import JobCall, JobRuns
from saltern.kit.links.event_bus import pack

JID, OTHER = "20260101000000000001", "20260101000000000002"
TAG = f"salt/job/{JID}/ret/web1"


def returned(minion: str = "web1", value: object = True) -> dict[str, object]:
    return {"jid": JID, "id": minion, "return": value, "retcode": 0}


def fire(feed: JobFeed, tag: str = TAG, data: Mapping[str, object] | None = None) -> None:
    feed.receive(tag, pack(tag, returned() if data is None else data))


def test_an_early_event_is_kept_while_something_is_published() -> None:
    feed = JobFeed(whole=True)
    fire(feed)
    with feed.expecting() as since:
        assert feed.early(JID, since) == []
        fire(feed)
        fire(feed, f"salt/job/{OTHER}/ret/web1")
        fire(feed, "salt/auth")
        ((tag, data),) = feed.early(JID, since) or ()
        assert (tag, data["return"]) == (TAG, True)
        with feed.expecting() as later:
            # It came before the second publication, but its events since then are all known.
            assert len(feed.early(JID, later) or ()) == 1
    with feed.expecting() as since:
        assert feed.early(JID, since) == []


def test_a_feed_that_does_not_get_every_event_knows_nothing() -> None:
    feed = JobFeed()
    with feed.expecting() as since:
        fire(feed)
        assert feed.early(JID, since) is None


@pytest.mark.parametrize(("name", "most"), [("_MOST", 3), ("_MOST_BYTES", 300), ("_SECONDS", -1.0)])
def test_what_was_dropped_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch, name: str, most: float) -> None:
    monkeypatch.setattr(job_feed, name, most)
    feed = JobFeed(whole=True)
    with feed.expecting() as since:
        for number in range(6):
            fire(feed, f"salt/job/{OTHER}/ret/web{number}")
        assert feed.early(JID, since) is None
        with feed.expecting() as later:
            assert feed.early(JID, later) == []


class Link:
    """A master that answers commands from a table, and fires events before it does."""

    def __init__(self, before: Callable[[], None], answers: Mapping[str, Any]) -> None:
        self.before, self.answers = before, answers
        self.asked: list[str] = []

    async def call(self, cmd: str, *, timeout: float = 0, once: bool = False, **fields: object) -> Any:
        self.asked.append(cmd)
        if cmd in ("publish", "runner"):
            self.before()
        await asyncio.sleep(0)
        return self.answers[cmd]


JOB = {"jid": JID, "minions": ["web1"], "missing": []}


@pytest.mark.parametrize(("whole", "heard", "looks"), [(True, True, 0), (False, True, 1), (True, False, 1)])
def test_a_return_that_overtakes_the_answer_needs_no_look(whole: bool, heard: bool, looks: int) -> None:
    feed = JobFeed(whole=whole)
    link = Link(lambda: fire(feed), {"publish": JOB, "job_returns": {"web1": returned()}})
    runs = JobRuns(link, feed, MasterOptions(), {"token": "t"}, heard=heard)

    async def run() -> list[object]:
        return [each.load and each.load["return"] async for each in runs.returns(JobCall("web1", "glob", "x.y"), 5)]

    assert asyncio.run(run()) == [True]
    assert link.asked == ["publish", *["job_returns"] * looks]


def test_a_return_after_the_answer_needs_no_look_either() -> None:
    feed = JobFeed(whole=True)
    link = Link(lambda: None, {"publish": JOB})
    runs = JobRuns(link, feed, MasterOptions(), {"token": "t"})

    async def run() -> list[str]:
        asyncio.get_running_loop().call_later(0.01, fire, feed)
        return [each.minion async for each in runs.returns(JobCall("web1", "glob", "x.y"), 5)]

    assert asyncio.run(run()) == ["web1"]
    assert link.asked == ["publish"]


def test_an_early_return_that_was_trimmed_is_read_whole() -> None:
    feed = JobFeed(whole=True)
    answers = {"publish": JOB, "job_returns": {"web1": returned(value="long")}}
    link = Link(lambda: fire(feed, data=returned(value="VALUE_TRIMMED")), answers)
    runs = JobRuns(link, feed, MasterOptions(), {"token": "t"})

    async def run() -> list[object]:
        return [each.load and each.load["return"] async for each in runs.returns(JobCall("web1", "glob", "x.y"), 5)]

    assert asyncio.run(run()) == ["long"]


def test_a_runner_that_ends_before_its_start_is_answered() -> None:
    feed = JobFeed(whole=True)
    tag = f"salt/run/{JID}"
    link = Link(lambda: fire(feed, f"{tag}/ret", {"return": 3}), {"runner": {"tag": tag, "jid": JID}})
    runs = JobRuns(link, feed, MasterOptions(), {"token": "t"})
    assert asyncio.run(runs.runner("x.y", [], {}, 5))[1]["return"] == 3
    assert link.asked == ["runner"]
