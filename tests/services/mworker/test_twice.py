"""Every command may be worked on twice: a worker that dies with a request may have done all of it but answer.

The same message comes twice, as the reqserver hands it to another worker; the first answer is thrown away. What the store holds
afterwards is what it held after the first time, and the second answer is one that the sender can use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgpack
import pytest
import redis

from masterstore import keys as store_keys
from saltern.kit.links.worker_link import AGAIN
from saltern.mworker.commands import CONTROL_COMMANDS, MINION_COMMANDS
from saltern.mworker.commands.keys import WHEELS
from saltern.mworker.deferred_reply import SealedDeferredReply
from saltern.mworker.request_handler import UNLISTED
from saltwire.handshake import SignIn

pytestmark = pytest.mark.redis

Worker = Any

JID = "20261121120000000000"
RETURN = {"jid": JID, "fun": "test.ping", "return": True, "retcode": 0, "success": True}
PEER = {"fun": "test.ping", "arg": [], "tgt": "*", "ret": ""}

#: What a second time may leave behind: who was heard of when, that somebody is to read anew, and what is told on the bus, which is
#: told at least once. The audit record has each request of an operator.
_TOLD_AGAIN = (store_keys.SEEN, store_keys.STOCK_SIGN_INS, "salt:events", store_keys.AUDIT)
_READ_ANEW = (":changed", ":version")

#: Sealed anew each time.
_SEALED = "salt:pillar"

#: Counts that a return has come twice.
_COUNTED = b"duplicates"


@dataclass(frozen=True)
class Row:
    """A command's message; ``jobs`` are known to the job cache before, ``denied`` keys wait beside accepted ones."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    #: Tags of events that a second time fires again: who listens hears of something at least once.
    again: tuple[str, ...] = ()


#: A command that has no row here comes without fields.
MINION: Mapping[str, Row] = {
    "_return": Row(RETURN),
    "_minion_event": Row({"tag": "site/x", "data": {"a": 1}, "pretag": None}, again=("site/x",)),
    "_file_list": Row({"saltenv": "base"}),
    "_file_hash": Row({"saltenv": "base", "path": "top.sls"}),
    "_serve_file": Row({"saltenv": "base", "path": "top.sls", "loc": 0}),
    "_mine": Row({"data": {"network.ip_addrs": ["10.0.0.1"]}}),
    "_mine_get": Row({"tgt": "*", "fun": "network.ip_addrs"}),
    "_mine_delete": Row({"fun": "network.ip_addrs"}),
    "minion_pub": Row(PEER),
    "pub_ret": Row({"jid": JID}),
    "minion_publish": Row({**PEER, "tmo": 1}),
    "minion_runner": Row({"fun": "test.arg", "arg": ["x"]}),
    "minion_wheel": Row({"fun": "key.list_all", "arg": [], "kwarg": {}}, again=("salt/wheel/",)),
    "_file_recv": Row({"path": ["a", "b"], "loc": 0, "data": b"text", "size": 4}),
    "_master_tops": Row({"opts": {"id": "web1", "grains": {}}}),
    "_pillar": Row({"grains": {"os": "Debian"}, "saltenv": None, "pillarenv": None}, again=("minion/refresh/",)),
}

CONTROL: Mapping[str, Row] = {
    "publish": Row({"fun": "test.ping", "tgt": "*", "request_id": "one"}),
    "runner": Row({"fun": "test.arg", "arg": ["x"], "request_id": "two"}),
    "targets": Row({"tgt": "*"}),
    "fleet": Row({"tgt": "*"}),
    "topology": Row(),
    "job_matrix": Row({"jid": JID}),
    "job_call": Row({"jid": JID}),
    "job_returns": Row({"jid": JID}),
    "known": Row({"minions": ["web1"]}),
    "wheel": Row({"fun": "key.list_all"}, again=("salt/wheel/",)),
}

#: Wheel functions that change something -> arguments.
WHEEL: Mapping[str, Mapping[str, Any]] = {
    "key.accept": {"match": "pending"},
    "key.reject": {"match": "pending"},
    "key.delete": {"match": "web1"},
    "key.accept_dict": {"match": {"minions_pre": ["pending"]}},
    "key.reject_dict": {"match": {"minions_pre": ["pending"]}},
    "key.delete_dict": {"match": {"minions": ["web1"]}},
}


@pytest.fixture
def worker(new_worker: Callable[..., Worker], tmp_path: Any) -> Worker:
    made = new_worker(
        peer={".*": [".*"]}, peer_run={".*": [".*", "@wheel"]}, file_recv=True, cachedir=str(tmp_path / "cache")
    )
    (tmp_path / "salt" / "top.sls").write_text("base: {}\n")
    made.minion()
    made.store.minion_keys.store("pending", made.keys[1].public.pem, "pending")
    made.control("publish", fun="test.ping", tgt="*", jid=JID, request_id="first")
    made.events.clear()
    return made


