"""A failover of Redis in the middle of the traffic: real Sentinels, real roles; what was acknowledged is there afterwards."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

import pytest

from masterstore.store import Store
from tests.faults.redis_pair import RedisPair
from tests.roles.conftest import NewLab
from tests.roles.lab import Lab, until

pytestmark = pytest.mark.roles

#: Seconds for a failover, and for everybody to go on after it.
BACK = 90.0

ROLES = ("eventpublisher", "reqserver", "mworker", "publisher", "reactor", "maintenance")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisPair]:
    made = RedisPair(tmp_path_factory.mktemp("pair"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def lab(module_labs: NewLab, pair: RedisPair) -> Lab:
    made = module_labs(
        minions=("web1",), options={"redis_url": pair.url, "redis_wait_replicas": 1, "reactor": [{"x": "/none.sls"}]}
    )
    for name in (*ROLES, "web1"):
        made.start(name)
    made.await_ready(*ROLES, "web1")
    return made


def test_nothing_acknowledged_is_lost(lab: Lab, pair: RedisPair) -> None:
    """Jobs are published all the time; the master of Redis is killed. Of each JID that was printed the result is there."""
    acknowledged: list[str] = []
    refused: list[str] = []
    ended = threading.Event()

    def traffic() -> None:
        while not ended.is_set():
            answer = lab.run("salt", "--async", "web1", "test.arg", str(len(acknowledged)))
            found = re.search(r"job ID: (\d{20})", answer.out)
            (acknowledged if found else refused).append(found[1] if found else answer.out + answer.err)

    thread = threading.Thread(target=traffic)
    thread.start()
    try:
        until(lambda: len(acknowledged) >= 3, BACK, "jobs are acknowledged")
        before = pair.master()
        pair.kill(before)
        # No replica is left after the failover: nothing is acknowledged until the old master is back as one.
        now = pair.await_failover(before)
        pair.start(before, "--replicaof", "127.0.0.1", str(now))
        count = len(acknowledged)
        until(lambda: len(acknowledged) >= count + 3, BACK, "jobs are acknowledged again")
    finally:
        ended.set()
        thread.join()
    store = Store.open(pair.url, timeout=5.0, client_name="test")
    for jid in acknowledged:
        until(lambda jid=jid: store.jobs.returns(jid), BACK, f"the result of {jid}")  # type: ignore[misc]
    assert len(set(acknowledged)) == len(acknowledged)
    assert refused, "the failover was not seen by anybody"
    for said in refused:
        assert "redis at redis+sentinel://" in said, said
    lab.await_ready(*ROLES, "web1")
    assert lab.salt("web1", "test.ping") == {"web1": True}
    assert lab.dead() == {}
    assert lab.tracebacks() == []
    for name in ("mworker", "publisher", "reactor", "maintenance"):
        assert lab.probe(name) == (200, "ok")
