"""From the stream in Redis to a subscriber on 4505: order, restarts, replay, filtering, key changes. Real sockets, real Redis."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis
import zmq

from masterstore.store import Store
from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.keys.master_keys import KeptMasterKeys
from saltern.kit.process.service import Role
from saltern.publisher import main as publisher_module
from saltern.publisher.main import Publisher
from saltwire.crypticle import Crypticle, SerialGate
from saltwire.keys import derive_key_string
from saltwire.pack import unpackb
from saltwire.publication import open_job, seal_job_by_each, serial_of_stream_id, topic

pytestmark = pytest.mark.redis


@pytest.fixture(autouse=True)
def _short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher_module, "_BLOCK", 20)


@dataclass
class Fleet:
    """A stream that jobs are put into, publishers that come and go, and minions that listen."""

    store: Store
    options: MasterOptions
    context: Any
    kept: KeptMasterKeys
    new_role: Callable[[str, MasterOptions], Role]
    eventually: Callable[[Callable[[], Any]], Any]
    jobs: int = 0
    publishers: list[Publisher] = field(default_factory=list)
    role: Role | None = None

    def publish(self, fun: str = "test.ping", *, tgt: Any = "*", tgt_type: str = "glob", **more: Any) -> str:
        """The stream id of a new job."""
        self.jobs += 1
        until = more.pop("replay_until_ms", 0)
        load = {"jid": f"20260101{self.jobs:012d}", "fun": fun, "arg": [], "tgt": tgt, "tgt_type": tgt_type, **more}
        published = self.store.jobs.publish(
            load,
            ["web1", "web2"],
            request_id=str(self.jobs),
            ttl=600,
            now_ms=int(time.time() * 1000),
            replay_until_ms=until,
        )
        return published.stream_id

    def publisher(self) -> Publisher:
        self.role = self.new_role("publisher", self.options)
        made = Publisher(self.role, self.context, self.store, self.kept)
        self.publishers.append(made)
        return made

    def end(self, publisher: Publisher) -> None:
        """Close a publisher and wait until its port is free: libzmq closes sockets in a thread of its own."""
        publisher.close()

        def is_free() -> bool:
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("127.0.0.1", self.options.publish_port))
                except OSError:
                    return False
            return True

        self.eventually(is_free)

    def minion(self, publisher: Publisher, subscription: bytes = b"") -> zmq.Socket[bytes]:
        """A subscriber that is heard."""
        assert self.role is not None
        before = self.subscribers()
        socket: zmq.Socket[bytes] = self.context.socket(zmq.SUB)
        socket.setsockopt(zmq.SUBSCRIBE, subscription)
        socket.connect(f"tcp://127.0.0.1:{self.options.publish_port}")
        self.eventually(lambda: publisher.poll() or self.subscribers() > before)
        return socket

    def await_clock(self) -> None:
        """Until Redis' clock shows another millisecond."""
        with redis.Redis.from_url(self.options.redis_url) as client:
            began = client.time()
            while client.time()[0] == began[0] and client.time()[1] // 1000 == began[1] // 1000:
                pass

    def subscribers(self) -> float:
        assert self.role is not None
        return self.role.metrics.registry.value("salt_subscribers") or 0.0

    def heard(self, publisher: Publisher, socket: zmq.Socket[bytes], number: int) -> list[list[bytes]]:
        """The next messages, while the publisher turns."""
        messages: list[list[bytes]] = []

        def hear() -> bool:
            publisher.poll()
            while socket.poll(0):
                messages.append(socket.recv_multipart())
            return len(messages) >= number

        self.eventually(hear)
        return messages

    def opened(self, payload: bytes, epoch: int | None = None) -> dict[str, Any] | None:
        public = self.kept.current.private.public
        return open_job(payload, self.aes(epoch), gate=SerialGate(), master_pub=public, verify=True)

    def serial(self, payload: bytes) -> int:
        number: int = self.aes().loads(unpackb(payload, raw=True)["load"])["serial"]
        return number

    def aes(self, epoch: int | None = None) -> Crypticle:
        number = self.store.epochs.current().aes if epoch is None else epoch
        return Crypticle(derive_key_string(self.kept.current.secret, purpose="aes", epoch=number))

    def funs(self, messages: list[list[bytes]]) -> list[str]:
        return [(self.opened(frames[-1]) or {})["fun"] for frames in messages]


