"""Sign-ins through the door: what is answered, stored and told."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest

from saltwire.envelope import clear_request
from saltwire.handshake import Outcome
from saltwire.pack import packb, unpackb

pytestmark = pytest.mark.redis

Worker = Any
NewWorker = Callable[..., Any]


def test_a_new_key_waits_then_is_let_in(worker: Worker) -> None:
    minion = worker.minion(accepted=False)
    assert minion.sign_in().outcome is Outcome.PENDING
    assert worker.store.minion_keys.state_of("web1") == ("pending", minion.key.public.pem)
    assert worker.events == [
        ("salt/key", {"result": True, "act": "pend", "id": "web1", "pub": minion.key.public.pem}),
        ("salt/auth", {"result": True, "act": "pend", "id": "web1", "pub": minion.key.public.pem}),
    ]
    assert minion.sign_in().outcome is Outcome.PENDING
    assert worker.tags() == ["salt/key", "salt/auth", "salt/auth"], "a key that waits already is no news"
    worker.store.minion_keys.store("web1", minion.key.public.pem, "accepted")
    answer = minion.sign_in()
    assert answer.outcome is Outcome.ACCEPTED
    assert answer.credentials is not None
    assert answer.credentials.aes == worker.context.aes_key_string()
    assert answer.credentials.session == worker.context.session_key_string("web1", minion.key.public)
    assert answer.credentials.publish_port == 4505
    assert worker.store.presence.present(0) == {"web1"}
    assert worker.count("salt_auth_attempts_total", result="pend") == 2
    assert worker.count("salt_auth_attempts_total", result="accept") == 1


def test_all_workers_give_the_same_keys(new_worker: NewWorker) -> None:
    one, other = new_worker(), new_worker()
    first = one.minion()
    second = other.minion()
    assert first.credentials == second.credentials


def test_who_comes_because_of_a_rotation_gets_the_new_keys(
    new_worker: NewWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker remembers the epochs for a while; a minion that could not open a publication must not get the old key again."""
    monkeypatch.setattr("saltern.mworker.worker_context.time.monotonic", lambda: 1000.0)
    worker = new_worker()
    minion = worker.minion()
    before = minion.credentials
    worker.store.epochs.rotate_aes()
    worker.store.epochs.rotate_session()
    minion.sign_in()
    fresh = new_worker().context
    assert minion.credentials != before
    assert minion.credentials.aes == fresh.aes_key_string()
    assert minion.credentials.session == fresh.session_key_string("web1", minion.key.public)


def test_a_worker_that_lags_behind_a_rotation_opens_what_another_one_gave(
    new_worker: NewWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saltern.mworker.worker_context.time.monotonic", lambda: 1000.0)
    late, current = new_worker(), new_worker()
    minion = late.minion()
    late.store.epochs.rotate_session()
    minion.handler = current.handler
    minion.sign_in()
    minion.handler = late.handler
    assert minion.ask("_file_envs") == ["base"]


@pytest.mark.parametrize(
    ("state", "same", "outcome", "stored"),
    [
        ("rejected", True, Outcome.REJECTED, "rejected"),
        ("rejected", False, Outcome.REJECTED, "rejected"),
        ("accepted", False, Outcome.REJECTED, "accepted"),
        ("pending", False, Outcome.REJECTED, "pending"),
        ("denied", True, Outcome.PENDING, "pending"),
    ],
)
def test_keys_that_are_known(worker: Worker, state: str, same: bool, outcome: Outcome, stored: str) -> None:
    worker.store.minion_keys.store("web1", worker.keys[0 if same else 1].public.pem, state)
    assert worker.minion(accepted=False).sign_in().outcome is outcome
    kept = worker.store.minion_keys.state_of("web1")
    assert kept is not None
    assert kept[0] == stored
    if not same and state in ("accepted", "pending"):
        assert worker.store.minion_keys.ids("denied") == ["web1"]
        assert kept[1] == worker.keys[1].public.pem, "another's key changed the one that is known"


@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        ({"auto_accept": True}, Outcome.ACCEPTED),
        ({"open_mode": True}, Outcome.ACCEPTED),
        ({"published_port": 14505, "auto_accept": True}, Outcome.ACCEPTED),
    ],
)
def test_labs_accept_at_once(new_worker: NewWorker, options: dict[str, Any], outcome: Outcome) -> None:
    worker = new_worker(**options)
    answer = worker.minion(accepted=False).sign_in()
    assert answer.outcome is outcome
    assert answer.credentials.publish_port == options.get("published_port", 4505)
    assert worker.store.minion_keys.ids("accepted") == ["web1"]


@pytest.mark.parametrize(
    ("lines", "listed"),
    [
        ("web1\n", True),
        ("web*\n", True),
        ("# web1\n\n  db.*  \n", False),
        ("web\\d+\n", True),
        ("web\n", False),
        ("[\n(\nweb1\n", True),
        ("eb1\nweb\n1\n", False),
        ("", False),
    ],
)
@pytest.mark.parametrize(
    ("option", "yes"), [("autosign_file", Outcome.ACCEPTED), ("autoreject_file", Outcome.REJECTED)]
)
def test_lists_of_minions(
    new_worker: NewWorker, tmp_path: Path, lines: str, listed: bool, option: str, yes: Outcome
) -> None:
    (tmp_path / "list").write_text(lines)
    worker = new_worker(**{option: str(tmp_path / "list")})
    assert worker.minion(accepted=False).sign_in().outcome is (yes if listed else Outcome.PENDING)


