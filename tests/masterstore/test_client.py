"""The connection: one kind of error within a deadline, whatever is wrong with Redis."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from redis._parsers.base import BaseParser

from masterstore import keys
from masterstore.client import Client
from masterstore.errors import StoreCorrupt, StoreError, StoreUnavailable
from masterstore.events import BEGINNING, KeptEvent
from masterstore.job_filter import JobFilter
from masterstore.jobs import Job, UnaskedLimits
from masterstore.life import State
from masterstore.store import Store
from masterstore.tokens import Token, digest_of
from tests.ports import free_port

JID = "20260101000000000000"
LOAD = {"jid": JID, "fun": "test.ping", "tgt": "*", "arg": []}

TOKEN = Token("ada", "file", (), 1.0, 2e9)

#: Every verb of the store.
VERBS: dict[str, Callable[[Store], Any]] = {
    "master_keys.set": lambda store: store.master_keys.set("a", "aa:bb"),
    "master_keys.known_to": lambda store: store.master_keys.known_to("a"),
    "master_keys.all": lambda store: store.master_keys.all(),
    "master_keys.own_minions": lambda store: store.master_keys.own_minions(["a"]),
    "ping": lambda store: store.ping(),
    "jobs.publish": lambda store: store.jobs.publish(LOAD, ["a"], request_id="r", ttl=60, now_ms=1),
    "runner_jobs.begin": lambda store: store.runner_jobs.begin("r", LOAD, "master", ttl=60),
    "runner_jobs.drop": lambda store: store.runner_jobs.drop("r", JID),
    "runner_jobs.alive": lambda store: store.runner_jobs.alive(JID, "here"),
    "runner_jobs.silent": lambda store: store.runner_jobs.silent(1),
    "runner_jobs.running": lambda store: store.runner_jobs.running(),
    "runner_jobs.orders": lambda store: store.runner_jobs.orders(JID),
    "runner_jobs.tell": lambda store: store.runner_jobs.tell(JID, "vim", {}, ttl=60),
    "runner_jobs.take_back": lambda store: store.runner_jobs.take_back(JID, "vim"),
    "runner_jobs.lose": lambda store: store.runner_jobs.lose(JID, "why", ttl=60),
    "runner_jobs.end": lambda store: store.runner_jobs.end(LOAD, {"id": "master", "return": 1}, ttl=60),
    "jobs.record_return": lambda store: store.jobs.record_return({"jid": JID, "id": "a", "fun": "test.ping"}, ttl=60),
    "jobs.store_external": lambda store: store.jobs.store_external(JID, LOAD, {"id": "a", "return": 1}),
    "jobs.own_jid": lambda store: store.jobs.own_jid("a", JID, JID, ttl=60),
    "jobs.may_store_own": lambda store: store.jobs.may_store_own("a", "", UnaskedLimits(1, 1)),
    "jobs.life": lambda store: store.jobs.life(JID),
    "jobs.sign": lambda store: store.jobs.sign("a", [(JID, "started", 1)], 1),
    "jobs.not_again": lambda store: store.jobs.not_again([JID]),
    "jobs.cancel": lambda store: store.jobs.cancel(JID, None, 1),
    "jobs.move": lambda store: store.jobs.move(JID, State.LOST, ["a"], 1),
    "jobs.missed": lambda store: store.jobs.missed("a", 0, 1),
    "jobs.waiting": lambda store: store.jobs.waiting("a", 1),
    "jobs.waiting_jobs": lambda store: store.jobs.waiting_jobs(1),
    "jobs.resend": lambda store: store.jobs.resend("a", LOAD, 1),
    "jobs.settle": lambda store: store.jobs.settle(1, 1),
    "job_budget.bytes": lambda store: store.job_budget.bytes(),
    "job_budget.forget": lambda store: store.job_budget.forget(1, 1),
    "job_budget.drop_ended": lambda store: store.job_budget.drop_ended(1),
    "job_budget.evict": lambda store: store.job_budget.evict(1),
    "job_budget.drop": lambda store: store.job_budget.drop(JID),
    "audit.append": lambda store: store.audit.append({"act": "x"}, 1),
    "audit.seal": lambda store: store.audit.seal(1, kept=10),
    "audit.end": lambda store: store.audit.end(),
    "audit.entries": lambda store: list(store.audit.entries()),
    "audit.seals": lambda store: list(store.audit.seals()),
    "audit.verify": lambda store: store.audit.verify(),
    "schema.version": lambda store: store.schema.version(),
    "schema.begin": lambda store: store.schema.begin(),
    "schema.say": lambda store: store.schema.say(),
    "jobs.waits_for": lambda store: store.jobs.waits_for(JID, "a"),
    "found_jobs.minions_among": lambda store: store.found_jobs.minions_among([JID], ["a"]),
    "jobs.check_load": lambda store: store.jobs.check_load(JID),
    "jobs.load": lambda store: store.jobs.load(JID),
    "jobs.returns": lambda store: store.jobs.returns(JID),
    "jobs.returns of some": lambda store: store.jobs.returns(JID, ["a"]),
    "jobs.expected": lambda store: store.jobs.expected(JID),
    "jobs.meta": lambda store: store.jobs.meta(JID),
    "jobs.missing": lambda store: store.jobs.missing(JID),
    "jobs.job": lambda store: store.jobs.job(JID),
    "jobs.recent": lambda store: store.jobs.recent(5),
    "jobs.described": lambda store: store.jobs.described([JID], meta=True),
    "found_jobs.lives": lambda store: store.found_jobs.lives([Job(JID, {})]),
    "found_jobs.page": lambda store: store.found_jobs.page(JobFilter(limit=5)),
    "found_jobs.pages": lambda store: list(store.found_jobs.pages(JobFilter())),
    "jobs.count": lambda store: store.jobs.count(),
    "jobs.active": lambda store: store.jobs.active(0),
    "jobs.expire": lambda store: store.jobs.expire(1),
    "publications.follow": lambda store: store.publications.follow("0-0", 1),
    "publications.range_since": lambda store: store.publications.range_since(0),
    "publications.last_id": lambda store: store.publications.last_id(),
    "publications.cursor": lambda store: store.publications.cursor("p"),
    "publications.save_cursors": lambda store: store.publications.save_cursors(["p"], "1-1"),
    "publications.give_sign": lambda store: store.publications.give_sign("p", 1),
    "publications.forget_cursors": lambda store: store.publications.forget_cursors(1, "*"),
    "events.keep": lambda store: store.events.keep(b"frame", 10),
    "events.keep_all": lambda store: store.events.keep_all([b"frame", b"frame"], 10),
    "events.want": lambda store: store.events.want("r", ["a/*"]),
    "events.wanted": lambda store: store.events.wanted(),
    "events.read": lambda store: store.events.read(BEGINNING, 1),
    "events.newest": lambda store: store.events.newest(),
    "events.count": lambda store: store.events.count(),
    "event_groups.create": lambda store: store.event_groups.create("g", 1),
    "event_groups.read": lambda store: store.event_groups.read("g", "c", 1, 1),
    "event_groups.done": lambda store: store.event_groups.done("g", ["1-1"]),
    "event_groups.claim": lambda store: store.event_groups.claim("g", "c", 1, 1),
    "event_groups.mine": lambda store: store.event_groups.mine("g", "c"),
    "event_groups.leave": lambda store: store.event_groups.leave("g", "c"),
    "event_groups.bury": lambda store: store.event_groups.bury("g", KeptEvent("1-1", 1, b""), "why", 1),
    "event_groups.dead": lambda store: store.event_groups.dead("g", 1),
    "event_groups.revive": lambda store: store.event_groups.revive("g", "1-1", 10),
    "event_groups.drop": lambda store: store.event_groups.drop("g", "1-1"),
    "event_groups.backlog": lambda store: store.event_groups.backlog("g"),
    "event_groups.state": lambda store: store.event_groups.state("g"),
    "event_groups.save_state": lambda store: store.event_groups.save_state("g", "{}", 0),
    "minion_keys.state_of": lambda store: store.minion_keys.state_of("a"),
    "minion_keys.store": lambda store: store.minion_keys.store("a", "PEM", "accepted"),
    "minion_keys.store denied": lambda store: store.minion_keys.store("a", "PEM", "denied"),
    "minion_keys.delete": lambda store: store.minion_keys.delete("a"),
    "minion_keys.ids": lambda store: store.minion_keys.ids("accepted"),
    "minion_keys.accepted": lambda store: store.minion_keys.accepted(),
    "minion_keys.all": lambda store: store.minion_keys.all(),
    "minion_keys.pems": lambda store: store.minion_keys.pems("accepted", ["a"]),
    "minion_keys.sign_all": lambda store: store.minion_keys.sign_all(),
    "minion_keys.pem": lambda store: store.minion_keys.pem("a"),
    "minion_keys.acceptance": lambda store: store.minion_keys.acceptance("a"),
    "replays.admit": lambda store: store.replays.admit("a", "0" * 32, 1, window=300),
    "minion_keys.renew": lambda store: store.minion_keys.renew("a"),
    "minion_keys.outdated": lambda store: (
        store.minion_keys._accepted.update(a=("PEM", 1)),
        store.minion_keys.outdated("a"),
    ),
    "cache.set_grains": lambda store: store.cache.set_grains("a", {}),
    "cache.grains": lambda store: store.cache.grains("a"),
    "cache.all_grains": lambda store: store.cache.all_grains(),
    "cache.all_pillars": lambda store: store.cache.all_pillars(),
    "cache.set_pillar": lambda store: store.cache.set_pillar("a", b"sealed"),
    "cache.pillars_of": lambda store: store.cache.pillars_of(["a"]),
    "cache.keep_pillar": lambda store: store.cache.keep_pillar("a", "base", b"sealed", 60),
    "cache.kept_pillar": lambda store: store.cache.kept_pillar("a"),
    "cache.drop_pillar": lambda store: store.cache.drop_pillar("a"),
    "banks.store": lambda store: store.banks.store("b", "k", 1),
    "banks.fetch": lambda store: store.banks.fetch("b", "k"),
    "banks.names": lambda store: store.banks.names("b"),
    "banks.flush": lambda store: store.banks.flush("b"),
    "cache.mine_set": lambda store: store.cache.mine_set("a", {"f": 1}),
    "cache.mine_get": lambda store: store.cache.mine_get(["a"], "f"),
    "cache.mine_delete": lambda store: store.cache.mine_delete("a", "f"),
    "cache.mine_flush": lambda store: store.cache.mine_flush("a"),
    "cache.mine_of": lambda store: store.cache.mine_of("a"),
    "cache.forget_grains": lambda store: store.cache.forget_grains("a"),
    "cache.forget_pillar": lambda store: store.cache.forget_pillar("a"),
    "cache.forget": lambda store: store.cache.forget("a"),
    "presence.forget": lambda store: store.presence.forget("a"),
    "presence.arrived": lambda store: store.presence.arrived("m", 1),
    "presence.seen": lambda store: store.presence.seen("a", 1),
    "presence.left": lambda store: store.presence.left("a", 1),
    "presence.connected": lambda store: store.presence.connected(["a"], 1),
    "presence.last_seen": lambda store: store.presence.last_seen(["a"]),
    "presence.present": lambda store: store.presence.present(0),
    "tokens.add": lambda store: store.tokens.add("text", TOKEN, most=2),
    "tokens.find": lambda store: store.tokens.find("text", 1),
    "tokens.revoke": lambda store: store.tokens.revoke("text"),
    "tokens.revoke_all": lambda store: store.tokens.revoke_all("file", "ada"),
    "tokens.failures": lambda store: store.tokens.failures(["ada"]),
    "tokens.record_failure": lambda store: store.tokens.record_failure(["ada"], window=60),
    "epochs.current": lambda store: store.epochs.current(),
    "epochs.rotate_aes": lambda store: store.epochs.rotate_aes(),
    "epochs.rotate_session": lambda store: store.epochs.rotate_session(),
    "sign_ins.begin": lambda store: store.sign_ins.begin("a", "PEM", 1),
    "sign_ins.of_stock": lambda store: store.sign_ins.of_stock(),
    "locks.acquire": lambda store: store.locks.acquire("l", "me", 1000),
    "locks.newest": lambda store: store.locks.newest("l"),
    "locks.release": lambda store: store.locks.release("l", "me"),
    "overview.facts": lambda store: store.overview.facts(),
    "overview.saltern_minions": lambda store: store.overview.saltern_minions(),
    "overview.last_seen": lambda store: store.overview.last_seen(),
    "overview.redis": lambda store: store.overview.redis(),
    "overview.clients": lambda store: store.overview.clients(),
    "overview.publishers": lambda store: store.overview.publishers(),
    "overview.lengths": lambda store: store.overview.lengths(),
    "overview.newest_publication": lambda store: store.overview.newest_publication(),
    "overview.report_reqserver": lambda store: store.overview.report_reqserver("reqserver", {}),
    "overview.reqservers": lambda store: store.overview.reqservers(1),
}


def test_the_table_of_verbs_is_whole() -> None:
    parts = {
        name: part
        for name, part in vars(Store.open("redis://127.0.0.1:1", client_name="x")).items()
        if name[0] != "_" and name != "faults"
    }
    verbs = {f"{name}.{verb}" for name, part in parts.items() for verb in dir(part) if verb[0] != "_"}
    known = {" ".join(name.split()[:1]) for name in VERBS}
    # ``grains_of`` is what ``grains`` calls; ``read_lives`` reads what was asked for before. Copies are in this process.
    others = {"audit.entered", "audit.entry", "audit.unsealed", "cache.grains_of", "jobs.read_lives"}
    assert verbs - known == others | {"cache.copied_bytes", "cache.release_copies"}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS.keys())
def test_nobody_there(verb: Callable[[Store], Any]) -> None:
    port = free_port()
    store = Store.open(f"redis://user:secret@127.0.0.1:{port}/0", timeout=0.3, client_name="test")
    started = time.monotonic()
    with pytest.raises(
        StoreUnavailable, match=rf"redis at redis://user:\*\*\*@127\.0\.0\.1:{port}/0 does not answer"
    ) as caught:
        verb(store)
    assert time.monotonic() - started < 30
    assert "secret" not in str(caught.value)


class Impostor:
    """A server on loopback that says ``answer`` to whatever it hears (None: nothing at all) and keeps what it hears.

    ``greets``: it takes part in the greeting (CLIENT, PING) before that.
    """

    def __init__(self, answer: bytes | None, *, greets: bool = False) -> None:
        self._greets = greets
        self._answer = answer
        self.heard: list[bytes] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            while heard := connection.recv(65536):
                self.heard.append(heard)
                if self._greets and b"CLIENT" in heard:
                    connection.sendall(b"+OK\r\n" * heard.count(b"CLIENT"))
                elif self._greets and b"PING" in heard:
                    connection.sendall(b"+PONG\r\n")
                elif self._answer is not None:
                    connection.sendall(self._answer)
        except OSError:
            return

    @property
    def connections(self) -> int:
        """How many there have been."""
        return len(self._connections)

    def close(self) -> None:
        for made in (self._listening, *self._connections):
            # Its thread waits in the kernel, which a close alone does not end. The peer may have closed first.
            with contextlib.suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)
            made.close()


@pytest.fixture
def impostor() -> Iterator[Callable[..., Impostor]]:
    made: list[Impostor] = []

    def make(answer: bytes | None, *, greets: bool = False) -> Impostor:
        made.append(Impostor(answer, greets=greets))
        return made[-1]

    yield make
    for server in made:
        server.close()


@pytest.mark.parametrize("verb", ["ping", "cache.mine_set"])
def test_a_redis_that_hangs(impostor: Callable[..., Impostor], verb: str) -> None:
    server = impostor(None)
    store = Store.open(f"redis://127.0.0.1:{server.port}", timeout=0.4, client_name="test")
    started = time.monotonic()
    with pytest.raises(StoreUnavailable):
        VERBS[verb](store)
    assert time.monotonic() - started >= 0.4
    # One wait (the handshake's or the command's), not one for each hidden retry.
    assert server.connections == 1


@pytest.mark.parametrize("verb", ["epochs.rotate_aes", "jobs.store_external"])
def test_a_command_that_was_not_answered_is_not_sent_again(impostor: Callable[..., Impostor], verb: str) -> None:
    server = impostor(None, greets=True)
    store = Store.open(f"redis://127.0.0.1:{server.port}", timeout=0.4, client_name="test")
    started = time.monotonic()
    with pytest.raises(StoreUnavailable):
        VERBS[verb](store)
    assert time.monotonic() - started >= 0.4
    assert server.connections == 1, "one wait, and no second"
    commands = [heard for heard in server.heard if b"CLIENT" not in heard and b"PING" not in heard]
    assert len(commands) == 1, commands


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", StoreError),
        (b"\x00\x01\x02\r\n", StoreError),
        (b"-LOADING Redis is loading the dataset in memory\r\n", StoreUnavailable),
        (b"-NOAUTH Authentication required.\r\n", StoreUnavailable),
    ],
    ids=["http", "noise", "loading", "password wanted"],
)
def test_something_that_is_no_redis_now(
    impostor: Callable[..., Impostor], answer: bytes, error: type[StoreError]
) -> None:
    store = Store.open(f"redis://127.0.0.1:{impostor(answer).port}", timeout=0.5, client_name="test")
    for verb in ("ping", "jobs.recent"):
        with pytest.raises(error, match=r"redis at redis://127"):
            VERBS[verb](store)


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("LOADING Redis is loading the dataset in memory", StoreUnavailable),
        ("READONLY You can't write against a read only replica.", StoreUnavailable),
        ("OOM command not allowed when used memory > 'maxmemory'.", StoreUnavailable),
        ("MISCONF Redis is configured to save RDB snapshots", StoreUnavailable),
        ("MASTERDOWN Link with MASTER is down", StoreUnavailable),
        ("NOREPLICAS Not enough good replicas to write.", StoreUnavailable),
        (
            "ERR Error running script (call to f_0): @user_script:1: @user_script: 1: -OOM command not allowed",
            StoreUnavailable,
        ),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", StoreError),
        ("ERR unknown command", StoreError),
    ],
)
def test_refusals_of_redis(said: str, error: type[StoreError]) -> None:
    client = Client("redis://h", timeout=1, client_name="x")
    with pytest.raises(error, match=re.escape(said.split(" ", 1)[1])) as caught, client.calling():
        # As the connection makes it of Redis' answer: it cuts the words that it knows off.
        raise BaseParser.parse_error(said)
    assert type(caught.value) is error


@pytest.mark.redis
# Nodes of a Redis Cluster are no replicas of others by this command, and a client is sent on.
@pytest.mark.parametrize("redis_url", ["one"], indirect=True)
@pytest.mark.parametrize(
    ("begin", "end", "said"),
    [
        (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0"), "OOM"),
        (
            ("CONFIG", "SET", "min-replicas-to-write", "1"),
            ("CONFIG", "SET", "min-replicas-to-write", "0"),
            "NOREPLICAS",
        ),
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"), "READONLY"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_redis_that_answers_and_takes_no_writes_is_told(
    store: Store, raw: redis.Redis, begin: tuple[str, ...], end: tuple[str, ...], said: str
) -> None:
    assert store.unready() is None
    assert raw.dbsize() == 0, "to ask writes nothing"
    raw.execute_command(*begin)
    try:
        assert store.trouble() is None
        assert f"cannot serve now: {said}" in str(store.unready())
    finally:
        raw.execute_command(*end)
    assert store.unready() is None


@pytest.mark.redis
def test_who_may_not_ask_so_is_not_told(store: Store, raw: redis.Redis) -> None:
    """A key of another kind, or a user of Redis' who may not, is no Redis that takes no writes."""
    raw.rpush("salt:schema", "x")
    assert store.unready() is None
    raw.execute_command("ACL", "SETUSER", "default", "-setrange")
    try:
        assert store.unready() is None
    finally:
        raw.execute_command("ACL", "SETUSER", "default", "+setrange")


