"""Attacks that send recorded requests of a minion again: within the window, later, and after the deletion of its key."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from saltern.kit.links.worker_link import AGAIN
from saltern.mworker.commands import MINION_COMMANDS, Repeat
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


@pytest.mark.ordinary
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


@pytest.mark.ordinary
def test_accepting_an_accepted_key_again_ends_no_session(worker: Worker) -> None:
    minion = worker.minion()
    worker.store.minion_keys.store("web1", minion.key.public.pem, "accepted")
    assert minion.ask("_file_envs") is not None


# ------------------------------------------------------------------------------------------------- inside and outside of the window

JID = "20260101000000000000"

#: What changes something -> (the load, what an observer of the master sees of it).
CHANGES: dict[str, tuple[dict[str, Any], Callable[[Worker], Any]]] = {
    "an event": (RECORDED["an event"], lambda worker: worker.tags().count("site/x")),
    "a batch of events": (
        {"cmd": "_minion_event", "events": [{"tag": "site/x", "data": {}}] * 2, "pretag": None},
        lambda worker: worker.tags().count("site/x"),
    ),
    "a start": (
        {"cmd": "_minion_event", "tag": "salt/minion/web1/start", "data": "x"},
        lambda worker: worker.tags().count("salt/minion/web1/start"),
    ),
    "a value of the mine": (RECORDED["the mine"], lambda worker: worker.store.cache.mine_get(["web1"], "test.ping")),
    "deletion from the mine": (
        {"cmd": "_mine_delete", "fun": "disk.usage"},
        lambda worker: worker.store.cache.mine_get(["web1"], "disk.usage"),
    ),
    "the whole mine": ({"cmd": "_mine_flush"}, lambda worker: worker.store.cache.mine_get(["web1"], "disk.usage")),
    "grains": (RECORDED["grains"], lambda worker: worker.store.cache.grains_of(["web1"])),
    "a revocation": (RECORDED["a revocation"], lambda worker: worker.store.minion_keys.state_of("web1")),
    "a pushed file": (
        {"cmd": "_file_recv", "path": ["a"], "loc": 0, "size": 3, "data": b"old"},
        lambda worker: [
            path.read_bytes()
            for path in sorted(worker.context.files_received.rglob("*"))
            if path.is_file()  # type: ignore[attr-defined]
        ],
    ),
    "a job on others": (
        {"cmd": "minion_pub", "fun": "test.ping", "arg": [], "tgt": "*", "ret": ""},
        lambda worker: worker.store.jobs.count(),
    ),
    "a runner": (
        {"cmd": "minion_runner", "fun": "test.arg", "arg": []},
        lambda worker: worker.store.jobs.count(),
    ),
    "a wheel function": (
        {"cmd": "minion_wheel", "fun": "key.list_all", "arg": [], "kwarg": {}},
        lambda worker: len([tag for tag in worker.tags() if tag.startswith("salt/wheel/")]),
    ),
    "a return of an own job": (
        {"cmd": "_return", "jid": "req", "fun": "test.ping", "return": True},
        lambda worker: worker.store.jobs.count(),
    ),
    "a return that is not kept": (
        {"cmd": "_return", "jid": "nocache", "fun": "test.ping", "return": True},
        lambda worker: len(worker.tags()),
    ),
    "a return": (
        {"cmd": "_return", "jid": JID, "fun": "test.ping", "return": True},
        lambda worker: worker.tags().count(f"salt/job/{JID}/ret/web1"),
    ),
}


@pytest.fixture
def master(new_worker: NewWorker, tmp_path: Any) -> Worker:
    made = new_worker(
        peer={".*": [".*"]}, peer_run={".*": [".*", "@wheel"]}, file_recv=True, cachedir=str(tmp_path / "cache")
    )
    object.__setattr__(made.context, "files_received", tmp_path / "cache" / "minions")
    return made


@pytest.mark.parametrize("change", CHANGES)
def test_a_repeated_request_changes_nothing(master: Worker, change: str) -> None:
    """Within the window: the minion's state went on meanwhile, and the recorded request does not set it back."""
    load, seen = CHANGES[change]
    minion = master.minion()
    request = record(minion, load)
    first = master.handler.answer(b"minion", "", request)
    if change == "a revocation":
        master.store.minion_keys.store("web1", minion.key.public.pem, "accepted")
        minion.sign_in()
    minion.ask("_mine", data={"disk.usage": 1, "test.ping": "new"})
    minion.pillar(grains={"role": "new"})
    if change == "a pushed file":
        minion.ask("_file_recv", path=["a"], loc=0, size=3, data=b"new")
    before = seen(master)
    for _ in range(3):
        assert type(master.handler.answer(b"minion", "", request)) is type(first)
        assert seen(master) == before


def send(master: Worker, minion: FakeMinion, load: dict[str, Any], skew: float) -> bool:
    """Send a request with a clock that is ``skew`` seconds ahead, and once more after a sign-in, as minions do; return
    whether it was served.
    """
    for _ in range(2):
        payload, nonce = minion.session.seal({"id": minion.id, **load}, time.time() + skew)
        reply = master.handler.answer(b"minion", "", payload)
        if reply != BAD_LOAD:
            minion.session.open(reply, nonce)
            return True
        minion.sign_in()
    return False


