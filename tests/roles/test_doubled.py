"""Two reqservers and two event publishers: one of each is killed under load, and no command notices it for long."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
import zmq

from saltern.kit.links.control import ControlClient
from saltern.kit.links.event_bus import EventSubscriber
from saltern.kit.links.sockets import LinkKeys
from tests.conftest import Oracle
from tests.interop.stock import StockMinion, need_namespace
from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, STARTUP, Held, Lab, until

pytestmark = [pytest.mark.roles, pytest.mark.redis]

BOTH = ["web1", "web2"]

#: Operators who publish at the same time.
OPERATORS = 3

#: Seconds that a command may take longer because one of two reqservers is killed. A command that a busy machine slows down anyway
#: is compared with the slowest one before.
LATE = 2.0

#: Seconds within which `salt` has a return: the pause before its first look into the job cache, and a busy machine's slowness.
SLOW = 8.0


@pytest.fixture(scope="module")
def doubled(module_labs: NewLab) -> Lab:
    made = module_labs(workers=3, reqservers=2, eventpublishers=2)
    made.start_all()
    made.salt("*", "saltutil.sync_modules")
    return made


@dataclass
class Load:
    """Operators who publish one job after the other, and how long each publication took."""

    lab: Lab
    #: (when it began, how long it took, its JID): times are seconds of the monotonic clock.
    took: list[tuple[float, float, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def publish(self) -> None:
        """Publish until the end, each time under a new request id."""
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        client = ControlClient(context, self.lab.master_options, LinkKeys.load(self.lab.etc / "keys" / "cli"))
        try:
            while not self._ended.is_set():
                began = time.monotonic()
                job = client.call("publish", timeout=SOON, tgt="*", fun="test.ping", request_id=os.urandom(16).hex())
                self.took.append((began, time.monotonic() - began, str(job["jid"])))
                time.sleep(0.2)
        except Exception as error:  # noqa: BLE001 - the test names it
            self.errors.append(repr(error))
        finally:
            client.close()
            context.term()

    def run(self, meanwhile: Callable[[], None]) -> None:
        """Publish while ``meanwhile`` runs."""
        with ThreadPoolExecutor(OPERATORS) as pool:
            working = [pool.submit(self.publish) for _ in range(OPERATORS)]
            try:
                until(lambda: len(self.took) > 3 * OPERATORS, SOON, "jobs are published")
                meanwhile()
            finally:
                self._ended.set()
            for one in working:
                one.result(SOON)


@pytest.fixture
def well(doubled: Lab) -> Iterator[Lab]:
    yield doubled
    for name in doubled.roles:
        if name not in doubled.processes:
            doubled.start(name)
    doubled.await_ready(*doubled.roles, *doubled.minions)
    doubled.pings()
    assert doubled.tracebacks() == []


@pytest.mark.parametrize("victim", ["reqserver", "reqserver2"])
def test_a_reqserver_is_killed_under_load(well: Lab, victim: str) -> None:
    lab, load = well, Load(well)
    killed: list[float] = []

    def kill() -> None:
        before = len(load.took)
        lab.kill(victim)
        killed.append(time.monotonic())
        until(lambda: len(load.took) > before + 6 * OPERATORS, SOON, "jobs are published without it")
        lab.start(victim)
        lab.await_ready(victim)
        after = len(load.took)
        until(lambda: len(load.took) > after + 3 * OPERATORS, SOON, "jobs are published with both")

    load.run(kill)
    assert load.errors == []
    jids = [jid for _, _, jid in load.took]
    assert len(set(jids)) == len(jids), "no two requests got one job"
    # The stream has each job once, and no job that nobody was told of.
    published = [fields["load"] for _, fields in lab.redis().xrange("salt:publications")]
    assert [sum(jid in one for one in published) for jid in jids] == [1] * len(jids)
    for jid in jids:
        until(lambda jid=jid: lab.redis().hlen(f"ret:{jid}") == len(BOTH), SOON, f"the returns of {jid}")  # type: ignore[misc]
    # A return whose acknowledgement was lost comes again, and is stored once; no job runs twice.
    for minion in BOTH:
        log = lab.log(minion)
        assert [log.count(f"runs test.ping [jid={jid} ") for jid in jids] == [1] * len(jids)
    before = max(took for began, took, _ in load.took if began + took < killed[0])
    assert max(took for _, took, _ in load.took) < before + LATE


@dataclass
class Listener:
    """A listener of the bus who writes down what it hears, in its order."""

    lab: Lab
    prefix: str
    #: Where the event publisher answers that it listens to first.
    first: str
    heard: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    endpoints: set[str] = field(default_factory=set)
    longest: float = 0.0
    ready: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def listen(self) -> None:
        """Listen until the end."""
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        keys = LinkKeys.load(self.lab.etc / "keys" / "cli")
        bus = EventSubscriber(context, self.lab.master_options, keys)
        # Each new listener takes one of the two at random.
        while bus.endpoint != self.first:
            bus.close()
            bus = EventSubscriber(context, self.lab.master_options, keys)
        try:
            bus.subscribe(self.prefix)
            assert bus.ready(SOON)
            self.ready.set()
            while not self.ended.is_set():
                event = bus.next(0.1)
                self.endpoints.add(bus.endpoint)
                if event is not None:
                    self.heard.append(event)
        finally:
            bus.close()
            context.term()


@pytest.mark.parametrize("victim", ["eventpublisher", "eventpublisher2"])
def test_an_event_publisher_is_killed_under_load(well: Lab, victim: str) -> None:
    """Four listeners, two on each of the two; each hears each event once, those of one sender in their order."""
    lab, load = well, Load(well)
    port = lab.master_options.event_pub_port
    listeners = [Listener(lab, "salt/job/", f"tcp://127.0.0.{number % 2 + 1}:{port}") for number in range(4)]

    def told() -> int:
        return min(sum(tag.endswith("/new") for tag, _ in one.heard) for one in listeners)

    def kill() -> None:
        until(lambda: told() > 10, SOON, "listeners hear of jobs")
        lab.kill(victim)
        before = told()
        until(lambda: told() > before + 20, SOON, "all listeners hear of jobs without it")
        lab.start(victim)
        lab.await_ready(victim)
        before = told()
        until(lambda: told() > before + 10, SOON, "all listeners hear of jobs with both")

    with ThreadPoolExecutor(len(listeners)) as pool:
        working = [pool.submit(one.listen) for one in listeners]
        try:
            for one in listeners:
                assert one.ready.wait(SOON)
            load.run(kill)
            jids = [jid for _, _, jid in load.took]
            for jid in jids:
                until(lambda jid=jid: lab.redis().hlen(f"ret:{jid}") == len(BOTH), SOON, f"the returns of {jid}")  # type: ignore[misc]
            wanted = {f"salt/job/{jid}/{word}" for jid in jids for word in ("new", "publish", "ret/web1", "ret/web2")}
            for one in listeners:
                until(lambda one=one: wanted <= {tag for tag, _ in one.heard}, SOON, "each event is heard")  # type: ignore[misc]
        finally:
            for one in listeners:
                one.ended.set()
        for future in working:
            future.result(SOON)
    assert load.errors == []
    moved = "tcp://127.0.0.1" if victim == "eventpublisher" else "tcp://127.0.0.2"
    assert all(len(one.endpoints) == 2 for one in listeners if one.first.startswith(moved)), (
        "they went to the other one"
    )
    for one in listeners:
        heard = [tag for tag, _ in one.heard if tag in wanted]
        assert len(heard) == len(set(heard)), "no event comes twice"
        # A worker fires these two one after the other.
        assert all(heard.index(f"salt/job/{jid}/new") < heard.index(f"salt/job/{jid}/publish") for jid in jids)


def test_salt_does_not_notice_that_its_event_publisher_is_killed(well: Lab) -> None:
    """Whichever of the two it listens to: the job ends while one of them is away, and `salt` ends with it."""
    lab = well
    for victim in ("eventpublisher", "eventpublisher2"):
        held = Held(lab)
        waiting = lab.started("salt", "--out", "json", "--static", *held.words())
        held.await_started()
        lab.kill(victim)
        time.sleep(0.5)
        released = time.monotonic()
        held.let_go()
        until(lambda waiting=waiting: waiting.poll() is not None, SOON, "salt ends")  # type: ignore[misc]
        took = time.monotonic() - released
        assert lab.finished(waiting).data == dict.fromkeys(BOTH, True)
        lab.start(victim)
        lab.await_ready(victim)
        # The minions need a moment for the end of the job; from the job cache alone `salt` would have it after up to 30 s.
        assert took < SLOW, took


def test_requests_of_both_reqservers_are_answered_by_the_same_workers(well: Lab) -> None:
    """Each reqserver knows all workers; one that has none of its own calls one."""
    lab = well
    for name in ("reqserver", "reqserver2"):
        until(lambda name=name: lab.metric(name, "salt_workers") == 3, SOON, f"{name} knows all workers")  # type: ignore[misc]

    def away() -> list[float]:
        return [lab.metric(name, "salt_workers_away") for name in ("reqserver", "reqserver2")]

    until(lambda: sum(away()) == 3, SOON, "each worker is idle for one of them")
    for worker in ("mworker", "mworker2", "mworker3"):
        until(lambda worker=worker: lab.metric(worker, "salt_worker_links") == 2, SOON, f"{worker} has both links")  # type: ignore[misc]


@pytest.mark.oracle
def test_a_stock_minion_goes_on_at_the_other_reqserver(module_labs: NewLab, oracle: Oracle) -> None:
    """It reconnects by itself. A return that was under way it sends again after its return_retry_timer, here 1 to 2 s."""
    need_namespace()
    lab = module_labs(minions=(), workers=2, reqservers=2)
    lab.start_all(*lab.roles)
    minion = StockMinion("stock1", oracle.venv, lab)
    minion.start()
    try:
        until(lambda: lab.run("salt", "-t", "2", "stock1", "test.ping").code == 0, 3 * STARTUP, "it answers")
        for victim in ("reqserver", "reqserver2"):
            lab.kill(victim)
            assert lab.salt("-t", "30", "stock1", "test.echo", victim) == {"stock1": victim}
            assert "top.sls" in lab.salt("-t", "30", "stock1", "cp.list_master")["stock1"]
            lab.start(victim)
            lab.await_ready(victim)
    finally:
        minion.end()