@pytest.mark.redis
def test_a_full_redis_is_one_that_cannot_serve_now(store: Store, raw: redis.Redis) -> None:
    """Commands and scripts alike; what is read is still answered."""
    store.presence.seen("a", 1)
    raw.config_set("maxmemory", 1)
    try:
        for verb in ("presence.seen", "epochs.rotate_aes", "jobs.publish"):
            with pytest.raises(StoreUnavailable, match=r"cannot serve now: .*OOM"):
                VERBS[verb](store)
        assert store.presence.last_seen(["a"]) == {"a": 1}
    finally:
        raw.config_set("maxmemory", 0)
    store.presence.seen("a", 2)


@pytest.mark.parametrize("url", ["", "nonsense", "http://host", "redis://host:port/0", "redis:/host", "host:6379"])
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(StoreError, match="redis_url"):
        Store.open(url, client_name="x")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://host:1/0", "redis://host:1/0"),
        ("redis://:secret@host:1/0", "redis://:***@host:1/0"),
        ("redis://user:secret@host:1/0", "redis://user:***@host:1/0"),
        ("rediss://user:sec:ret@host:1/0", "rediss://user:***@host:1/0"),
        ("redis://user:sec@ret@host:1/0", "redis://user:***@host:1/0"),
        ("unix:///run/redis.sock?db=1&password=secret", "unix:///run/redis.sock?db=1&password=***"),
        ("unix:///run/redis.sock?password=secret&db=1", "unix:///run/redis.sock?password=***&db=1"),
    ],
)
def test_passwords_are_never_shown(url: str, shown: str) -> None:
    assert Client(url, timeout=1, client_name="x").shown == shown


