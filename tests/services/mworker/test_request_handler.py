"""The door: whatever comes in, one answer goes out, nothing is raised, and nobody speaks for another."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import msgpack
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from masterstore.errors import StoreCorrupt
from saltern.kit.config.worker_pools import Pools
from saltern.kit.links.rights import Verb
from saltern.mworker import request_handler as door_module
from saltern.mworker.commands import (
    CONTROL_COMMANDS,
    MINION_COMMANDS,
    ControlCommand,
    ControlPolicy,
    MinionCommand,
    MinionPolicy,
    Owner,
    Repeat,
)
from saltern.mworker.request_handler import RequestHandler, WrongPool
from saltwire.crypticle import Crypticle
from saltwire.envelope import ClientSession, clear_request
from saltwire.errors import AuthenticationError
from saltwire.handshake import SignIn
from saltwire.pack import packb, unpackb

pytestmark = pytest.mark.redis

Worker = Any

BAD_LOAD = packb("bad load")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        b"garbage",
        packb(None),
        packb([1, 2]),
        packb({}),
        packb({"enc": "aes"}),
        packb({"enc": "rot13", "load": {}}),
        packb({"enc": "aes", "load": {}, "version": 3, "id": "web1"}),
        packb({"enc": "aes", "load": b"x" * 100, "version": 3, "id": "web1"}),
        packb({"enc": "aes", "load": b"x" * 100, "version": 3, "id": "nobody"}),
        packb({"enc": "aes", "load": b"x" * 100, "version": 3, "id": "../../etc"}),
        packb({"enc": "aes", "load": b"x" * 100, "version": 3, "id": 7}),
        packb({"enc": "aes", "load": b"x" * 100, "version": 2}),
        packb({"enc": "aes", "load": b"x" * 100}),
        packb({"enc": "aes", "load": b"x" * 100, "version": 3, "id": "web1", "enc_algo": "none"}),
        msgpack.packb({(1, 2): 3}),
    ],
)
def test_garbage_is_told_to_sign_in(worker: Worker, payload: bytes, caplog: pytest.LogCaptureFixture) -> None:
    worker.minion()
    assert worker.handler.answer(b"minion", "", payload) == BAD_LOAD
    assert "Traceback" not in caplog.text
    assert worker.count("salt_master_requests_handled_total", cmd="unknown", outcome="refused") == 1


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=80), st.sampled_from([b"minion", b"control"]))
def test_bytes_of_any_kind_get_an_answer(worker: Worker, payload: bytes, side: bytes) -> None:
    assert isinstance(worker.handler.answer(side, "cli", payload), bytes)


@pytest.mark.parametrize(
    ("load", "reply"),
    [
        ({"cmd": "ping"}, {"cmd": "ping"}),
        ({"cmd": "publish", "fun": "cmd.run", "tgt": "*", "user": "root"}, {}),
        ({"cmd": "runner", "fun": "jobs.active"}, {}),
        ({"cmd": "wheel", "fun": "key.accept", "match": "*"}, {}),
        ({"cmd": "mk_token", "eauth": "auto"}, {}),
        ({"cmd": "_return", "id": "web1"}, {}),
        ({"cmd": "_pillar", "id": "web1"}, {}),
        ({"cmd": "__init__"}, {}),
        ({"cmd": None}, {}),
        ({}, {}),
        ([1], "payload and load must be a dict"),
        ("text", "payload and load must be a dict"),
    ],
)
def test_in_the_clear_there_is_nothing_but_sign_in_and_ping(worker: Worker, load: Any, reply: Any) -> None:
    payload = packb({"enc": "clear", "load": load, "version": 3})
    assert worker.handler.answer(b"minion", "", payload) == packb(reply)
    assert worker.events == []
    assert worker.store.jobs.recent(10) == []


@pytest.mark.parametrize("cmd", ["", "nothing", "_auth", "publish", "runner", "wheel", "__class__", "ping", None, 7])
def test_commands_without_a_row_are_answered_with_nothing(worker: Worker, cmd: Any) -> None:
    assert worker.minion().ask(cmd) == {}
    assert worker.count("salt_master_requests_handled_total", cmd="unknown", outcome="ok") == 1


def test_a_session_is_needed(worker: Worker) -> None:
    minion = worker.minion()
    worker.store.minion_keys.delete("web1")
    assert minion.send({"cmd": "_file_envs", "id": "web1"})[0] == BAD_LOAD


@pytest.mark.parametrize("lie", ["load", "envelope", "token"])
def test_nobody_speaks_for_another(worker: Worker, lie: str) -> None:
    minion, victim = worker.minion("web1"), worker.minion("db1", key=1)
    session = minion.session
    names = {"load": ("web1", "db1"), "envelope": ("db1", "web1"), "token": ("web1", "web1")}
    outer, inner = names[lie]
    if lie == "token":
        session = ClientSession("web1", session.key, victim.key)
    payload, _ = session.seal({"cmd": "_mine", "data": {"a": 1}}, time.time())
    envelope = unpackb(payload, raw=True)
    load = session.key.loads(envelope["load"]) | {"id": inner}
    sealed = packb({**envelope, "id": outer, "load": session.key.dumps(load)})
    assert worker.handler.answer(b"minion", "", sealed) == BAD_LOAD
    assert worker.store.cache.mine_get(["web1", "db1"], "a") == {}


def test_an_old_epochs_session_still_opens_and_one_before_does_not(worker: Worker) -> None:
    minion = worker.minion()
    worker.store.epochs.rotate_session()
    worker.context._epochs = None
    assert minion.ask("_file_envs") == ["base"]
    worker.store.epochs.rotate_session()
    worker.context._epochs = None
    assert minion.send({"cmd": "_file_envs", "id": "web1"})[0] == BAD_LOAD
    minion.sign_in()
    assert minion.ask("_file_envs") == ["base"]


def test_the_answer_is_bound_to_its_request(worker: Worker) -> None:
    minion = worker.minion()
    first, _ = minion.send({"cmd": "_file_envs", "id": "web1"})
    _, nonce = minion.send({"cmd": "_file_envs", "id": "web1"})
    with pytest.raises(Exception, match="nonce"):
        minion.session.open(first, nonce)


@pytest.mark.parametrize(("age", "fits"), [(0, True), (29, True), (31, False)])
def test_requests_that_are_too_old(new_worker: Callable[..., Worker], age: int, fits: bool) -> None:
    worker = new_worker(request_server_ttl=30)
    minion = worker.minion()
    payload, nonce = minion.session.seal({"cmd": "_file_envs"}, time.time() - age)
    reply = worker.handler.answer(b"minion", "", payload)
    assert (minion.session.open(reply, nonce) == ["base"]) if fits else (reply == BAD_LOAD)


def test_version_two_only_where_it_is_allowed(new_worker: Callable[..., Worker]) -> None:
    strict, lenient = new_worker(), new_worker(minimum_auth_version=2)
    minion = strict.minion()
    session = ClientSession("web1", Crypticle(strict.context.aes_key_string()), minion.key, version=2)
    for worker, served in ((strict, False), (lenient, True)):
        payload, nonce = session.seal({"cmd": "_file_envs", "id": "web1", "tok": b""}, time.time())
        reply = worker.handler.answer(b"minion", "", payload)
        assert (session.open(reply, nonce) == ["base"]) if served else (reply == BAD_LOAD)


@pytest.mark.parametrize("cmd", sorted(MINION_COMMANDS))
def test_in_version_two_who_changes_something_proves_who_it_is(new_worker: Callable[..., Worker], cmd: str) -> None:
    """Its key is everybody's. What minions of that version send without a token is the rest: returns, files."""
    worker = new_worker(minimum_auth_version=2)
    minion = worker.minion("web1")
    worker.accept("db1")
    session = ClientSession("web1", Crypticle(worker.context.aes_key_string()), minion.key, version=2)
    load = {"cmd": cmd, "data": {"a.b": 1}, "tag": "a/b", "fun": "a.b", "jid": "x", "return": 1}
    without = {"_return", "_file_envs", "_file_list", "_file_list_emptydirs", "_dir_list", "_symlink_list", "_file_hash",
               "_file_hash_and_stat", "_file_find", "_serve_file", "_master_opts"}  # fmt: skip
    for forged in ({"id": "db1"}, {"id": "db1", "tok": b""}, {}):
        reply = worker.handler.answer(b"minion", "", session.seal(load | forged, time.time())[0])
        refused = reply == BAD_LOAD
        # A token that is there is looked at in any case.
        assert refused is (cmd not in without or "tok" in forged), forged
    payload, nonce = session.seal(load | {"id": "web1", "tok": b""}, time.time())
    reply = worker.handler.answer(b"minion", "", payload)
    assert isinstance(reply, bytes)
    session.open(reply, nonce)