@pytest.fixture
def fleet(
    redis_url: str,
    new_options: Callable[..., MasterOptions],
    context: Any,
    role_keys: Path,
    new_role: Callable[[str, MasterOptions], Role],
    eventually: Callable[[Callable[[], Any]], Any],
) -> Iterator[Fleet]:
    store = Store.open(redis_url, client_name="test")
    made = Fleet(
        store, new_options(redis_url=redis_url), context, KeptMasterKeys(role_keys / "publisher"), new_role, eventually
    )
    yield made
    for publisher in made.publishers:
        publisher.close()


def test_a_job_is_sealed_signed_and_stripped_of_what_is_the_masters(fleet: Fleet) -> None:
    publisher = fleet.publisher()
    minion = fleet.minion(publisher)
    stream_id = fleet.publish(user="root", ret="", request_id="r", key="secret", kwargs={"a": 1})
    ((payload,),) = fleet.heard(publisher, minion, 1)
    job = fleet.opened(payload)
    assert job is not None
    assert fleet.serial(payload) == serial_of_stream_id(stream_id)
    assert job == {
        "jid": "20260101000000000001",
        "fun": "test.ping",
        "arg": [],
        "tgt": "*",
        "tgt_type": "glob",
        "user": "root",
        "ret": "",
        "replay_until": 0,
    }


def test_jobs_come_once_and_in_order(fleet: Fleet) -> None:
    publisher = fleet.publisher()
    minion = fleet.minion(publisher)
    for number in range(250):
        fleet.publish(str(number))
    assert fleet.funs(fleet.heard(publisher, minion, 250)) == [str(number) for number in range(250)]
    publisher.poll()
    assert not minion.poll(20)


def test_an_entry_that_cannot_be_read_is_passed_over_and_told(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, redis_url: str
) -> None:
    publisher = fleet.publisher()
    minion = fleet.minion(publisher)
    fleet.publish("before")
    with redis.Redis.from_url(redis_url) as client:
        client.xadd("salt:publications", {"load": b"\xff no JSON"})
        client.xadd("salt:publications", {"other": b"x"})
    fleet.publish("after")
    assert fleet.funs(fleet.heard(publisher, minion, 2)) == ["before", "after"]
    assert len([record for record in caplog.records if "not published" in record.message]) == 2


@pytest.mark.parametrize(
    "load",
    [
        {"jid": 5},
        {"jid": "../x", "fun": "f", "arg": [], "tgt": "*"},
        {"jid": "20260101000000000000", "fun": None, "arg": [], "tgt": "*"},
        {"jid": "20260101000000000000", "fun": "f", "arg": [], "tgt": "*", "expected": 5},
        {"jid": "20260101000000000000", "fun": "f", "arg": [], "tgt": "*", "expected": [None]},
    ],
    ids=str,
)
def test_an_entry_that_is_no_job_is_passed_over_and_told(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, redis_url: str, load: dict[str, Any]
) -> None:
    publisher = fleet.publisher()
    minion = fleet.minion(publisher)
    with redis.Redis.from_url(redis_url) as client:
        client.xadd("salt:publications", {"load": json.dumps(load)})
    fleet.publish("after")
    assert fleet.funs(fleet.heard(publisher, minion, 1)) == ["after"]
    assert len([record for record in caplog.records if "not published" in record.message]) == 1


@pytest.mark.parametrize("key", ["salt:epochs", "salt:publications", "salt:publisher:cursors", "salt:publisher:signs"])
def test_a_key_that_another_hand_made_is_waited_for(
    fleet: Fleet, caplog: pytest.LogCaptureFixture, redis_url: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher_module, "_ALIVE_SECONDS", 0)
    publisher = fleet.publisher()
    minion = fleet.minion(publisher)
    fleet.publish("held")
    with redis.Redis.from_url(redis_url) as client:
        kept = client.dump(key)
        client.set(key, "another's")
        for _ in range(3):
            publisher.poll()
        assert caplog.text.count("publications wait until") == 1
        assert "WRONGTYPE" in caplog.text
        assert fleet.role is not None
        assert ["publications" in why and "saltern store check" in why for why in fleet.role.health.unready()] == [True]
        client.delete(key)
        if kept:
            client.restore(key, 0, kept)
    fleet.publish("after")
    assert fleet.funs(fleet.heard(publisher, minion, 2)) == ["held", "after"]
    assert fleet.role.health.unready() == []


def test_two_publishers_agree_on_serials(fleet: Fleet, new_options: Callable[..., MasterOptions]) -> None:
    one = fleet.publisher()
    first = fleet.minion(one)
    fleet.options = new_options(redis_url=fleet.options.redis_url)
    other = fleet.publisher()
    second = fleet.minion(other)
    fleet.publish()
    serials = [fleet.serial(fleet.heard(*pair, 1)[0][0]) for pair in ((one, first), (other, second))]
    assert serials[0] == serials[1]