def test_opening_does_not_connect() -> None:
    Store.open("redis://127.0.0.1:1", client_name="x")


@pytest.mark.redis
def test_a_store_that_was_opened_before_redis_was_there_works_then(redis_url: str, raw: redis.Redis) -> None:
    store = Store.open(redis_url, timeout=5, client_name="role-1")
    store.ping()
    assert "role-1" in [row["name"] for row in raw.client_list()]


@pytest.mark.redis
def test_connections_that_redis_closed_are_made_again(store: Store, raw: redis.Redis) -> None:
    store.presence.seen("a", 1)
    raw.client_kill_filter(skipme=True, _type="normal")
    store.presence.seen("a", 2)
    assert store.presence.last_seen(["a"]) == {"a": 2}


@pytest.mark.redis
def test_scripts_that_redis_forgot_are_sent_again(store: Store, raw: redis.Redis) -> None:
    assert store.epochs.rotate_aes() == 2
    raw.script_flush()
    assert store.epochs.rotate_aes() == 3


@pytest.mark.redis
def test_a_forked_process_has_connections_of_its_own(store: Store) -> None:
    store.presence.seen("parent", 1)
    child = os.fork()
    if child == 0:
        try:
            for number in range(50):
                store.presence.seen(f"child{number}", number)
                assert store.presence.last_seen([f"child{number}"]) == {f"child{number}": number}
            os._exit(0)
        finally:
            os._exit(1)
    for number in range(50):
        store.presence.seen(f"parent{number}", number)
        assert store.presence.last_seen([f"parent{number}"]) == {f"parent{number}": number}
    assert os.waitpid(child, 0)[1] == 0
    assert len(store.presence.present(0)) == 101