def snapshot(url: str) -> dict[str, Any]:
    """All that Redis holds, but for what may be told again."""
    client = redis.Redis.from_url(url)
    read: Mapping[bytes, Callable[[bytes], Any]] = {
        b"string": client.get,
        b"hash": client.hgetall,
        b"set": client.smembers,
        b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
        b"list": lambda key: client.lrange(key, 0, -1),
        b"stream": lambda key: client.xrange(key),
    }
    held = {}
    for key in client.scan_iter():
        name = key.decode(errors="replace")
        if not name.startswith(_TOLD_AGAIN) and not name.endswith(_READ_ANEW):
            held[name] = read[client.type(key)](key)
    if _SEALED in held:
        held[_SEALED] = sorted(held[_SEALED])
    for values in held.values():
        if isinstance(values, dict):
            values.pop(_COUNTED, None)
    return held


def twice(worker: Worker, url: str, side: bytes, payload: bytes, again: tuple[str, ...]) -> list[Any]:
    """Both answers; what the store holds and what is fired is compared. The second time a minion's request comes from a worker
    that died.
    """
    answers, snapshots, runners = [], [], []
    for side_then in (side, AGAIN if side == b"minion" else side):
        answers.append(worker.handler.answer(side_then, "cli", payload))
        snapshots.append(snapshot(url))
        runners.append(len(worker.runners))
    assert snapshots[0] == snapshots[1]
    assert runners[0] == runners[1], "a runner is started once"
    half = [tag for tag, _ in worker.events]
    more = [tag for tag in half if not tag.startswith(again)] if again else half
    assert len(more) == len(set(more)), f"told twice: {more}"
    return answers


@pytest.mark.parametrize("cmd", sorted({*MINION_COMMANDS, *UNLISTED} - {"_auth", "ping"}))
def test_commands_of_minions(worker: Worker, redis_url: str, cmd: str) -> None:
    minion = worker.minion()
    minion.ask("_mine", data={"network.ip_addrs": ["10.0.0.9"]})
    row = MINION.get(cmd, Row())
    payload, nonce = minion.session.seal({"cmd": cmd, "id": minion.id, **row.fields}, time.time())
    first, second = twice(worker, redis_url, b"minion", payload, row.again)
    if isinstance(second, SealedDeferredReply):
        return
    if cmd in ("_pillar", "revoke_auth", "_mine_delete", "_missed"):
        # One is sealed by a key of its own; after the other the minion has no key; one says whether there was anything, one what
        # time it is.
        assert second
        return
    assert minion.session.open(first, nonce) == minion.session.open(second, nonce)


@pytest.mark.parametrize("cmd", sorted(CONTROL_COMMANDS))
def test_commands_of_operators(worker: Worker, redis_url: str, cmd: str) -> None:
    row = CONTROL.get(cmd, Row())
    answers = twice(worker, redis_url, b"control", msgpack.packb({"cmd": cmd, **row.fields}), row.again)
    if any(isinstance(answer, SealedDeferredReply) for answer in answers):
        # A sign-in: its child process answers both times, and stores a token of its own each time.
        assert cmd == "login"
        return
    first, second = map(msgpack.unpackb, answers)
    assert "error" not in second or cmd not in CONTROL, second
    # A call of wheel has a JID, a minion is known for longer, and an overview says what time it is.
    if cmd not in ("wheel", "known", "fleet", "topology"):
        assert first == second


@pytest.mark.parametrize("fun", sorted(WHEEL))
def test_administration(worker: Worker, redis_url: str, fun: str) -> None:
    assert fun in WHEELS
    payload = msgpack.packb({"cmd": "wheel", "fun": fun, "kwarg": dict(WHEEL[fun])})
    before = snapshot(redis_url)
    twice(worker, redis_url, b"control", payload, ("salt/wheel/",))
    assert snapshot(redis_url) != before, "it does something"


def test_a_sign_in(worker: Worker, redis_url: str) -> None:
    """Of a minion that is known, and of one that is not."""
    known = worker.minion()
    for name, key in ((known.id, known.key), ("new", worker.keys[1])):
        machine = SignIn(name, key, None)
        _, second = twice(worker, redis_url, b"minion", machine.request(), ("salt/auth",))
        worker.events.clear()
        answer = machine.feed(second)
        assert (answer.credentials is not None) == (name == known.id), answer


@pytest.mark.parametrize("fields", [{"jid": "req"}, {"jid": "req", "own_jid": JID}, {"jid": "nocache"}])
def test_a_return_of_a_job_that_a_minion_began_itself(
    worker: Worker, redis_url: str, fields: Mapping[str, Any]
) -> None:
    """salt-call of a stock minion says no id of its own for it: the message's nonce is one."""
    minion = worker.minion()
    payload, _ = minion.session.seal({"cmd": "_return", "id": minion.id, **RETURN, **fields}, time.time())
    twice(worker, redis_url, b"minion", payload, ())


def test_what_is_compared_can_differ(worker: Worker, redis_url: str) -> None:
    """Without its request id a job is published twice, and that is seen."""
    payload = msgpack.packb({"cmd": "publish", "fun": "test.ping", "tgt": "*"})
    with pytest.raises(AssertionError):
        twice(worker, redis_url, b"control", payload, ())
