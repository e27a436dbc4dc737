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
from saltern.kit.links.sockets import LinkKeys
from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, Lab, until

pytestmark = [pytest.mark.roles, pytest.mark.redis]

BOTH = ["web1", "web2"]

#: Operators who publish at the same time.
OPERATORS = 4

#: Seconds that a command may take longer because one of two reqservers is killed. A command that a busy machine slows down anyway
#: is compared with the slowest one before.
LATE = 2.0


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
                time.sleep(0.02)
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
                until(lambda: len(self.took) > 5 * OPERATORS, SOON, "jobs are published")
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
        until(lambda: len(load.took) > before + 20 * OPERATORS, SOON, "jobs are published without it")
        lab.start(victim)
        lab.await_ready(victim)
        after = len(load.took)
        until(lambda: len(load.took) > after + 5 * OPERATORS, SOON, "jobs are published with both")

    load.run(kill)
    assert load.errors == []
    jids = [jid for _, _, jid in load.took]
    assert len(set(jids)) == len(jids), "no two requests got one job"
    # The stream has each job once, and no job that nobody was told of.
    published = [fields["load"] for _, fields in lab.redis().xrange("salt:publications")]
    assert [sum(jid in one for one in published) for jid in jids] == [1] * len(jids)
    for jid in jids:
        until(lambda jid=jid: lab.redis().hlen(f"ret:{jid}") == len(BOTH), SOON, f"the returns of {jid}")  # type: ignore[misc]
        assert lab.redis().hget(f"salt:job:{jid}", "duplicates") is None
    before = max(took for began, took, _ in load.took if began + took < killed[0])
    assert max(took for _, took, _ in load.took) < before + LATE


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
