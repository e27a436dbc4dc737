"""A failover of Redis in the middle of the traffic, with real Sentinels and in a real Redis Cluster. The roles are real, too.

What was acknowledged is there afterwards.
"""

from __future__ import annotations

import itertools
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import saltern
from masterstore.store import Store
from tests.faults.redis_cluster import RedisCluster
from tests.faults.redis_pair import RedisPair, RedisServers
from tests.roles.conftest import NewLab
from tests.roles.lab import Lab, until

pytestmark = pytest.mark.roles

#: Seconds for a failover, and for everybody to go on after it.
BACK = 90.0

ROLES = ("eventpublisher", "reqserver", "mworker", "publisher", "reactor", "maintenance")


@pytest.fixture(scope="module", params=["sentinel", "cluster"])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServers]:
    """Redis with Sentinels, then a Redis Cluster."""
    kind: Callable[[Path], RedisServers] = {"sentinel": RedisPair, "cluster": RedisCluster}[request.param]
    made = kind(tmp_path_factory.mktemp(request.param))
    yield made
    made.close()


@pytest.fixture(scope="module")
def lab(module_labs: NewLab, servers: RedisServers) -> Iterator[Lab]:
    """A lab whose roles acknowledge a write once a replica of Redis has it."""
    options = {"redis_url": servers.url, "redis_wait_replicas": 1, "reactor": [{"x": "/none.sls"}]}
    made = module_labs(minions=("web1",), options=options)
    for name in (*ROLES, "web1"):
        made.start(name)
    made.await_ready(*ROLES, "web1")
    yield made
    made.close()


def shown(servers: RedisServers) -> str:
    """Return how each refusal of a command begins that was made because Redis was away."""
    return f"redis at {servers.url.partition('://')[0]}://"


class Traffic:
    """Publishes jobs all the time and asks some for their result, as scripts do; notes what the master acknowledged."""

    def __init__(self, lab: Lab) -> None:
        self._master = saltern.Control(config_dir=str(lab.etc), patience=10)
        self._ended = threading.Event()
        self._numbers = itertools.count()
        #: JID -> (number that the job returns, when it was acknowledged).
        self.acknowledged: dict[str, tuple[int, float]] = {}
        self.refused: list[str] = []
        self.results: list[tuple[int, dict[str, object]]] = []
        self._threads = [threading.Thread(target=body) for body in (self._publish, self._ask)]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _publish(self) -> None:
        with saltern.LocalClient(master=self._master) as local:
            while not self._ended.wait(0.05):
                number = next(self._numbers)
                try:
                    jid = str(local.cmd_async("web1", "test.echo", [number]))
                except saltern.exceptions.SaltException as error:
                    self.refused.append(str(error))
                else:
                    self.acknowledged[jid] = (number, time.monotonic())

    def _ask(self) -> None:
        with saltern.LocalClient(master=self._master) as local:
            while not self._ended.wait(0.2):
                number = next(self._numbers)
                try:
                    self.results.append((number, local.cmd("web1", "test.echo", [number], timeout=60)))
                except saltern.exceptions.SaltException as error:
                    self.refused.append(str(error))


def test_nothing_acknowledged_is_lost(lab: Lab, servers: RedisServers) -> None:
    """Jobs are published, run and return all the time; the master of Redis is killed. Of each JID that was acknowledged
    the minion ran the job once, and its result is there.
    """
    with Traffic(lab) as traffic:
        until(lambda: len(traffic.acknowledged) >= 20 and traffic.results, BACK, "jobs are acknowledged")
        before = servers.master()
        servers.kill(before)
        killed = time.monotonic()
        # No replica is left after the failover: nothing is acknowledged until the old master is back as one.
        servers.await_failover(before)
        failed_over = time.monotonic()
        servers.rejoin(before)
        count, asked = len(traffic.acknowledged), len(traffic.results)
        until(lambda: len(traffic.acknowledged) >= count + 20, BACK, "jobs are acknowledged again")
        until(lambda: len(traffic.results) >= asked + 3, BACK, "jobs are asked for again")
    times = sorted(when for _, when in traffic.acknowledged.values())
    gap = max(later - earlier for earlier, later in itertools.pairwise(times))
    figures = (shown(servers), len(times), len(traffic.refused), failed_over - killed, gap)
    logging.getLogger("tests").warning("%s: %d acknowledged, %d refused; failover %.1f s, nothing for %.1f s", *figures)
    store = Store.open(servers.url, timeout=5.0, client_name="test")
    for jid, (number, _) in traffic.acknowledged.items():
        found = until(lambda jid=jid: store.jobs.returns(jid), BACK, f"the result of {jid}")  # type: ignore[misc]
        assert found["web1"]["return"] == number
    ran = re.findall(r"runs test\.echo \[jid=(\d{20})", lab.log("web1"))
    assert sorted(set(ran)) == sorted(ran), "a job ran twice"
    assert set(traffic.acknowledged) <= set(ran)
    # A result that was shown is the right one. An empty answer is a command that was given up: its job is there all the same.
    for number, result in traffic.results:
        assert result in ({"web1": number}, {}), (number, result)
    assert traffic.refused, "the failover was not seen by anybody"
    for said in traffic.refused:
        assert shown(servers) in said or "does not answer" in said, said
    lab.await_ready(*ROLES, "web1")
    assert lab.salt("web1", "test.ping") == {"web1": True}
    assert lab.dead() == {}
    assert lab.tracebacks() == []
    for name in ("mworker", "publisher", "reactor", "maintenance"):
        assert lab.probe(name) == (200, "ok")


def test_what_a_command_sees_during_a_failover(lab: Lab, servers: RedisServers) -> None:
    """A command that waits for a running job goes on; a new one is refused in one line, and names Redis."""
    waiting = lab.started("salt", "web1", "test.sleep", "6", "--out=json")
    until(lambda: "runs test.sleep" in lab.log("web1"), BACK, "the job runs")
    before = servers.master()
    servers.kill(before)
    refused = lab.run("salt", "web1", "test.ping")
    servers.await_failover(before)
    servers.rejoin(before)
    answer = lab.finished(waiting, BACK)
    assert (answer.code, answer.data) == (0, {"web1": True}), answer
    if refused.code:
        assert refused.code in (1, 69), refused
        assert shown(servers) in refused.err, refused
        assert len(refused.err.strip().splitlines()) == 1, refused
    until(lambda: lab.run("salt", "web1", "test.ping").code == 0, BACK, "commands work again")
