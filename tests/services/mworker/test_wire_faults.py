"""What a broken or lying minion sends, field by field, and what the master makes of it (docs/wire-faults.md)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.links.event_bus import pack
from saltern.mworker.commands import MINION_COMMANDS
from saltwire.envelope import ClientSession
from saltwire.errors import AuthenticationError
from saltwire.handshake import Outcome
from saltwire.pack import packb

pytestmark = pytest.mark.redis

Worker = Any
NewWorker = Callable[..., Any]

JID = "20260101000000000000"
RETURN = {"jid": JID, "fun": "test.ping", "fun_args": [], "return": True, "retcode": 0, "success": True}
BAD_LOAD = packb("bad load")

#: Texts in every script, bytes that are no text, and types that nobody expects.
ODD: tuple[Any, ...] = (
    "gr\u00fc\u00df \u2603 \U0001f9c2",
    "\x00\x1b[31m\r\n",
    "a/../../b",
    b"\xff\xfe\x00",
    "x" * 70_000,
    None,
    -1,
    2.5,
    True,
    [],
    {},
    [[["deep"]]],
    {1: {b"\xff": None}},
    2**63 - 1,
    2**64 - 1,
    -(2**63),
    float("inf"),
    float("nan"),
    "9" * 5000,
    "/etc/passwd",
    "salt:keys:accepted",
    "99991231235959999999",
    datetime(2026, 1, 2),
    reduce(lambda inner, _: [inner], range(100), None),
)


FIELDS = ("fun", "fun_args", "return", "retcode", "success", "out", "metadata", "user", "schedule")


def test_a_return_with_anything_in_any_field_is_kept_and_told(worker: Worker) -> None:
    minion = worker.minion()
    cases = [(field, odd) for field in FIELDS for odd in ODD]
    jids = [f"20260101000000{number:06d}" for number in range(len(cases))]
    for jid, (field, odd) in zip(jids, cases, strict=True):
        assert minion.ask("_return", **RETURN | {"jid": jid, field: odd}) is None, (field, odd)
        assert field in worker.store.jobs.returns(jid)["web1"], (field, odd)
    assert worker.tags() == [f"salt/job/{jid}/ret/web1" for jid in jids]


def opened(new_worker: NewWorker, tmp_path: Path) -> Worker:
    """A worker that lets minions do all that can be switched on, and whose events have to fit onto the bus."""
    anything: dict[str, Any] = {".*": [".*"]}
    made = new_worker(peer=anything, peer_run=anything, file_recv=True, cachedir=str(tmp_path / "cache"))
    (tmp_path / "salt" / "top.sls").write_text("base: {}\n")

    def fire(tag: str, data: Mapping[str, Any]) -> bool:
        return bool(pack(tag, data, max_bytes=made.context.options.max_event_size))

    made.context.fire = fire
    return made


@pytest.mark.parametrize("cmd", sorted({*MINION_COMMANDS} - {"_return", "revoke_auth"}))
def test_a_request_with_anything_in_any_field_is_answered(
    new_worker: NewWorker, tmp_path: Path, cmd: str, caplog: pytest.LogCaptureFixture
) -> None:
    worker = opened(new_worker, tmp_path)
    minion = worker.minion()
    whole = {"tag": "a/b", "data": {}, "tgt": "*", "fun": "test.ping", "path": "top.sls", "saltenv": "base", "loc": 0}
    whole |= {"opts": {}, "arg": [], "prefix": "", "jid": JID, "resources": {}, "ret": "", "timeout": 1, "gzip": 1}
    for field in whole:
        for odd in ODD:
            # What is answered later is none of the worker's work; that there is an answer is what counts here.
            minion.send({"cmd": cmd, "id": minion.id, **whole, field: odd})
            assert "Traceback" not in caplog.text, (field, odd)


def test_who_returns_for_another_is_told_to_sign_in(worker: Worker) -> None:
    liar = worker.minion("web1")
    worker.minion("db1", key=1)
    session = ClientSession("db1", liar.session.key, liar.key)
    payload, _ = session.seal({"cmd": "_return", **RETURN, "id": "db1"}, time.time())
    assert worker.handler.answer(b"minion", "", payload) == BAD_LOAD
    assert worker.store.jobs.returns(JID) == {}
    assert worker.events == []


def test_a_return_is_the_senders_whatever_id_it_names(worker: Worker) -> None:
    assert worker.minion("web1").ask("_return", **RETURN, id="db1") is None
    assert sorted(worker.store.jobs.returns(JID)) == ["web1"]


def test_a_jid_from_nowhere_is_kept_and_logged(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    """The job cache may have been emptied while the minion worked: what it did is not thrown away."""
    assert worker.minion().ask("_return", **RETURN) is None
    assert worker.store.jobs.job(JID).returns["web1"]["return"] is True
    assert "a return for a job that is not in the cache" in caplog.text


def test_two_machines_of_one_name(worker: Worker) -> None:
    """The first one keeps the name. A copy with the same key is the same minion: its first return counts."""
    first = worker.minion("web1")
    other = worker.minion("web1", accepted=False, key=1)
    assert other.sign_in().outcome is Outcome.REJECTED
    assert worker.store.minion_keys.state_of("web1") == ("accepted", first.key.public.pem)
    copy = worker.minion("web1", accepted=False)
    assert copy.sign_in().outcome is Outcome.ACCEPTED
    assert copy.ask("_return", **RETURN | {"return": "of the copy"}) is None
    assert first.ask("_return", **RETURN) is None
    assert worker.store.jobs.returns(JID)["web1"]["return"] == "of the copy"


@pytest.mark.parametrize(
    ("ttl", "off", "answered"), [(0, -3600, True), (0, 3600, True), (60, 3600, True), (60, -3600, False)]
)
def test_clocks_an_hour_apart(new_worker: NewWorker, ttl: int, off: int, answered: bool) -> None:
    """They count only where the site has asked for it, as in Salt: then a request from the past is refused."""
    worker = new_worker(request_server_ttl=ttl)
    minion = worker.minion()
    payload, nonce = minion.session.seal({"cmd": "_file_envs"}, time.time() + off)
    reply = worker.handler.answer(b"minion", "", payload)
    if answered:
        assert minion.session.open(reply, nonce) == ["base"]
    else:
        with pytest.raises(AuthenticationError):
            minion.session.open(reply, nonce)