def test_a_restarted_publisher_goes_on_where_it_stopped(fleet: Fleet) -> None:
    publisher = fleet.publisher()
    minion = fleet.minion(publisher)
    fleet.publish("before")
    fleet.heard(publisher, minion, 1)
    fleet.end(publisher)
    fleet.publish("meanwhile")
    publisher = fleet.publisher()
    assert fleet.funs(fleet.heard(publisher, minion, 1)) == ["meanwhile"]


@pytest.mark.parametrize("sent", [True, False], ids=["after-a-job", "before-any-job"])
def test_a_replaced_publisher_goes_on_where_the_other_stopped(
    fleet: Fleet, sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = fleet.publisher()
    minion = fleet.minion(publisher)
    if sent:
        fleet.publish("before")
        fleet.heard(publisher, minion, 1)
    fleet.end(publisher)
    fleet.publish("meanwhile")
    monkeypatch.setattr(publisher_module.socket, "gethostname", lambda: "another-container")
    publisher = fleet.publisher()
    assert fleet.funs(fleet.heard(publisher, minion, 1)) == ["meanwhile"]


def test_replicas_that_are_gone_leave_nothing_behind(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    for number in range(5):
        monkeypatch.setattr(publisher_module.socket, "gethostname", lambda number=number: f"replica-{number}")
        monkeypatch.setattr(publisher_module.time, "time", lambda number=number: now + number * 3000)
        publisher = fleet.publisher()
        publisher.poll()
        fleet.end(publisher)
    with redis.Redis.from_url(fleet.options.redis_url, decode_responses=True) as raw:
        assert sorted(raw.hkeys("salt:publisher:cursors")) == ["*", "replica-3", "replica-4"]


def test_an_idle_publisher_gives_signs_of_life(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher = fleet.publisher()
    publisher.poll()
    later = time.time() + 7200
    monkeypatch.setattr(publisher_module.time, "time", lambda: later)
    publisher._next_alive = 0.0
    publisher.poll()
    assert fleet.store.publications.forget_cursors(int(later - 3600) * 1000, "*") == []


def test_the_first_publisher_of_all_sends_nothing_old(fleet: Fleet) -> None:
    fleet.publish("old")
    publisher = fleet.publisher()
    minion = fleet.minion(publisher)
    fleet.publish("new")
    assert fleet.funs(fleet.heard(publisher, minion, 1)) == ["new"]


def test_what_is_older_than_the_window_is_not_sent_again(
    fleet: Fleet, new_options: Callable[..., MasterOptions]
) -> None:
    publisher = fleet.publisher()
    publisher.poll()
    fleet.end(publisher)
    fleet.publish("too old")
    fleet.options = new_options(redis_url=fleet.options.redis_url, replay_window=-1)
    publisher = fleet.publisher()
    minion = fleet.minion(publisher)
    fleet.publish("new")
    assert fleet.funs(fleet.heard(publisher, minion, 1)) == ["new"]


def test_who_comes_back_soon_after_the_start_gets_what_was_sent_since(fleet: Fleet) -> None:
    publisher = fleet.publisher()
    publisher.poll()
    fleet.publish("a")
    publisher.poll()
    fleet.publish("b")
    publisher.poll()
    minions = []
    for _ in range(2):
        minions.append(fleet.minion(publisher))
        assert fleet.funs(fleet.heard(publisher, minions[-1], 2)) == ["a", "b"]


def test_what_was_called_off_meanwhile_is_not_sent_again(fleet: Fleet) -> None:
    publisher = fleet.publisher()
    publisher.poll()
    for fun in ("test.one", "test.two"):
        fleet.publish(fun)
    fleet.eventually(lambda: publisher.poll() or len(publisher._sent) == 2)
    assert fleet.store.jobs.cancel(f"20260101{1:012d}", None, int(time.time() * 1000)) == ["web1", "web2"]
    back = fleet.minion(publisher)
    assert fleet.funs(fleet.heard(publisher, back, 1)) == ["test.two"]
    back.close(linger=0)


def test_who_comes_back_while_a_job_is_sent_gets_the_earlier_ones_before_it(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Minions, stock ones too, drop what has a lower serial than they had: a replay that comes after a new job is lost on them."""
    publisher = fleet.publisher()
    publisher.poll()
    fleet.publish("a")
    publisher.poll()
    minion: zmq.Socket[bytes] = fleet.context.socket(zmq.SUB)
    minion.setsockopt(zmq.SUBSCRIBE, b"")

    def seal_while_a_minion_comes(*arguments: Any) -> bytes:
        monitor = minion.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        minion.connect(f"tcp://127.0.0.1:{fleet.options.publish_port}")
        assert monitor.poll(20_000), "no connection"
        # Its subscription is on the way; the publisher's socket has not looked at it.
        assert select.select([publisher._pub.fileno()], [], [], 5)[0], "no subscription"
        minion.disable_monitor()
        return seal_job_by_each(*arguments)

    monkeypatch.setattr(publisher_module, "seal_job_by_each", seal_while_a_minion_comes)
    fleet.publish("b")
    gate = SerialGate()
    jobs = [open_job(frames[-1], fleet.aes(), gate=gate) for frames in fleet.heard(publisher, minion, 2)]
    assert [job["fun"] for job in jobs if job] == ["a", "b"]


@pytest.mark.parametrize(
    ("load", "until"),
    [
        ({}, float("inf")),
        ({"replay_until": 50_000}, 50_000),
        ({"replay_until": 0}, 15_000),
        ({"replay_until": 12_000}, 15_000),
        ({"replay_until": "x"}, float("inf")),
        ({"replay_until": True}, float("inf")),
    ],
)
def test_until_when_a_job_is_sent(load: dict[str, Any], until: float) -> None:
    assert publisher_module.sent_until("5000-3", load) == until


def test_what_must_not_run_late_is_not_sent_late(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher = fleet.publisher()
    publisher.poll()
    fleet.publish("at once")
    publisher.poll()
    fleet.publish("late")
    later = time.time() + 11
    monkeypatch.setattr(publisher_module.time, "time", lambda: later)
    publisher.poll()
    minion = fleet.minion(publisher)
    fleet.publish("in its time", replay_until_ms=int(later + 60) * 1000)
    assert fleet.funs(fleet.heard(publisher, minion, 1)) == ["in its time"]


def test_who_comes_from_another_publisher_gets_what_was_sent_meanwhile(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rollout: this publisher runs for a while when the one that ends lets its minions go."""
    publisher = fleet.publisher()
    fleet.minion(publisher)
    fleet.publish("old")
    publisher.poll()
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 60, time=time.time, sleep=time.sleep)
    monkeypatch.setattr(publisher_module, "time", later)
    fleet.publish("meanwhile")
    publisher.poll()
    minion = fleet.minion(publisher)
    assert fleet.funs(fleet.heard(publisher, minion, 1)) == ["meanwhile"]


@dataclass(frozen=True)
class Restarted:
    """Jobs for web1 and web2, and who signs in between the two that are sent again to whom comes."""

    signs_in: tuple[str, ...]
    #: Minions that are known to ask for what they missed.
    ours: tuple[str, ...] = ()
    #: Function -> its target when it is sent again.
    again: Mapping[str, Any] = field(default_factory=dict)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Restarted((), again={"before": "*", "after": "*"}), id="nobody"),
        pytest.param(Restarted(("web1",), again={"before": ["web2"], "after": "*"}), id="one-of-two"),
        pytest.param(Restarted(("web1", "web2"), again={"after": "*"}), id="both"),
        pytest.param(Restarted(("web1",), ("web1",), again={"before": "*", "after": "*"}), id="ours"),
        pytest.param(Restarted(("other",), again={"before": "*", "after": "*"}), id="another"),
    ],
)
def test_a_stock_minion_is_not_sent_what_came_before_it_signed_in(fleet: Fleet, case: Restarted) -> None:
    """It has forgotten what it ran: the job that restarts it would restart it again. Others may have missed it."""
    publisher = fleet.publisher()
    publisher.poll()
    fleet.publish("before")
    fleet.eventually(lambda: publisher.poll() or len(publisher._sent) == 1)
    for minion in case.ours:
        fleet.store.jobs.sign(minion, [], 1)
    for minion in case.signs_in:
        fleet.store.minion_keys.store(minion, "PEM", "accepted")
        assert fleet.store.sign_ins.begin(minion, "PEM", 1).seen
    fleet.await_clock()
    fleet.publish("after")
    fleet.eventually(lambda: publisher.poll() or len(publisher._sent) == 2)
    back = fleet.minion(publisher)
    jobs = [fleet.opened(frames[-1]) or {} for frames in fleet.heard(publisher, back, len(case.again))]
    assert {job["fun"]: job["tgt"] for job in jobs} == case.again
    assert {job["tgt_type"] for job in jobs if isinstance(job["tgt"], list)} <= {"list"}


