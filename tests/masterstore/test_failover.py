"""Redis behind real Sentinels: the master dies, and the store goes on by itself."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from masterstore.errors import StoreError, StoreUnavailable
from masterstore.store import Store
from saltern.kit.config.master import load_master
from saltern.kit.keys.certificates import Authority
from tests.faults.redis_pair import PATIENCE, SERVICE, Guard, RedisPair, until
from tests.ports import free_port
from tests.tls_redis import need_tls_redis

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisPair]:
    made = RedisPair(tmp_path_factory.mktemp("pair"))
    yield made
    made.close()


def again(ask: Callable[[], object], scheme: str = "redis+sentinel://") -> object:
    """The answer once there is one; each refusal is of the kind that may be tried again."""
    deadline = time.monotonic() + PATIENCE
    pause = threading.Event()
    while True:
        try:
            return ask()
        except StoreUnavailable as error:
            if time.monotonic() > deadline or f"redis at {scheme}" not in str(error):
                raise
            pause.wait(0.05)


def test_a_failover_and_the_way_back(pair: RedisPair) -> None:
    store = Store.open(pair.url, timeout=1.0, client_name="test")
    store.presence.seen("before", 1)
    assert pair.client(pair.nodes[0]).execute_command("WAIT", 1, 5000) == 1
    for kill in (signal.SIGKILL, signal.SIGSTOP):
        before = pair.master()
        pair.kill(before, kill)
        # Told soon, however Redis went away.
        started = time.monotonic()
        with pytest.raises(StoreUnavailable, match="does not answer"):
            store.presence.seen("during", 2)
        assert time.monotonic() - started < 30
        again(lambda: store.presence.seen("after", 3))
        assert pair.master() != before
        assert store.presence.last_seen(["before", "after"]) == {"before": 1, "after": 3}
        # The old master comes back, as a replica; what is written still goes to the new one.
        if kill == signal.SIGKILL:
            pair.start(before)
        else:
            pair.kill(before, signal.SIGCONT)
        pair.demote(before)
        again(lambda: store.presence.seen("later", 4))
        assert pair.client(pair.master()).zscore("salt:seen", "later") == 4


def test_a_redis_that_becomes_a_replica_ends_the_wait_of_a_reader(pair: RedisPair) -> None:
    """An outage for the reader, which goes on at the new master."""
    before = pair.master()
    (other,) = (port for port in pair.nodes if port != before)
    store = Store.open(f"redis://127.0.0.1:{other}/0", timeout=10, client_name="reader")
    ended: list[StoreError] = []

    def read() -> None:
        try:
            store.publications.follow("0-0", 60_000)
        except StoreError as error:
            ended.append(error)

    pair.client(other).execute_command("REPLICAOF", "NO", "ONE")  # type: ignore[no-untyped-call]
    reader = threading.Thread(target=read)
    reader.start()
    until(lambda: pair.client(other).info("clients")["blocked_clients"] > 0, "the reader waits")
    pair.client(other).execute_command("REPLICAOF", "127.0.0.1", before)  # type: ignore[no-untyped-call]
    reader.join(PATIENCE)
    assert ["cannot serve now: UNBLOCKED" in str(error) for error in ended] == [True], ended
    assert isinstance(ended[0], StoreUnavailable)
    until(lambda: pair.client(other).info("replication").get("master_link_status") == "up", "the replica follows")


def test_a_redis_that_was_made_a_replica_is_left(pair: RedisPair) -> None:
    """Scripts, too: Redis 6 wraps their refusal."""
    store = Store.open(f"redis://127.0.0.1:{pair.master()}/0", timeout=1.0, client_name="test")
    store.presence.seen("a", 1)
    replica = Store.open(
        f"redis://127.0.0.1:{next(port for port in pair.nodes if port != pair.master())}/0",
        timeout=1.0,
        client_name="test",
    )
    for verb in (lambda: replica.presence.seen("a", 2), replica.epochs.rotate_aes):
        with pytest.raises(StoreUnavailable, match=r"cannot serve now: .*READONLY"):
            verb()
        # The connection is not kept: the name may lead elsewhere by now.
        kept = replica._client.redis._kept
        assert kept is not None
        assert not kept[1]._sock


def test_sentinels_that_are_away_or_know_no_such_service(pair: RedisPair) -> None:
    nobody = free_port()
    gone = Store.open(f"redis+sentinel://127.0.0.1:{nobody}/saltern/0", timeout=1, client_name="test")
    with pytest.raises(StoreUnavailable, match=rf"no Sentinel names a master \(127.0.0.1:{nobody}: .*refused"):
        gone.ping()
    assert "no Sentinel names a master" in str(gone.trouble())
    other = Store.open(pair.url.replace("/saltern/", "/other/"), timeout=1, client_name="test")
    with pytest.raises(StoreUnavailable, match=rf"127.0.0.1:{pair.sentinels[1]}: there is no 'other'"):
        other.ping()
    # One Sentinel that is there is enough to find it.
    first = pair.url.replace("://", f"://127.0.0.1:{nobody},127.0.0.1:{free_port()},")
    Store.open(first, timeout=1, client_name="test").ping()


def test_what_comes_too_late_is_no_answer_to_the_next_command(pair: RedisPair) -> None:
    """A connection whose answer was not waited for is closed: what is read from it would belong to another command."""
    store = Store.open(pair.url, timeout=0.3, client_name="test")
    store.presence.seen("late", 1)
    pair.kill(pair.master(), signal.SIGSTOP)
    try:
        with pytest.raises(StoreUnavailable, match="Timeout"):
            store.presence.last_seen(["late"])
    finally:
        pair.kill(pair.master(), signal.SIGCONT)
    assert again(lambda: store.presence.last_seen(["nobody"])) == {}


def test_a_failover_with_passwords_and_tls(tmp_path: Path) -> None:
    """By the options of the configuration, whose passwords hold what a URL must quote; wrong ones are told."""
    program = need_tls_redis()
    authority = Authority.make()
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    (tmp_path / "server.pem").write_bytes(authority.server(["127.0.0.1", "localhost"]))
    guard = Guard("r/w@:%-redis", "s&=?-sentinel", tmp_path / "server.pem", tmp_path / "ca.pem")
    pair = RedisPair(tmp_path, program=program, guard=guard)

    def store(**more: object) -> Store:
        options = {
            "redis_sentinels": [f"127.0.0.1:{port}" for port in pair.sentinels],
            "redis_sentinel_master": SERVICE,
            "redis_sentinel_password": guard.sentinel_password,
            "redis_password": guard.password,
            "redis_tls": True,
            "redis_tls_ca": str(guard.authority),
            **more,
        }
        (tmp_path / "master").write_text(yaml.safe_dump(options))
        return Store.open(load_master(str(tmp_path), env={}).redis_url, timeout=5.0, client_name="test")

    try:
        made = store()
        made.presence.seen("before", 1)
        assert pair.client(pair.master()).execute_command("WAIT", 1, 5000) == 1
        for wrong, said in (
            ({"redis_password": "wrong"}, "WRONGPASS|invalid username-password"),
            ({"redis_sentinel_password": "wrong"}, "no Sentinel names a master"),
            ({"redis_tls_ca": ""}, "CERTIFICATE_VERIFY_FAILED"),
            ({"redis_tls": False, "redis_tls_ca": ""}, "no Sentinel names a master"),
        ):
            with pytest.raises(StoreError, match=said) as refused:
                store(**wrong).ping()
            for secret in (guard.password, guard.sentinel_password):
                assert secret not in str(refused.value)
        before = pair.master()
        pair.kill(before)
        again(lambda: made.presence.seen("after", 2), "rediss+sentinel://")
        assert pair.master() != before
        assert made.presence.last_seen(["before", "after"]) == {"before": 1, "after": 2}
    finally:
        pair.close()
