"""Finding 38.8: the event stream of the API shows a user no return, argument or secret of others beyond the user's rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saltern.api.event_feed import FeedEvent, event_of_frame
from saltern.api.event_views import EventFilter, EventView, view_of
from saltern.api.streams import Streams
from saltern.kit.links.event_bus import pack
from tests.security.api_before_worker import ApiBeforeWorker, external_auth
from tests.services.mworker.conftest import Worker

NewWorker = Callable[..., Worker]

JID, OWN = "20260101000000000001", "20260101000000000002"

#: A user whose rows cover web1.
BOB = EventView(everything=False, minions=frozenset({"web1"}), owner="user file/bob")

#: Event that bob may not see -> (tag, data); all data holds the word `secret`.
HIDDEN: dict[str, tuple[str, dict[str, Any]]] = {
    "a return": (f"salt/job/{JID}/ret/db1", {"id": "db1", "return": "secret"}),
    "a return in bob's name": (f"salt/job/{JID}/ret/db1", {"id": "db1", "return": "secret", "user": "bob"}),
    "a return that names an owner": (f"salt/job/{JID}/ret/db1", {"id": "db1", "return": "secret", "owner": BOB.owner}),
    "a return that names another minion": (f"salt/job/{JID}/ret/db1", {"id": "web1", "return": "secret"}),
    "progress": (f"salt/job/{JID}/prog/db1/1", {"id": "db1", "data": "secret"}),
    "progress of the master": (f"salt/job/{JID}/prog/master_master/1", {"id": "master_master", "data": "secret"}),
    "a job elsewhere": (f"salt/job/{JID}/new", {"jid": JID, "arg": ["secret"], "minions": ["db1"], "owner": "key cli"}),
    "a job of bob's name": (f"salt/job/{JID}/new", {"jid": JID, "arg": ["secret"], "minions": ["db1"], "user": "bob"}),
    "a job of another backend": (
        f"salt/job/{JID}/new",
        {"jid": JID, "arg": ["secret"], "minions": ["db1"], "owner": "user ldap/bob"},
    ),
    "a publication": (f"salt/job/{JID}/publish", {"jid": JID, "arg": ["secret"], "tgt": "web1", "owner": BOB.owner}),
    "a runner": (f"salt/run/{JID}/new", {"fun": "runner.x", "fun_args": ["secret"], "owner": "key cli"}),
    "a runner's result": (f"salt/run/{JID}/ret", {"return": "secret", "user": "bob"}),
    "a runner's own event": (f"salt/run/{JID}/progress", {"message": "secret"}),
    "a wheel function": (f"salt/wheel/{JID}/ret", {"return": "secret"}),
    "a beacon": ("salt/beacon/db1/log", {"id": "db1", "line": "secret"}),
    "an event of a minion": ("deploy/done", {"id": "db1", "data": {"x": "secret"}}),
    "an event that holds a minion's name": ("deploy/done", {"id": ["web1"], "data": "secret"}),
    "a sign-in": ("salt/auth", {"id": "db1", "pub": "secret"}),
    "a key": ("salt/key", {"id": "db1", "act": "secret"}),
    "a webhook": ("salt/netapi/hook/deploy", {"body": "secret", "post": {"id": "web1"}}),
    "an event of the master": ("salt/reactor/x", {"data": "secret"}),
    "a short tag": ("salt/job", {"data": "secret"}),
    "a job's tag without an end": (f"salt/job/{JID}", {"data": "secret"}),
    "another word of a job": (f"salt/job/{JID}/other/web1", {"data": "secret", "id": "web1"}),
    "an empty tag": ("", {"data": "secret"}),
}


def _event(tag: str, data: dict[str, Any]) -> FeedEvent:
    found = event_of_frame(pack(tag, data))
    assert found is not None
    return found


@pytest.mark.parametrize("name", HIDDEN)
def test_an_event_of_others_is_not_shown(name: str) -> None:
    seen = EventFilter(BOB).shown(_event(*HIDDEN[name]))
    assert seen is None or "secret" not in seen.text


@pytest.mark.parametrize("name", [name for name in HIDDEN if "owner" not in str(HIDDEN[name][1])])
def test_a_user_without_minions_sees_nothing(name: str) -> None:
    for view in (EventView(False, frozenset(), "user file/eve"), EventView(False, frozenset(), "")):
        assert EventFilter(view).shown(_event(*HIDDEN[name])) is None


def test_of_a_job_on_the_own_minion_the_beginning_is_shown() -> None:
    data = {
        "jid": JID,
        "fun": "state.apply",
        "arg": ["secret"],
        "tgt": "I@k:secret",
        "user": "root",
        "missing": ["secret"],
    }
    seen = EventFilter(BOB).shown(
        _event(f"salt/job/{JID}/new", data | {"minions": ["db1", "web1"], "owner": "key cli"})
    )
    assert seen is not None
    assert "secret" not in seen.text
    assert "db1" not in seen.text
    assert seen.data["minions"] == ["web1"]


@pytest.mark.parametrize(
    "told", [{"events": {}}, {"events": {"everything": "yes", "minions": []}}, {"events": {"minions": []}}]
)
def test_a_view_that_is_not_understood_shows_no_secret(told: dict[str, Any]) -> None:
    view = view_of(told)
    assert view.everything is False


def _heard(stream: Streams, token: str, events: list[FeedEvent]) -> list[str]:
    """Return the tags that a listener gets."""
    tags: list[str] = []

    async def run() -> None:
        gone = asyncio.Event()

        async def write(event: FeedEvent | None) -> None:
            if event is not None:
                tags.append(event.tag)
                if event.tag == events[-1].tag:
                    gone.set()

        task = asyncio.create_task(stream.run(token, "127.0.0.1", "", write, gone))
        while not stream.feed.listeners and not task.done():
            await asyncio.sleep(0)
        for event in events:
            for listener in list(stream.feed._listeners):
                listener.queue.put_nowait(event)
        await asyncio.wait_for(task, 20)

    asyncio.run(run())
    return tags


@pytest.mark.redis
@pytest.mark.parametrize(
    ("rows", "sees"),
    [
        ([{"web*": ["test.ping"]}], ["web1"]),
        (["test.ping"], ["db1", "web1"]),
        ([{"@runner": ["manage.up"]}], []),
        (["@wheel"], []),
        (["@events"], ["db1", "web1"]),
        (["@jobs"], ["db1", "web1"]),
    ],
    ids=str,
)
def test_a_listener_hears_what_the_rows_cover(
    new_worker: NewWorker, tmp_path: Path, rows: list[Any], sees: list[str]
) -> None:
    worker = new_worker(external_auth=external_auth(tmp_path, {"bob": rows}))
    worker.accept("web1", "db1")
    api = ApiBeforeWorker(worker)
    token = api.login("bob")
    events = [_event(f"salt/job/{JID}/ret/{minion}", {"id": minion, "return": "secret"}) for minion in ("db1", "web1")]
    last = _event("salt/presence/present", {"present": ["web1", "db1"]})
    heard = _heard(api.api.streams, token, [*events, last])
    assert heard == [*(f"salt/job/{JID}/ret/{minion}" for minion in sees), last.tag]


# -------------------------------------------------------------------------------------------------------- ordinary use


@pytest.mark.ordinary
def test_the_own_jobs_are_seen_whole() -> None:
    own = EventFilter(BOB)
    first = _event(f"salt/job/{OWN}/new", {"jid": OWN, "arg": ["a"], "minions": ["web1"], "owner": BOB.owner})
    events = [
        first,
        _event(f"salt/job/{OWN}/publish", {"jid": OWN, "arg": ["a"]}),
        _event(f"salt/job/{OWN}/ret/web1", {"id": "web1", "return": 1}),
        _event(f"salt/run/{OWN}/ret", {"return": 1, "owner": BOB.owner}),
    ]
    assert [own.shown(event) for event in events] == events


@pytest.mark.ordinary
@pytest.mark.parametrize(
    ("tag", "data"),
    [
        (f"salt/job/{JID}/ret/web1", {"id": "web1", "return": 1}),
        (f"salt/job/{JID}/prog/web1/3", {"id": "web1"}),
        ("salt/beacon/web1/load", {"id": "web1"}),
        ("deploy/done", {"id": "web1"}),
        ("salt/minion/db1/start", {"id": "db1"}),
        ("salt/presence/change", {"new": ["db1"]}),
    ],
)
def test_the_own_minions_are_heard(tag: str, data: dict[str, Any]) -> None:
    event = _event(tag, data)
    assert EventFilter(BOB).shown(event) == event


@pytest.mark.ordinary
def test_a_worker_of_the_last_release_tells_no_view() -> None:
    assert view_of({"name": "bob"}).everything is True