def test_a_handler_that_fails_is_answered_as_stock_masters_do(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(context: Any, minion_id: str, load: Any) -> Any:
        raise RuntimeError("broken")

    row = MinionCommand(MinionPolicy.OWN, fail, Repeat.HARMLESS)
    monkeypatch.setattr(door_module, "MINION_COMMANDS", {**MINION_COMMANDS, "_mine": row})
    assert worker.minion().ask("_mine") == ""
    assert "a command failed" in caplog.text


@pytest.mark.parametrize("key", ["salt:epochs", "salt:keys:accepted", "salt:mine"])
def test_a_key_that_another_hand_made_is_named_once(
    new_worker: Callable[..., Worker], redis_url: str, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    worker = new_worker()
    minion = worker.minion()
    other = new_worker()
    minion.handler = other.handler
    with redis.Redis.from_url(redis_url) as client:
        client.delete(key)
        client.set(key, "another's")
    for _ in range(3):
        said = unpackb(minion.send({"cmd": "_mine", "id": "web1", "data": {"a": 1}})[0])
        assert said.startswith("the master cannot read a key in Redis: ")
        assert "saltern store check" in said
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1
    assert "Traceback" not in caplog.text


def test_a_return_that_could_not_be_stored_is_not_acknowledged(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    minion = worker.minion()

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise StoreCorrupt("salt:job", "of another kind")

    monkeypatch.setattr(worker.store.jobs, "record_return", refuse)
    ret = {"jid": "20260101000000000000", "fun": "test.ping", "return": True}
    with pytest.raises(AuthenticationError):
        minion.ask("_return", **ret)


def test_without_redis_nothing_is_acknowledged(new_worker: Callable[..., Worker]) -> None:
    worker = new_worker()
    minion = worker.minion()
    away = new_worker(url="redis://127.0.0.1:1/0")
    minion.handler = away.handler
    reply, nonce = minion.send({"cmd": "_return", "id": "web1", "jid": "20260101000000000000", "fun": "a", "return": 1})
    with pytest.raises(AuthenticationError, match="the master cannot reach Redis"):
        minion.session.open(reply, nonce)
    assert away.count("salt_master_requests_handled_total", cmd="unknown", outcome="unavailable") == 1
    name, message = away.control("job_returns", jid="1")
    assert name == "StoreUnavailable"
    assert "127.0.0.1:1" in message


class TestControl:
    """Operators' commands."""

    @pytest.mark.parametrize(
        ("payload", "name", "says"),
        [
            (b"", "BadRequest", "not msgpack"),
            (b"\xc1", "BadRequest", "not msgpack"),
            (msgpack.packb({(1, 2): 3}), "BadRequest", "not msgpack"),
            (msgpack.packb([1]), "BadRequest", "a request is a map, not a list"),
            (
                msgpack.packb({}),
                "UnknownCommand",
                "no control command 'None'; there are failed_of, find_jobs, fleet, hook, job_call, job_matrix, job_returns",
            ),
            (msgpack.packb({"cmd": "_auth"}), "UnknownCommand", "'_auth'"),
            (msgpack.packb({"cmd": ["ping"]}), "UnknownCommand", "there are"),
        ],
    )
    def test_bad_requests_are_told_what_is_wrong(
        self, worker: Worker, payload: bytes, name: str, says: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        reply = msgpack.unpackb(worker.handler.answer(b"control", "cli", payload))["error"]
        assert reply["name"] == name
        assert says in reply["message"]
        assert "Traceback" not in caplog.text

    @pytest.mark.parametrize(
        ("acl", "client", "cmd", "fields", "allowed"),
        [
            ({"*": [".*"]}, "cli", "publish", {"fun": "cmd.run"}, True),
            ({"*": ["test\\..*"]}, "cli", "publish", {"fun": "cmd.run"}, False),
            ({"*": ["test\\..*"]}, "cli", "publish", {"fun": "test.ping"}, True),
            ({"*": ["test"]}, "cli", "publish", {"fun": "test.ping"}, False),
            ({"*": ["test\\..*"]}, "cli", "publish", {"fun": ["test.ping", "cmd.run"]}, False),
            ({"*": ["@runner"]}, "cli", "publish", {"fun": "@runner"}, False),
            ({"*": [".*"]}, "cli", "runner", {"fun": "test.arg"}, False),
            ({"*": ["@runner"]}, "cli", "runner", {"fun": "test.arg"}, True),
            ({"*": ["@runner"]}, "cli", "wheel", {"fun": "key.list_all"}, False),
            ({"*": ["@wheel"]}, "cli", "wheel", {"fun": "key.list_all"}, True),
            ({"*": ["@wheel"]}, "cli", "job_returns", {"jid": "1"}, False),
            ({"*": ["@jobs"]}, "cli", "job_returns", {"jid": "1"}, True),
            ({"*": ["@jobs"], "cli": []}, "cli", "job_returns", {"jid": "1"}, False),
            ({"api": ["@jobs"]}, "ann", "job_returns", {"jid": "1"}, False),
            ({"api": ["@jobs"]}, "cli", "job_returns", {"jid": "1"}, True),
            ({}, "cli", "publish", {"fun": "cmd.run"}, True),
            ({}, "cli", "wheel", {"fun": "key.list_all"}, True),
            ({}, "api", "publish", {"fun": "test.ping"}, False),
            ({}, "api", "runner", {"fun": "test.arg"}, False),
            ({}, "api", "targets", {"tgt": "*"}, False),
            ({}, "ann", "publish", {"fun": "test.ping"}, False),
            ({}, "ann", "job_returns", {"jid": "1"}, False),
            ({}, "reactor", "publish", {"fun": "cmd.run"}, True),
            ({}, "maintenance", "runner", {"fun": "test.arg"}, True),
            ({}, "maintenance", "publish", {"fun": "cmd.run"}, False),
            ({}, "publisher", "publish", {"fun": "cmd.run"}, False),
            ({}, "cli", "ping", {}, True),
            ({}, "", "wheel", {"fun": "key.list_all"}, False),
        ],
    )
    def test_a_key_does_what_its_list_says(
        self,
        new_worker: Callable[..., Worker],
        acl: dict[str, list[str]],
        client: str,
        cmd: str,
        fields: dict[str, Any],
        allowed: bool,
    ) -> None:
        worker = new_worker(control_acl=acl)
        worker.accept("web1")
        answer = worker.control(cmd, client, **fields)
        refused = isinstance(answer, tuple) and answer[0] == "AuthorizationError"
        assert refused is not allowed
        if refused and fields.get("fun") == ["test.ping", "cmd.run"]:
            assert answer[1] == "cli may not run cmd.run (option control_acl)"

    @pytest.mark.parametrize(
        ("client", "cmd", "fields", "said"),
        [
            ("ann", "publish", {"fun": "test.ping", "tgt": "web1"}, ""),
            (
                "ann",
                "publish",
                {"fun": "test.ping", "tgt": "*"},
                "ann may not run test.ping on * (option publisher_acl)",
            ),
            (
                "ann",
                "publish",
                {"fun": "cmd.run", "tgt": "web1"},
                "ann may not run cmd.run on web1 (option publisher_acl)",
            ),
            ("ann", "job_returns", {"jid": "1"}, ""),
            ("ann", "runner", {"fun": "test.arg"}, "ann may not use @runner for test.arg (option publisher_acl)"),
            ("ann", "wheel", {"fun": "key.list_all"}, ""),
            ("ann", "wheel", {"fun": "key.accept"}, "ann may not use @wheel for key.accept (option publisher_acl)"),
            (
                "bob",
                "job_returns",
                {"jid": "1"},
                "bob may not use @jobs (option publisher_acl: it gives this key no right; add a row for it to the"
                " master's configuration)",
            ),
            ("cli", "publish", {"fun": "test.ping", "tgt": "*"}, ""),
            ("cli", "publish", {"fun": "cmd.run", "tgt": "*"}, "cmd.run is barred (option publisher_acl_blacklist)"),
            ("cli", "runner", {"fun": "test.arg", "user": "eve"}, "eve is barred (option publisher_acl_blacklist)"),
        ],
        ids=str,
    )
    def test_operators_of_their_own(
        self, new_worker: Callable[..., Worker], client: str, cmd: str, fields: dict[str, Any], said: str
    ) -> None:
        rows = {"ann": [{"web*": ["test.*", "cmd.run_all"]}, {"@wheel": ["key.list"]}]}
        worker = new_worker(publisher_acl=rows, publisher_acl_blacklist={"modules": ["cmd.run"], "users": ["eve"]})
        if said.startswith("ann may not run cmd.run"):
            worker = new_worker(publisher_acl=rows)
        for minion in ("web1", "db1"):
            worker.accept(minion)
        answer = worker.control(cmd, client, **fields)
        assert (answer[1] if isinstance(answer, tuple) else "") == said

    @pytest.mark.parametrize(
        ("rules", "pinned"), [([{"web*": ["test."]}], True), (["test."], False), ([{"*": ["test."]}], False)], ids=str
    )
    def test_who_may_run_it_on_some_minions_has_it_sent_to_those(
        self, new_worker: Callable[..., Worker], rules: list[Any], pinned: bool
    ) -> None:
        """Minions decide by what they are now, and who may was decided by what the master knows of them."""
        worker = new_worker(publisher_acl={"ann": rules})
        for minion, role in (("web1", "shop"), ("db1", "bank")):
            worker.accept(minion)
            worker.store.cache.set_grains(minion, {"role": role})
        answer = worker.control("publish", "ann", fun="test.ping", tgt="role:shop", tgt_type="grain", within=["db1"])
        assert answer["minions"] == ["web1"]
        ((_, sent),) = worker.store.publications.range_since(0)
        asked = ("role:shop", "grain")
        assert (sent["tgt"], sent["tgt_type"]) == ((["web1"], "list") if pinned else asked)
        load = worker.store.jobs.load(answer["jid"])
        assert (load["tgt"], load["tgt_type"]) == asked
        assert "within" not in load

    def test_an_operator_of_their_own_is_nobody_else(self, new_worker: Callable[..., Worker]) -> None:
        worker = new_worker(publisher_acl={"ann": ["test."]})
        worker.accept("web1")
        job = worker.control("publish", "ann", fun="test.ping", tgt="web1", user="root")
        assert worker.store.jobs.load(job["jid"])["user"] == "ann"

    def test_a_command_that_fails_is_told_and_logged(
        self, worker: Worker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail(context: Any, client: str, fields: Any) -> Any:
            raise RuntimeError("broken")

        row = ControlCommand(ControlPolicy.ANY, fail, Verb.READ, Owner.NONE)
        monkeypatch.setattr(door_module, "CONTROL_COMMANDS", {**CONTROL_COMMANDS, "ping": row})
        assert worker.control("ping") == ("InternalError", "ping failed on the master: broken; its log has the details")
        assert "a command failed" in caplog.text
        assert worker.count("salt_master_requests_handled_total", cmd="ping", outcome="error") == 1

    def test_ping(self, worker: Worker) -> None:
        assert worker.control("ping") == {"id": "master_master"}


def test_every_row_has_a_policy() -> None:
    for table, row_type in ((MINION_COMMANDS, MinionCommand), (CONTROL_COMMANDS, ControlCommand)):
        assert all(row.policy for row in table.values())
        (policy,) = [item for item in dataclasses.fields(row_type) if item.name == "policy"]
        assert policy.default is dataclasses.MISSING


def test_the_two_sides_have_no_command_in_common() -> None:
    assert not MINION_COMMANDS.keys() & CONTROL_COMMANDS.keys()


def test_requests_are_timed(worker: Worker) -> None:
    worker.handler.answer(b"minion", "", clear_request({"cmd": "ping"}))
    assert worker.count("salt_master_request_seconds_count", cmd="ping") == 1


# ----------------------------------------------------------------------------------------------------------------------- pools


def test_a_request_of_another_pool_is_given_back_and_nothing_is_done_about_it(
    new_worker: Callable[..., Worker],
) -> None:
    worker = new_worker()
    minion = worker.minion()
    pools = Pools({"returns": 1, "rest": 1}, {"_return": "returns", "publish": "returns", "_auth": "returns"}, "rest")
    handler = RequestHandler(worker.context, pools)
    jid = "20261121120000000000"
    payload, nonce = minion.session.seal(
        {"cmd": "_return", "jid": jid, "fun": "test.ping", "return": True}, time.time()
    )
    order = msgpack.packb({"cmd": "publish", "fun": "test.ping", "tgt": "*"})
    sign_in = SignIn("new", worker.keys[1], None).request()
    for side, client, message in ((b"minion", "", payload), (b"control", "cli", order), (b"minion", "", sign_in)):
        assert handler.answer(side, client, message, "rest") == WrongPool("returns")
    assert worker.store.jobs.returns(jid) == {}
    assert worker.tags() == []
    assert worker.store.minion_keys.state_of("new") is None
    assert worker.count("salt_master_requests_handled_total", cmd="_return", outcome="ok") == 0
    # In its own pool, and where nobody says that it may be of another, it is done.
    assert minion.session.open(handler.answer(b"minion", "", payload, "returns"), nonce) is None
    assert worker.store.jobs.returns(jid)["web1"]["return"] is True
    assert isinstance(handler.answer(b"control", "cli", order), bytes)


def test_what_cannot_be_opened_is_refused_in_any_pool(worker: Worker) -> None:
    handler = RequestHandler(worker.context, Pools({"returns": 1, "rest": 1}, {"_return": "returns"}, "rest"))
    assert handler.answer(b"minion", "", b"garbage", "returns") == BAD_LOAD