#: key -> (how a foreign hand spoils it, the verbs that read it).
SPOILED: dict[str, tuple[Callable[[redis.Redis], Any], tuple[str, ...]]] = {
    "load": (lambda r: r.set(f"load:{JID}", b"\xff{"), ("jobs.load", "jobs.job", "jobs.missing")),
    "load no map": (lambda r: r.set(f"load:{JID}", b"5"), ("jobs.load", "jobs.job")),
    "ret": (lambda r: r.hset(f"ret:{JID}", "a", b"\xff"), ("jobs.returns", "jobs.returns of some", "jobs.job")),
    "ret no map": (lambda r: r.hset(f"ret:{JID}", "a", b"[]"), ("jobs.returns", "jobs.returns of some", "jobs.job")),
    "recent load": (
        lambda r: (r.zadd("salt:jobs", {JID: 1}), r.set(f"load:{JID}", b"x")),
        ("jobs.recent", "jobs.active"),
    ),
    "counters": (
        lambda r: (
            r.zadd("salt:jobs", {JID: 1}),
            r.set(f"load:{JID}", "{}"),
            r.hset(f"salt:job:{JID}", "expected", "x"),
        ),
        ("jobs.active",),
    ),
    "entry": (
        lambda r: r.xadd("salt:publications", {"load": b"\xff"}, id="1-1"),
        ("publications.range_since",),
    ),
    "entry no map": (
        lambda r: r.xadd("salt:publications", {"load": b"[]"}, id="1-1"),
        ("publications.range_since",),
    ),
    "entry without load": (
        lambda r: r.xadd("salt:publications", {"other": b"{}"}, id="1-1"),
        ("publications.range_since",),
    ),
    "grains": (lambda r: r.hset("salt:grains", "a", b"\xc1"), ("cache.grains",)),
    "grains no map": (lambda r: r.hset("salt:grains", "a", b"\x05"), ("cache.grains",)),
    "grains of odd keys": (lambda r: r.hset("salt:grains", "a", b"\x81\x91\x01\x01"), ("cache.grains",)),
    "mine": (lambda r: r.hset("salt:mine:f", "a", b"\xc1"), ("cache.mine_get",)),
    "epochs": (
        lambda r: r.hset("salt:epochs", mapping={"aes": "x", "session": "y"}),
        ("epochs.current", "sign_ins.begin"),
    ),
    "number of events": (lambda r: r.set("salt:events:count", "x"), ("events.count",)),
    "state of a group": (lambda r: r.hset("salt:events:group:g", "version", "x"), ("event_groups.state",)),
    "backlog of a group": (
        lambda r: r.hset("salt:events:group:g", mapping={"last": "x", "missed": ""}),
        ("event_groups.backlog",),
    ),
    "dead events": (
        lambda r: r.xadd("salt:events:dead:g", {"event": b"x", "tries": "often"}),
        ("event_groups.dead",),
    ),
    "fences": (lambda r: r.hset("salt:fences", "l", "x"), ("locks.newest",)),
    "seen": (lambda r: r.zadd("salt:seen", {"a": float("inf")}), ("presence.last_seen",)),
}