def test_a_list_that_is_not_there_lists_nobody(new_worker: NewWorker, tmp_path: Path) -> None:
    worker = new_worker(autosign_file=str(tmp_path / "missing"))
    assert worker.minion(accepted=False).sign_in().outcome is Outcome.PENDING


def test_no_more_minions_than_allowed(new_worker: NewWorker) -> None:
    worker = new_worker(max_minions=2, auto_accept=True)
    assert [worker.minion(f"m{n}", accepted=False).sign_in().outcome for n in range(3)] == [
        Outcome.ACCEPTED,
        Outcome.ACCEPTED,
        Outcome.FULL,
    ]
    assert worker.minion("m0", accepted=False).sign_in().outcome is Outcome.ACCEPTED
    assert worker.events[-2][1]["result"] is not False


def test_no_more_waiting_keys_than_allowed(new_worker: NewWorker) -> None:
    worker = new_worker(max_pending_keys=2)
    outcomes = [worker.minion(f"m{n}", accepted=False).sign_in().outcome for n in range(3)]
    assert outcomes == [Outcome.PENDING, Outcome.PENDING, Outcome.FULL]
    assert worker.store.minion_keys.ids("pending") == ["m0", "m1"]
    assert worker.minion("m1", accepted=False).sign_in().outcome is Outcome.PENDING


_PEM = "-----BEGIN PUBLIC KEY-----\nbroken\n-----END PUBLIC KEY-----"


@pytest.mark.parametrize("options", [{}, {"auto_accept": True}, {"open_mode": True}])
def test_a_key_that_is_none_is_refused_and_not_kept(new_worker: NewWorker, options: dict[str, Any]) -> None:
    worker = new_worker(**options)
    load = {"cmd": "_auth", "id": "web1", "pub": _PEM, "nonce": "0" * 32}
    reply = unpackb(worker.handler.answer(b"minion", "", clear_request(load)))
    packed = reply["load"]
    assert unpackb(packed if isinstance(packed, bytes) else packed.encode("utf-8", "surrogateescape"))["ret"] is False
    assert worker.store.minion_keys.state_of("web1") is None
    assert worker.events[-1][1]["act"] == "error"


@pytest.mark.parametrize(
    ("change", "reply"),
    [
        ({"id": ""}, "bad load"),
        ({"id": "../web1"}, "bad load"),
        ({"id": "web1\0"}, "bad load"),
        ({"id": 7}, "bad load"),
        ({"id": None}, "bad load"),
        ({"pub": None}, "bad load"),
        ({"pub": ["x"]}, "bad load"),
        ({"enc_algo": "ROT13"}, {"enc": "clear", "load": {"ret": "bad enc algo"}}),
        ({"sig_algo": "none"}, {"enc": "clear", "load": {"ret": "bad sig algo"}}),
    ],
)
def test_what_is_no_sign_in(worker: Worker, change: dict[str, Any], reply: Any) -> None:
    load = {"cmd": "_auth", "id": "web1", "pub": worker.keys[0].public.pem, "nonce": "0" * 32} | change
    assert worker.handler.answer(b"minion", "", clear_request(load)) == packb(reply)
    assert worker.events == []
    assert not any(worker.store.minion_keys.all().values())


def test_a_file_accepts_a_minion_once(new_worker: NewWorker, tmp_path: Path) -> None:
    (tmp_path / "web1").touch()
    (tmp_path / "old").touch()
    os.utime(tmp_path / "old", (1, 1))
    worker = new_worker(autosign_dir=str(tmp_path))
    assert worker.minion("web1", accepted=False).sign_in().outcome is Outcome.ACCEPTED
    assert list(tmp_path.iterdir()) == [tmp_path / "pillar", tmp_path / "salt"] or not (tmp_path / "web1").exists()
    worker.store.minion_keys.delete("web1")
    assert worker.minion("web1", accepted=False).sign_in().outcome is Outcome.PENDING
    assert worker.minion("old", accepted=False).sign_in().outcome is Outcome.PENDING
    assert not (tmp_path / "old").exists()


def test_files_that_accept_may_last(new_worker: NewWorker, tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    os.utime(tmp_path / "old", (1, 1))
    worker = new_worker(autosign_dir=str(tmp_path), autosign_timeout=0)
    assert worker.minion("old", accepted=False).sign_in().outcome is Outcome.ACCEPTED
    assert (
        new_worker(autosign_dir=str(tmp_path / "no")).minion("x", accepted=False).sign_in().outcome is Outcome.PENDING
    )


@pytest.mark.parametrize(
    ("grains", "outcome"),
    [
        ({"uuid": "first"}, Outcome.ACCEPTED),
        ({"uuid": "# comment"}, Outcome.PENDING),
        ({"uuid": "other"}, Outcome.PENDING),
        ({"number": 5}, Outcome.ACCEPTED),
        ({"../uuid": "first", "nosuch": 1}, Outcome.PENDING),
    ],
)
def test_grains_accept(new_worker: NewWorker, tmp_path: Path, grains: dict[str, Any], outcome: Outcome) -> None:
    for name, text in (("uuid", "# comment\nfirst\n second \n"), ("number", "5")):
        (tmp_path / name).write_text(text)
    worker = new_worker(autosign_grains_dir=str(tmp_path))
    load = {
        "cmd": "_auth",
        "id": "web1",
        "pub": worker.keys[0].public.pem,
        "nonce": "0" * 32,
        "autosign_grains": grains,
    }
    worker.handler.answer(b"minion", "", msgpack.packb({"enc": "clear", "version": 3, "load": load}))
    assert (
        worker.store.minion_keys.state_of("web1")[0]
        == {Outcome.ACCEPTED: "accepted", Outcome.PENDING: "pending"}[outcome]
    )
