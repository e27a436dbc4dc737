"""What is acknowledged is as durable as asked for, or is not acknowledged."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
import redis

from masterstore.durability import Durability
from masterstore.errors import StoreError, StoreUnavailable
from masterstore.store import Store
from tests.conftest import NEWER_REDIS, newer_redis_program
from tests.faults.redis_cluster import RedisCluster
from tests.faults.redis_pair import RedisPair

pytestmark = pytest.mark.redis

JID = "20260101000000000000"
LOAD = {"jid": JID, "fun": "test.ping", "tgt": "*", "arg": [], "user": "root"}
RETURN = {"jid": JID, "id": "a", "fun": "test.ping", "return": True, "retcode": 0}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisPair]:
    made = RedisPair(tmp_path_factory.mktemp("pair"))
    yield made
    made.close()


@pytest.mark.parametrize(
    ("durability", "command"),
    [
        (Durability(), ()),
        (Durability(replicas=2, patience=500), ("WAIT", 2, 500)),
        (Durability(disk=True), ("WAITAOF", 1, 0, 1000)),
        (Durability(replicas=1, disk=True), ("WAITAOF", 1, 1, 1000)),
    ],
)
def test_what_redis_is_asked(durability: Durability, command: tuple[str | int, ...]) -> None:
    assert durability.command == command


def test_a_job_is_acknowledged_once_a_replica_has_it(pair: RedisPair) -> None:
    master = pair.master()
    store = Store.open(pair.url, client_name="test", durability=Durability(replicas=1, patience=300))
    assert store.trouble() is None
    done = store.jobs.publish(LOAD, ["a"], request_id="r", ttl=60, now_ms=1)
    (replica,) = (port for port in pair.nodes if port != master)
    assert pair.client(replica).exists(f"load:{JID}") == 1
    # Nobody has it but the master: it is recorded there, and not acknowledged.
    pair.kill(replica, signal.SIGSTOP)
    try:
        with pytest.raises(StoreUnavailable, match=r"does not confirm a write: on 0 of 1 replicas after 300 ms"):
            store.jobs.record_return(RETURN, ttl=60)
    finally:
        pair.kill(replica, signal.SIGCONT)
    # Who asks again is told once the replica has it, and the return is stored once.
    again = store.jobs.record_return(RETURN, ttl=60)
    assert not again.first
    assert pair.client(replica).hexists(f"ret:{JID}", "a")
    repeated = store.jobs.publish(LOAD, ["a"], request_id="r", ttl=60, now_ms=1)
    assert (repeated.jid, repeated.created) == (done.jid, False)


def test_scripts_that_redis_forgot_are_sent_again(pair: RedisPair) -> None:
    store = Store.open(pair.url, client_name="test", durability=Durability(replicas=1))
    store.jobs.record_return({**RETURN, "id": "b"}, ttl=60)
    pair.client(pair.master()).script_flush()
    assert store.jobs.record_return({**RETURN, "id": "c"}, ttl=60).first


def test_a_redis_that_cannot_wait_for_its_disk_is_named(redis_url: str, raw: redis.Redis) -> None:
    version = raw.info("server")["redis_version"]
    store = Store.open(redis_url, client_name="test", durability=Durability(disk=True))
    if tuple(int(part) for part in version.split(".")[:2]) < (7, 2):
        said = (
            r"redis_wait_aof: redis at .* cannot wait for its disk: .*WAITAOF came with Redis 7.2; .*appendfsync always"
        )
        assert f"it is {version}" in str(store.trouble())
    else:
        said = "appendonly"
        assert "keeps no append-only file" in str(store.trouble())
    with pytest.raises(StoreError, match=said):
        store.jobs.record_return(RETURN, ttl=60)


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisPair]:
    """A Redis with its replica that know WAITAOF, and sync their files once a second."""
    program = newer_redis_program()
    if program is None:
        pytest.skip(f"no server here knows WAITAOF: Redis from 7.2 on, or Valkey; {NEWER_REDIS} may name one")
    made = RedisPair(tmp_path_factory.mktemp("newer"), program=program)
    yield made
    made.close()


def test_what_is_on_the_disk_is_acknowledged(newer: RedisPair) -> None:
    for replicas in (0, 1):
        durability = Durability(replicas=replicas, disk=True, patience=30_000)
        store = Store.open(newer.url, timeout=60, client_name="test", durability=durability)
        assert store.trouble() is None
        publish = {**LOAD, "jid": f"2026010100000000000{replicas}"}
        assert store.jobs.publish(publish, ["a"], request_id=f"r{replicas}", ttl=60, now_ms=1).created
        assert store.jobs.record_return({**RETURN, "jid": publish["jid"]}, ttl=60).complete


def test_what_is_not_on_the_disk_is_not_acknowledged(newer: RedisPair) -> None:
    server = newer.client(newer.master())
    server.config_set("appendfsync", "no")
    store = Store.open(newer.url, client_name="test", durability=Durability(disk=True, patience=300))
    try:
        assert "never syncs its append-only file (appendfsync no)" in str(store.trouble())
        with pytest.raises(StoreUnavailable, match="does not confirm a write: on the master's disk after 300 ms"):
            store.jobs.record_return({**RETURN, "id": "late"}, ttl=60)
    finally:
        server.config_set("appendfsync", "always")
    # It comes again, and is stored once.
    again = Store.open(newer.url, timeout=60, client_name="test", durability=Durability(disk=True, patience=30_000))
    assert not again.jobs.record_return({**RETURN, "id": "late"}, ttl=60).first
    server.config_set("appendfsync", "everysec")


def test_a_redis_without_a_file_to_sync_is_named(newer: RedisPair) -> None:
    server = newer.client(newer.master())
    server.config_set("appendonly", "no")
    try:
        store = Store.open(newer.url, client_name="test", durability=Durability(disk=True))
        assert "keeps no append-only file" in str(store.trouble())
    finally:
        server.config_set("appendonly", "yes")


def test_a_redis_cluster_that_the_url_does_not_name_is_refused(cluster: RedisCluster) -> None:
    """A role that is not ready says why, instead of failing at the first job with CROSSSLOT."""
    store = Store.open(f"redis://127.0.0.1:{cluster.serving()}/0", client_name="test")
    for why in (store.trouble(), store.unready()):
        assert why is not None
        assert "is part of a Redis Cluster: name some of its nodes" in why
        assert "redis+cluster://HOST:PORT" in why
    with pytest.raises(StoreError, match=r"CROSSSLOT|Lua script attempted to access|slot"):
        store.jobs.publish(LOAD, ["a"], request_id="r", ttl=60, now_ms=1)