@pytest.mark.redis
@pytest.mark.parametrize(("spoil", "verbs"), SPOILED.values(), ids=SPOILED.keys())
def test_what_another_hand_wrote(
    store: Store, raw: redis.Redis, spoil: Callable[[redis.Redis], Any], verbs: tuple[str, ...]
) -> None:
    spoil(raw)
    for verb in verbs:
        before = store.faults.total
        try:
            VERBS[verb](store)
        except StoreCorrupt as error:
            caught = error
        else:
            assert verb in STEPS_OVER
            assert store.faults.total > before
            continue
        assert "in Redis cannot be read" in str(caught)
        assert caught.key.split("[")[0] in {name.decode() for name in raw.scan_iter("*")}


ZSETS = {"salt:left", "salt:jobs", "salt:seen", "salt:runners", "salt:idx:minion:a", "salt:jobs:wide", "salt:waiting",
         "salt:waiting:a",
         "salt:jobs:due", "salt:events:readers:g", "salt:stock:sign-ins", keys.tokens_of("file", "ada")}  # fmt: skip

#: Verbs that go on without what they cannot read.
STEPS_OVER = {"jobs.may_store_own",
    "jobs.sign", "jobs.move", "jobs.missed", "jobs.waiting", "jobs.resend", "jobs.settle", "jobs.returns", "jobs.returns of some",
    "jobs.job", "jobs.missing", "jobs.recent", "jobs.described", "jobs.active", "job_budget.bytes", "job_budget.forget",
    "job_budget.evict", "job_budget.drop", "found_jobs.page", "jobs.not_again", "sign_ins.of_stock",
}  # fmt: skip