def test_what_everybody_has_answered_is_not_sent_again(fleet: Fleet) -> None:
    publisher = fleet.publisher()
    publisher.poll()
    for fun in ("test.one", "test.two"):
        fleet.publish(fun)
    fleet.eventually(lambda: publisher.poll() or len(publisher._sent) == 2)
    for minion in ("web1", "web2"):
        fleet.store.jobs.record_return(
            {"jid": f"20260101{1:012d}", "id": minion, "fun": "test.one", "return": 1}, ttl=60
        )
    back = fleet.minion(publisher)
    assert fleet.funs(fleet.heard(publisher, back, 1)) == ["test.two"]


def test_without_redis_who_comes_is_sent_nothing_again_until_it_is_back(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = fleet.publisher()
    publisher.poll()
    fleet.publish("a")
    fleet.eventually(lambda: publisher.poll() or publisher._sent)
    away = Store.open(f"redis://127.0.0.1:{fleet.options.ret_port}/0", client_name="test")
    with monkeypatch.context() as without:
        without.setattr(publisher, "_store", away)
        minion = fleet.minion(publisher)
        publisher.poll()
        assert not minion.poll(20)
    assert fleet.funs(fleet.heard(publisher, minion, 1)) == ["a"]


def test_who_comes_late_gets_new_jobs_only(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher = fleet.publisher()
    publisher.poll()
    fleet.publish("early")
    publisher.poll()
    monkeypatch.setattr(publisher_module, "_COMEBACK_SECONDS", -1.0)
    minion = fleet.minion(publisher)
    fleet.publish("new")
    assert fleet.funs(fleet.heard(publisher, minion, 1)) == ["new"]


def test_a_rotated_key_seals_the_next_job(fleet: Fleet) -> None:
    publisher = fleet.publisher()
    minion = fleet.minion(publisher)
    fleet.publish("old key")
    ((old,),) = fleet.heard(publisher, minion, 1)
    epoch = fleet.store.epochs.current().aes
    fleet.store.epochs.rotate_aes()
    fleet.publish("new key")
    ((new,),) = fleet.heard(publisher, minion, 1)
    assert (fleet.opened(old, epoch) or {})["fun"] == "old key"
    assert (fleet.opened(new, epoch + 1) or {})["fun"] == "new key"


@pytest.mark.parametrize(
    ("tgt", "tgt_type", "heard"),
    [
        ("web1", "glob", {"web1", "web2"}),
        (["web1"], "list", {"web1", "web2"}),
        ("os:Debian", "grain", {"web1", "web2", "db1"}),
    ],
)
def test_filtered_publications_reach_the_minions_they_are_for(
    fleet: Fleet, new_options: Callable[..., MasterOptions], tgt: Any, tgt_type: str, heard: set[str]
) -> None:
    fleet.options = new_options(redis_url=fleet.options.redis_url, zmq_filtering=True)
    publisher = fleet.publisher()
    minions = {}
    for name in ("web1", "web2", "db1"):
        minions[name] = fleet.minion(publisher, topic(name).encode())
        minions[name].setsockopt(zmq.SUBSCRIBE, b"broadcast")
    fleet.eventually(lambda: publisher.poll() or fleet.subscribers() == 6)
    fleet.publish(tgt=tgt, tgt_type=tgt_type)
    got = set()
    for name in sorted(heard):
        (frames,) = fleet.heard(publisher, minions[name], 1)
        assert len(frames) == 2
        assert fleet.opened(frames[1]) is not None
        got.add(name)
    assert got == heard
    assert not any(minions[name].poll(20) for name in minions.keys() - heard)


def test_subscriptions_are_counted_up_and_down(fleet: Fleet) -> None:
    publisher = fleet.publisher()
    minions = [fleet.minion(publisher) for _ in range(3)]
    assert fleet.subscribers() == 3
    minions[0].close()
    fleet.eventually(lambda: publisher.poll() or fleet.subscribers() == 2)
    minions[1].close()
    fleet.eventually(lambda: publisher.poll() or fleet.subscribers() == 1)


def test_without_redis_the_publisher_waits_and_says_so(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    away = Store.open(f"redis://127.0.0.1:{fleet.options.ret_port}/0", client_name="test")
    role = fleet.new_role("publisher", fleet.options)
    publisher = Publisher(role, fleet.context, away, fleet.kept)
    fleet.publishers.append(publisher)
    for _ in range(3):
        publisher.poll()
    assert caplog.text.count("publications wait until it is back") == 1
    (why,) = role.health.unready()
    assert why.startswith("redis: redis at ")
    assert role.metrics.registry.value("salt_redis_up") == 0


def test_a_port_that_is_taken_is_named(fleet: Fleet) -> None:
    fleet.publisher()
    with pytest.raises(ConfigError, match="publish_port: cannot listen"):
        fleet.publisher()
