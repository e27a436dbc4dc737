"""Attacks that send recorded requests of a minion again: sessions from before the deletion of a key."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from saltwire.pack import packb
from tests.services.mworker.conftest import FakeMinion, Worker

BAD_LOAD = packb("bad load")

NewWorker = Callable[..., Worker]

#: How web1's key stops being accepted, and is accepted again.
LOST: dict[str, tuple[str, ...]] = {
    "deleted, accepted": ("key.delete", "accept"),
    "deleted without a rotation, accepted": ("key.delete without", "accept"),
    "rejected, accepted": ("key.reject", "key.accept"),
    "revoked by the minion, accepted": ("revoke", "accept"),
    "deleted twice": ("key.delete", "accept", "key.delete", "accept"),
    "replaced, then the old one again": ("another", "accept"),
}

#: Requests that somebody recorded.
RECORDED: dict[str, dict[str, Any]] = {
    "an event": {"cmd": "_minion_event", "tag": "site/x", "data": {}},
    "grains": {"cmd": "_pillar", "grains": {"role": "old"}, "saltenv": None, "pillarenv": None},
    "the mine": {"cmd": "_mine", "data": {"test.ping": True}},
    "a revocation": {"cmd": "revoke_auth"},
    "a return": {"cmd": "_return", "jid": "20260101000000000000", "fun": "test.ping", "return": True},
    "a file": {"cmd": "_serve_file", "path": "top.sls", "saltenv": "base", "loc": 0},
}


def record(minion: FakeMinion, load: dict[str, Any]) -> bytes:
    return minion.session.seal({"id": minion.id, **load}, time.time())[0]


@pytest.mark.parametrize("recorded", RECORDED)
@pytest.mark.parametrize("lost", LOST)
def test_a_session_ends_with_its_key(worker: Worker, lost: str, recorded: str) -> None:
    minion = worker.minion()
    request = record(minion, RECORDED[recorded])
    for step in LOST[lost]:
        if step == "accept":
            worker.store.minion_keys.store("web1", minion.key.public.pem, "accepted")
        elif step == "another":
            worker.store.minion_keys.store("web1", worker.keys[1].public.pem, "accepted")
        elif step == "revoke":
            assert minion.ask("revoke_auth") is True
        elif step == "key.delete without":
            worker.control("wheel", fun="key.delete", arg=[], kwarg={"match": "web1", "rotate_aes_key": False})
        else:
            more = {"key.reject": {"include_accepted": True}, "key.accept": {"include_rejected": True}}.get(step, {})
            worker.control("wheel", fun=step, arg=[], kwarg={"match": "web1", **more})
    assert worker.store.minion_keys.state_of("web1") == ("accepted", minion.key.public.pem)
    worker.events.clear()
    assert worker.handler.answer(b"minion", "", request) == BAD_LOAD
    assert worker.events == []
    # The minion itself signs in again, and goes on.
    minion.sign_in()
    assert minion.ask("_file_envs") is not None


def test_another_worker_learns_of_it(new_worker: NewWorker) -> None:
    """A worker believes its copy of the keys for half a second; a minion that signed in meanwhile is served all the same."""
    first, second = new_worker(), new_worker()
    minion = first.minion()
    minion.ask("_file_envs")
    old = record(minion, RECORDED["an event"])
    second.store.minion_keys.delete("web1")
    second.store.minion_keys.store("web1", minion.key.public.pem, "accepted")
    there = FakeMinion("web1", minion.key, second.handler)
    assert there.sign_in().credentials is not None
    there.handler = first.handler
    assert there.ask("_file_envs") is not None
    assert first.handler.answer(b"minion", "", old) == BAD_LOAD
    assert first.events == []


def test_accepting_an_accepted_key_again_ends_no_session(worker: Worker) -> None:
    minion = worker.minion()
    worker.store.minion_keys.store("web1", minion.key.public.pem, "accepted")
    assert minion.ask("_file_envs") is not None