#: Verbs to which it does not matter what a key holds.
OF_ANY_TYPE = ("ping", "cache.drop_pillar", "schema.say", "tokens.failures", "overview.redis", "overview.clients")


#: Every key of another type than ours.
@pytest.mark.redis
@pytest.mark.parametrize("verb", [name for name in VERBS if name not in OF_ANY_TYPE])
def test_keys_of_another_type_give_the_stores_error_or_none(store: Store, raw: redis.Redis, verb: str) -> None:
    for name in (f"load:{JID}", f"ret:{JID}", f"salt:job:{JID}", f"salt:job:{JID}:minions", f"salt:job:{JID}:life", "salt:jobs",
                 "salt:idx:minion:a", "salt:jobs:wide", "salt:waiting", "salt:waiting:a", "salt:signers", "salt:schema",
                 "salt:jobs:due", "salt:jobs:bytes",
                  "a:test.ping",
                 "minions", "salt:request:r", "salt:publications", "salt:publisher:cursors", "salt:publisher:signs",
                 "salt:stock:sign-ins",
                 "salt:keys:accepted", "salt:keys:acceptances", "salt:clocks", f"salt:nonce:a:{'0' * 32}",
                 "salt:keys:denied", "salt:keys:version", "salt:grains", "salt:pillar", "salt:mine", "salt:mine:f", "salt:seen",
                 "salt:left",
                 "salt:events", "salt:events:count", "salt:events:wanted", "salt:events:group:g", "salt:events:readers:g",
                 "salt:events:dead:g", "salt:epochs", "salt:lock:l", "salt:fences", "salt:runners",
                 "salt:pillar_cache:a", f"salt:orders:{JID}", f"salt:own:a:{JID}", "salt:bank:b", "salt:banks",
                 "salt:spent:a", keys.AUDIT, keys.AUDIT_SEALS, keys.AUDIT_END, keys.KEY_CODES, keys.MASTER_KEYS, keys.REQSERVERS,
                 keys.token(digest_of("text")), keys.tokens_of("file", "ada"), keys.login_failures("ada")):  # fmt: skip
        raw.geoadd(name, (1, 1, "x")) if name not in ZSETS else raw.rpush(name, "x")
    try:
        VERBS[verb](store)
    except StoreError:
        return
    # What is done beside the one thing that a verb is for is left out, and said.
    assert verb in STEPS_OVER
    assert store.faults.total >= 1
    if verb != "job_budget.drop":
        assert set(store.faults.known) <= {name.decode() for name in raw.scan_iter("*")}


@pytest.mark.redis
def test_names_that_are_no_utf8_go_there_and_back(store: Store, raw: redis.Redis) -> None:
    raw.hset("salt:keys:accepted", b"odd\xff", "PEM")
    odd = store.minion_keys.ids("accepted")[0]
    assert store.minion_keys.state_of(odd) == ("accepted", "PEM")
    assert store.cache.grains_of([odd]) == {}
    store.minion_keys.delete(odd)
    assert store.minion_keys.ids("accepted") == []


def test_trouble_is_a_sentence_or_nothing(store: Store) -> None:
    assert store.trouble() is None
    away = Store.open("redis://127.0.0.1:1/0", timeout=0.2, client_name="test")
    assert "127.0.0.1:1" in str(away.trouble())
