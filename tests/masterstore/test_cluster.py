"""A Redis Cluster of real processes: nodes die, slots move, and the store goes on by itself."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from masterstore import keys
from masterstore.address import cluster_of
from masterstore.check import Check
from masterstore.client import Client
from masterstore.cluster import SlotRange, slot_ranges
from masterstore.cluster_keys import SHARED, cluster_name, slot_of
from masterstore.durability import Durability
from masterstore.errors import StoreError, StoreUnavailable
from masterstore.jobs import UnaskedLimits
from masterstore.store import Store
from saltern.kit.keys.certificates import Authority
from tests.faults.redis_cluster import RedisCluster
from tests.faults.redis_pair import PATIENCE, Guard
from tests.ports import free_port
from tests.tls_redis import need_tls_redis

#: Milliseconds of the first job.
NOW = 1_767_225_600_000


def jid_of(number: int) -> str:
    return f"2026010100000{number:07}"


def load_of(number: int) -> dict[str, object]:
    return {"jid": jid_of(number), "fun": "test.ping", "tgt": "*", "arg": [], "user": "root"}


def return_of(number: int, size: int = 1) -> dict[str, object]:
    return {"jid": jid_of(number), "id": "a", "fun": "test.ping", "return": "y" * size, "retcode": 0}


def again(ask: Callable[[], object]) -> object:
    """The answer once there is one; each refusal is of the kind that may be tried again."""
    deadline = time.monotonic() + PATIENCE
    pause = threading.Event()
    while True:
        try:
            return ask()
        except StoreUnavailable:
            if time.monotonic() > deadline:
                raise
            pause.wait(0.05)


# ------------------------------------------------------------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    ("url", "hosts", "options"),
    [
        ("redis+cluster://one", (("one", 6379),), {}),
        ("redis+cluster://one:7000,two,[::1]:7001/0", (("one", 7000), ("two", 6379), ("::1", 7001)), {}),
        ("redis+cluster://u:p%40@one/", (("one", 6379),), {"username": "u", "password": "p@"}),
        ("rediss+cluster://one?ssl_ca_certs=/ca", (("one", 6379),), {"ssl": True, "ssl_ca_certs": "/ca"}),
    ],
)
def test_the_url_of_a_cluster(url: str, hosts: tuple[tuple[str, int], ...], options: dict[str, object]) -> None:
    found = cluster_of(url)
    assert found is not None
    assert found.hosts == hosts
    assert options.items() <= found.redis.items()


@pytest.mark.parametrize("url", ["redis://one", "redis+sentinel://one/saltern", "unix:///run/redis.sock"])
def test_other_urls_are_none(url: str) -> None:
    assert cluster_of(url) is None


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis+cluster://one/1", "has the database 0 alone, not '1'"),
        ("redis+cluster://one?db=3", "has the database 0 alone, not 3"),
        ("redis+cluster://", "'' is no host of a node of a Redis Cluster"),
        ("redis+cluster://one:x", "'one:x' is no host of a node of a Redis Cluster"),
        ("redis+cluster:/one", r"write redis\+cluster://HOST:PORT,HOST:PORT"),
    ],
)
def test_a_malformed_url_is_named(url: str, said: str) -> None:
    with pytest.raises(StoreError, match=said):
        Store.open(url, client_name="test")


def test_ranges_of_slots_as_nodes_tell_them() -> None:
    answer = [
        [0, 99, [b"10.0.0.1", 7000, b"id"], [b"10.0.0.2", 7001, b"id"]],
        [100, 100, [b"", 7002, b"id"]],
        [5, 6, [None, 7003]],
    ]
    assert slot_ranges(answer, ("asked", 1)) == (
        SlotRange(0, 99, ("10.0.0.1", 7000), (("10.0.0.2", 7001),)),
        SlotRange(100, 100, ("asked", 7002)),
        SlotRange(5, 6, ("asked", 7003)),
    )


def test_nodes_that_are_away_are_named() -> None:
    ports = free_port(), free_port()
    store = Store.open(f"redis+cluster://127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}", timeout=1, client_name="test")
    with pytest.raises(StoreUnavailable, match=rf"no node of the Redis Cluster answers .*:{ports[0]}: .*:{ports[1]}: "):
        store.ping()
    assert "no node of the Redis Cluster answers" in str(store.trouble())


@pytest.mark.redis
def test_one_redis_is_no_cluster(redis_server: str) -> None:
    store = Store.open(redis_server.replace("redis://", "redis+cluster://"), client_name="test")
    assert "is no node of a Redis Cluster: write redis:// in place of redis+cluster://" in str(store.trouble())


# -------------------------------------------------------------------------------------------------------------- where things are


@pytest.mark.redis
def test_large_returns_are_on_all_nodes(cluster: RedisCluster) -> None:
    store = Store.open(cluster.url, client_name="test")
    for number in range(30):
        store.jobs.publish(load_of(number), ["a"], request_id=f"r{number}", ttl=60, now_ms=NOW)
        assert store.jobs.record_return(return_of(number, 5000), ttl=60).complete
    for port in cluster.nodes:
        assert [name for name in cluster.client(port).keys("*") if name.startswith("salt:large:")]  # type: ignore[union-attr]
    assert [store.jobs.returns(jid_of(number))["a"]["return"] for number in range(30)] == ["y" * 5000] * 30
    # Of a value that is gone the note is left.
    store._client.redis.hdel(keys.large(jid_of(0)), "a")
    assert "compressed in salt:large:{" in str(store.jobs.returns(jid_of(0))["a"]["return"])
    # A small one is with its job.
    store.jobs.record_return({**return_of(0), "id": "b"}, ttl=60)
    assert not store._client.redis.hexists(keys.large(jid_of(0)), "b")
    checked = Client(cluster.url, timeout=5, client_name="check")
    assert {keys.large(jid_of(number)) for number in range(1, 30)} <= set(checked.names(None, 100))
    assert [finding.line for finding in Check(checked).findings(60)] == []
    assert store.job_budget.drop(jid_of(1)) > 0
    assert not store._client.redis.exists(keys.large(jid_of(1)))


@pytest.mark.redis
def test_a_large_return_that_is_refused_leaves_nothing(cluster: RedisCluster) -> None:
    store = Store.open(cluster.url, client_name="test")
    limits = UnaskedLimits(1, 0, 60)
    found = [store.jobs.record_return(return_of(number, 5000), ttl=600, unasked=limits) for number in (101, 102)]
    assert [one.refused for one in found] == [False, True]
    assert store._client.redis.ttl(keys.large(jid_of(101))) <= 60
    assert not store._client.redis.exists(keys.large(jid_of(102)))


@pytest.mark.redis
def test_a_large_return_is_kept_as_long_as_its_job(cluster: RedisCluster) -> None:
    store = Store.open(cluster.url, client_name="test")
    store.jobs.publish(load_of(110), ["a"], request_id="r110", ttl=60, now_ms=NOW, when_back_until_ms=NOW + 3_600_000)
    store.jobs.record_return(return_of(110, 5000), ttl=60)
    assert store._client.redis.ttl(keys.large(jid_of(110))) > 3000


@pytest.mark.redis
def test_a_second_return_does_not_replace_the_first(cluster: RedisCluster) -> None:
    store = Store.open(cluster.url, client_name="test")
    store.jobs.publish(load_of(120), ["a"], request_id="r120", ttl=60, now_ms=NOW)
    assert store.jobs.record_return(return_of(120, 5000), ttl=60).first
    other = store.jobs.record_return({**return_of(120), "return": "z" * 6000}, ttl=60)
    assert (other.first, other.differs) == (False, True)
    assert store.jobs.returns(jid_of(120))["a"]["return"] == "y" * 5000


# ------------------------------------------------------------------------------------------------------------------ what happens


@pytest.fixture(scope="module")
def doubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    """Three nodes, each with a replica."""
    made = RedisCluster(tmp_path_factory.mktemp("doubled"))
    yield made
    made.close()


@pytest.mark.redis
def test_a_failover_and_the_way_back(doubled: RedisCluster) -> None:
    store = Store.open(doubled.url, timeout=1.0, client_name="test")
    store.presence.seen("before", 1)
    for kill in (signal.SIGKILL, signal.SIGSTOP):
        before = doubled.serving()
        assert doubled.client(before).execute_command("WAIT", 1, 5000) == 1
        doubled.kill(before, kill)
        # Told soon, however the node went away.
        started = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"redis at redis\+cluster://.* does not answer"):
            store.presence.seen("during", 2)
        assert time.monotonic() - started < 30
        again(lambda: store.presence.seen("after", 3))
        doubled.await_failover(before)
        assert store.presence.last_seen(["before", "after"]) == {"before": 1, "after": 3}
        # The old node comes back as a replica.
        if kill == signal.SIGKILL:
            doubled.start(before)
        else:
            doubled.kill(before, signal.SIGCONT)
        doubled.await_whole()
        again(lambda: store.presence.seen("later", 4))
        assert doubled.client(doubled.serving()).zscore("{salt}:seen", "later") == 4
    # A new process may be given a node that has become a replica.
    assert Store.open(doubled.url, client_name="new").presence.last_seen(["later"]) == {"later": 4}


@pytest.mark.redis
def test_a_job_is_acknowledged_once_a_replica_has_it(doubled: RedisCluster) -> None:
    doubled.await_whole()
    store = Store.open(doubled.url, client_name="test", durability=Durability(replicas=1, patience=300))
    assert store.trouble() is None
    done = store.jobs.publish(load_of(200), ["a"], request_id="r200", ttl=60, now_ms=NOW)
    # The large return is stored first. Both may be on one node.
    for name in (cluster_name(keys.large(jid_of(200))), SHARED):
        replica = doubled.replica_of(doubled.serving(name))
        doubled.kill(replica, signal.SIGSTOP)
        try:
            with pytest.raises(StoreUnavailable, match=r"does not confirm a write: on 0 of 1 replicas after 300 ms"):
                store.jobs.record_return(return_of(200, 5000), ttl=60)
        finally:
            doubled.kill(replica, signal.SIGCONT)
        doubled.await_whole()
    # Who asks again is told once the replica has it, and the return is stored once.
    again(lambda: store.jobs.record_return(return_of(200, 5000), ttl=60))
    assert store.jobs.returns(jid_of(200))["a"]["return"] == "y" * 5000
    assert store.jobs.meta(jid_of(200))["returned"] == "1"
    repeated = store.jobs.publish(load_of(200), ["a"], request_id="r200", ttl=60, now_ms=NOW)
    assert (repeated.jid, repeated.created) == (done.jid, False)


@pytest.mark.redis
def test_slots_move_while_the_store_works(doubled: RedisCluster) -> None:
    """Everything that is sent to the node that had them is sent on: commands, scripts, pipelines, transactions, and WAIT."""
    doubled.await_whole()
    store = Store.open(doubled.url, client_name="test", durability=Durability(replicas=1, patience=5000))
    verbs: list[Callable[[int], object]] = [
        lambda number: store.presence.seen("m", number),
        lambda number: store.jobs.publish(load_of(number), ["a"], request_id=f"r{number}", ttl=60, now_ms=NOW),
        lambda number: store.overview.lengths(),
        lambda number: store.banks.store("bank", "key", number),
    ]
    masters = doubled.masters()
    for at, verb in enumerate(verbs):
        verb(300 + at)
        target = masters[(masters.index(doubled.serving()) + 1) % len(masters)]
        doubled.move_slot(slot_of(SHARED), target)
        verb(310 + at)
        assert doubled.serving() == target
    assert store.banks.fetch("bank", "key") == 313
    assert store.jobs.load(jid_of(301))
    assert store.jobs.load(jid_of(311))


@pytest.mark.redis
@pytest.mark.parametrize(
    "moved", [(), ("{salt}:seen", f"{{salt}}load:{jid_of(400)}", "{salt}:jobs")], ids=["none", "some"]
)
def test_nothing_is_half_done_while_a_slot_moves(doubled: RedisCluster, moved: tuple[str, ...]) -> None:
    """Scripts whose keys are at one node, at the other or nowhere yet are refused before they begin, and may be tried again."""
    doubled.await_whole()
    store = Store.open(doubled.url, timeout=5, client_name="test")
    number = 400 + len(moved)
    store.presence.seen("a", 1)
    store.jobs.publish(load_of(400), ["a"], request_id="r400", ttl=600, now_ms=NOW)
    store.jobs.publish(load_of(number), ["a"], request_id=f"r{number}", ttl=600, now_ms=NOW)
    refused: list[Callable[[], object]] = [
        lambda: store.jobs.record_return(return_of(number), ttl=600),
        # A function that makes no key of its own, and one that was never called.
        lambda: store.jobs.record_return({**return_of(number), "fun": "no function"}, ttl=600),
        lambda: store.jobs.record_return({**return_of(number), "fun": f"never.called{number}"}, ttl=600),
        lambda: store.jobs.publish(load_of(450), ["a"], request_id="r450", ttl=60, now_ms=NOW),
        lambda: store.jobs.sign("a", [(jid_of(number), "started", NOW)], NOW),
        lambda: store.jobs.missed("a", 0, NOW),
        lambda: store.cache.mine_set("a", {"never": number}),
        lambda: store.job_budget.drop(jid_of(number)),
        lambda: store.events.keep(b"event", 100),
    ]
    before = doubled.serving()
    masters = doubled.masters()
    target = masters[(masters.index(before) + 1) % len(masters)]
    with doubled.moving(slot_of(SHARED), target) as move:
        for name in moved:
            move(name)
        kept = {port: sorted(doubled.client(port).keys("{salt}*")) for port in (before, target)}  # type: ignore[type-var]
        for verb in refused:
            with pytest.raises(StoreUnavailable, match=r"cannot serve now: .*(TRYAGAIN|ASK)"):
                verb()
        # A command finds a key that has not moved.
        assert store.jobs.expected(jid_of(number)) == ["a"]
        if moved:
            with pytest.raises(StoreUnavailable, match=r"cannot serve now: .*ASK"):
                store.presence.last_seen(["a"])
        assert {port: sorted(doubled.client(port).keys("{salt}*")) for port in (before, target)} == kept  # type: ignore[type-var]
    assert doubled.serving() == target
    recorded = store.jobs.record_return(return_of(number), ttl=600)
    assert (recorded.first, recorded.known_job, recorded.complete) == (True, True, True)
    for verb in refused:
        verb()
    assert store.presence.last_seen(["a"])["a"] >= 1


@pytest.mark.redis
def test_a_node_that_hangs_stops_no_other(doubled: RedisCluster) -> None:
    """What is on other nodes is served at once, while one hangs and its replica is not promoted yet."""
    doubled.await_whole()
    store = Store.open(doubled.url, timeout=1, client_name="test")
    store.ping()
    number = next(n for n in range(600, 700) if doubled.serving(f"salt:large:{{{jid_of(n)}}}") != doubled.serving())
    node = doubled.serving(f"salt:large:{{{jid_of(number)}}}")
    doubled.kill(node, signal.SIGSTOP)
    try:
        with pytest.raises(StoreUnavailable, match="does not answer"):
            store.jobs.record_return(return_of(number, 5000), ttl=60)
        assert store.jobs.record_return(return_of(number), ttl=60).first
    finally:
        doubled.kill(node, signal.SIGCONT)
    doubled.await_whole()


@pytest.mark.redis
def test_a_node_that_hung_is_served_again(tmp_path: Path) -> None:
    """However often it is asked meanwhile. It has no replica, so nobody takes its place."""
    alone = RedisCluster(tmp_path, replicas=False)
    try:
        store = Store.open(alone.url, timeout=0.5, client_name="test")
        store.presence.seen("m", 1)
        node = alone.serving()
        alone.kill(node, signal.SIGSTOP)
        hanged = time.monotonic()

        def ask() -> None:
            store.presence.seen("m", 2)

        with pytest.raises(StoreUnavailable, match="does not answer"):
            ask()
        pause = threading.Event()
        while time.monotonic() < hanged + 1:
            with pytest.raises(StoreUnavailable):
                ask()
            pause.wait(0.05)
        alone.kill(node, signal.SIGCONT)
        again(ask)
    finally:
        alone.close()


@pytest.mark.redis
def test_a_cluster_without_all_slots_is_told(tmp_path: Path) -> None:
    alone = RedisCluster(tmp_path, replicas=False)
    try:
        store = Store.open(alone.url, timeout=1, client_name="test")
        store.ping()
        gone = next(port for port in alone.nodes if port != alone.serving())
        alone.kill(gone)

        def told() -> bool:
            try:
                store.presence.seen("m", 1)
            except StoreUnavailable as error:
                return "CLUSTERDOWN" in str(error)
            return False

        deadline = time.monotonic() + PATIENCE
        pause = threading.Event()
        while not told():
            assert time.monotonic() < deadline
            pause.wait(0.1)
        assert "CLUSTERDOWN" in str(store.unready())
    finally:
        alone.close()


@pytest.mark.redis
def test_a_failover_with_passwords_and_tls(tmp_path: Path) -> None:
    """The password holds what a URL must quote, and is read again from the file of the URL; a wrong one is told."""
    program = need_tls_redis()
    authority = Authority.make()
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    (tmp_path / "server.pem").write_bytes(authority.server(["127.0.0.1", "localhost"]))
    (tmp_path / "client.pem").write_bytes(authority.client())
    guard = Guard("r/w@:%-redis", "", tmp_path / "server.pem", tmp_path / "ca.pem", tmp_path / "client.pem")
    guarded = RedisCluster(tmp_path, program=program, guard=guard)
    url = guarded.url.replace("redis+cluster://", f"rediss+cluster://:{quote(guard.password, safe='')}@")
    (tmp_path / "url").write_text(f"{url}?ssl_ca_certs={guard.authority}")
    try:
        store = Store.open(f"file://{tmp_path}/url", timeout=5, client_name="test")
        store.presence.seen("before", 1)
        assert store.trouble() is None
        with pytest.raises(StoreError, match=r"WRONGPASS|invalid username-password") as refused:
            Store.open(f"{url.replace('-redis', '-wrong')}?ssl_ca_certs={guard.authority}", client_name="test").ping()
        assert "wrong" not in str(refused.value)
        with pytest.raises(StoreUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            Store.open(url, client_name="test").ping()
        before = guarded.serving()
        assert guarded.client(before).execute_command("WAIT", 1, 5000) == 1  # type: ignore[no-untyped-call]
        guarded.kill(before)
        again(lambda: store.presence.seen("after", 2))
        guarded.await_failover(before)
        assert store.presence.last_seen(["before", "after"]) == {"before": 1, "after": 2}
    finally:
        guarded.close()


@pytest.mark.redis
def test_a_planned_failover_while_a_publisher_waits(doubled: RedisCluster) -> None:
    """Redis ends the wait of a reader when its node becomes a replica; the reader goes on at the new one."""
    doubled.await_whole()
    store = Store.open(doubled.url, timeout=10, client_name="reader")
    writer = Store.open(doubled.url, timeout=10, client_name="writer")
    found: list[object] = []
    last = store.publications.last_id()

    def read() -> None:
        deadline = time.monotonic() + PATIENCE
        while not found and time.monotonic() < deadline:
            try:
                found.extend(store.publications.follow(last, 60_000))
            except StoreUnavailable as error:
                refused.append(str(error))

    refused: list[str] = []
    reader = threading.Thread(target=read)
    reader.start()
    before = doubled.serving()
    doubled.await_blocked(before)
    doubled.client(doubled.replica_of(before)).execute_command("CLUSTER FAILOVER")
    doubled.await_failover(before)
    again(lambda: writer.jobs.publish(load_of(500), ["a"], request_id="r500", ttl=60, now_ms=NOW))
    reader.join(PATIENCE)
    assert not reader.is_alive()
    assert len(found) == 1
    assert all("UNBLOCKED" in said or "does not answer" in said for said in refused), refused