@pytest.mark.parametrize("skew", [0, -7200, 7200, 3 * 10**8], ids=["right", "slow", "fast", "years ahead"])
@pytest.mark.parametrize("change", CHANGES)
def test_an_old_request_is_refused(master: Worker, change: str, skew: int) -> None:
    """After the window a nonce is forgotten. The age shows also where the minion's clock is wrong."""
    load, seen = CHANGES[change]
    minion = master.minion()
    recorded = minion.session.seal({"id": minion.id, **load}, time.time() - 400 + skew)[0]
    # The minion goes on; its clock is known.
    assert send(master, minion, {"cmd": "_mine", "data": {"disk.usage": 1}}, skew)
    before = seen(master)
    for _ in range(2):
        assert master.handler.answer(b"minion", "", recorded) == BAD_LOAD
        assert seen(master) == before
    assert send(master, minion, {"cmd": "_mine", "data": {"disk.usage": 1}}, skew), "the minion goes on"


@pytest.mark.parametrize("change", CHANGES)
def test_a_request_of_a_clock_that_was_ahead_is_refused(master: Worker, change: str) -> None:
    """Its time comes only later; the minion's clock was set right meanwhile."""
    load, seen = CHANGES[change]
    minion = master.minion()
    assert send(master, minion, {"cmd": "_mine", "data": {"disk.usage": 1}}, 7200)
    recorded = minion.session.seal({"id": minion.id, **load}, time.time() + 7200)[0]
    assert send(master, minion, {"cmd": "_mine", "data": {"disk.usage": 1}}, 0)
    before = seen(master)
    assert master.handler.answer(b"minion", "", recorded) == BAD_LOAD
    assert seen(master) == before


def test_an_old_request_ends_one_session(master: Worker) -> None:
    """Whoever repeats old requests makes the minion sign in once: nothing that was recorded before counts any more."""
    minion = master.minion()
    recorded = [
        minion.session.seal({"id": "web1", **RECORDED["an event"]}, time.time() - ago)[0] for ago in (500, 600, 700)
    ]
    assert send(master, minion, RECORDED["the mine"], 0)
    assert [master.handler.answer(b"minion", "", one) for one in recorded] == [BAD_LOAD] * 3
    minion.sign_in()
    number = master.store.minion_keys.acceptance("web1")
    assert [master.handler.answer(b"minion", "", one) for one in recorded] == [BAD_LOAD] * 3
    assert master.store.minion_keys.acceptance("web1") == number
    assert minion.ask("_mine", data={}) is True


def test_a_minion_that_is_not_accepted_gets_no_session(master: Worker) -> None:
    master.store.minion_keys.renew("web9")
    assert master.store.minion_keys.acceptance("web9") == 0
    assert master.store.minion_keys.state_of("web9") is None


@pytest.mark.parametrize("skew", [0, -7200, 7200, -(10**9)], ids=["right", "slow", "fast", "decades behind"])
@pytest.mark.ordinary
def test_a_wrong_clock_is_served(master: Worker, skew: int) -> None:
    minion = master.minion()
    number = master.store.minion_keys.acceptance("web1")
    for late in (0, 10, 250, 0, 20):
        assert send(master, minion, {"cmd": "_mine", "data": {"test.ping": late}}, skew - late)
    assert master.store.minion_keys.acceptance("web1") == number, "without another sign-in"


@pytest.mark.parametrize("cmd", ["_mine", "_return", "_minion_event", "minion_pub"])
@pytest.mark.parametrize(
    ("before", "after"), [(-(10**9), 0), (7200, 0), (0, 7200), (3600, 100), (0, -200), (7200, 7000), (0, -7200)]
)
@pytest.mark.ordinary
def test_a_clock_that_is_set_is_served(master: Worker, before: int, after: int, cmd: str) -> None:
    """At most after one more sign-in, wherever it is set to."""
    minion = master.minion()
    load = {
        "cmd": cmd,
        "tag": "site/x",
        "data": {},
        "jid": JID,
        "return": True,
        "fun": "test.ping",
        "arg": [],
        "tgt": "*",
    }
    for skew in (before, after, after):
        assert send(master, minion, {**load, "ret": ""}, skew)


@pytest.mark.ordinary
def test_a_request_that_a_worker_died_over_is_carried_out(master: Worker) -> None:
    """The reqserver marks it: the command may be half done."""
    request = record(master.minion(), RECORDED["an event"])
    for side in (b"minion", AGAIN, b"minion"):
        master.handler.answer(side, "", request)
    assert master.tags().count("site/x") == 2


def test_a_request_without_a_nonce_changes_nothing(master: Worker) -> None:
    minion = master.minion()
    load = {**RECORDED["an event"], "id": "web1", "ts": int(time.time()), "tok": minion.key.x931_sign(b"salt")}
    outer = {"enc": "aes", "load": minion.session.key.dumps(load), "version": 3, "id": "web1"}
    assert master.handler.answer(b"minion", "", packb(outer)) == BAD_LOAD
    assert master.events == []


@pytest.mark.ordinary
def test_each_command_says_what_a_repetition_does() -> None:
    """What reads is harmless; each other command is answered or recognised."""
    reads = {name for name, row in MINION_COMMANDS.items() if row.repeat is Repeat.HARMLESS}
    assert reads == {
        *("_file_envs", "_file_list", "_file_list_emptydirs", "_dir_list", "_symlink_list", "_file_hash"),
        *("_file_hash_and_stat", "_file_find", "_serve_file", "_master_opts", "_master_tops", "_mine_get", "pub_ret"),
        "_register_resources",
    }


@pytest.mark.ordinary
def test_the_window_can_be_switched_off(new_worker: NewWorker) -> None:
    worker = new_worker(request_window=0)
    request = record(worker.minion(), RECORDED["an event"])
    for _ in range(2):
        worker.handler.answer(b"minion", "", request)
    assert worker.tags() == ["site/x"] * 2
