"""Workers in pools, workers that hang, wear out or are too few, and minions that ask for too much."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from saltern.mworker.watchdog import EX_HUNG
from saltwire.busy import Busy, check_busy
from saltwire.crypticle import Crypticle
from saltwire.envelope import ClientSession
from saltwire.handshake import SignIn
from saltwire.keys import PrivateKey, PublicKey
from saltwire.zmq import RequestSocket
from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, Lab, until

pytestmark = pytest.mark.roles

POOLS = {
    "auth": {"worker_count": 1, "commands": ["_auth"]},
    "pillar": {"worker_count": 2, "commands": ["_pillar"]},
    "default": {"worker_count": 1, "commands": ["*"]},
}

#: A pillar that never comes to an end as long as a file is there, which it takes away.
HANGING = """\
#!py
import os, time

def run():
    try:
        os.rename({flag!r}, {flag!r} + "-taken")
    except OSError:
        return {{"hung": False}}
    time.sleep(1000)
"""


@pytest.fixture(scope="module")
def pooled(module_labs: NewLab) -> Lab:
    """Four workers in three pools."""
    lab = module_labs(
        workers=4, options={"worker_pools": POOLS, "request_deadlines": {"_pillar": 5}, "max_waiting_requests": 1000}
    )
    flag = str(lab.root / "hang")
    (lab.tree / "pillar" / "hanging.sls").write_text(HANGING.format(flag=flag))
    top = lab.tree / "pillar" / "top.sls"
    top.write_text(top.read_text().replace("    - defaults\n", "    - defaults\n    - hanging\n"))
    lab.start_all()
    return lab


def by_pool(lab: Lab, metric: str) -> dict[str, float]:
    lines = lab.probe("reqserver", "/metrics")[1].splitlines()
    found = (line for line in lines if line.startswith(f"{metric}{{"))
    return {line.split('"')[1]: float(line.rsplit(" ", 1)[1]) for line in found}


def test_workers_are_spread_over_the_pools_and_all_requests_are_answered(pooled: Lab) -> None:
    lab = pooled
    until(lambda: by_pool(lab, "salt_workers") == {"auth": 1, "default": 1, "pillar": 2}, SOON, "all workers")
    lab.pings()
    for minion, pillar in lab.salt("*", "pillar.items").items():
        assert pillar["hung"] is False, minion
    run = lab.salt("*", "state.apply")
    assert all(result["result"] for states in run.values() for result in states.values())
    assert lab.metric("reqserver", "salt_requests_handed_back_total") > 0


def test_a_hung_worker_ends_by_itself_and_its_request_is_answered_by_another(pooled: Lab) -> None:
    lab = pooled
    workers = {name: lab.processes[name] for name in lab.roles if name.startswith("mworker")}
    requeued = lab.metric("reqserver", "salt_requests_requeued_total")
    (lab.root / "hang").touch()
    asked = lab.started("salt", "-t", "30", "--out", "json", "--static", "web1", "pillar.items")
    until(lambda: (lab.root / "hang-taken").exists(), SOON, "the pillar hangs")
    # Others are not in its way: there is a pool for them.
    assert lab.salt("web2", "test.ping") == {"web2": True}
    until(lambda: [name for name, one in workers.items() if one.poll() is not None], SOON, "the hung worker has ended")
    (name,) = [name for name, one in workers.items() if one.poll() is not None]
    assert workers[name].returncode == EX_HUNG
    answer = lab.finished(asked)
    assert answer.data["web1"]["hung"] is False, answer
    until(lambda: lab.metric("reqserver", "salt_requests_requeued_total") == requeued + 1, SOON, "it is counted")
    said = lab.log(name)
    assert "this worker hangs and ends: _pillar takes" in said
    assert "hanging.sls" in said, "where it is stuck"
    assert "hangs and ends: its log says where" in lab.log("reqserver")
    del lab.processes[name]
    lab.start(name)
    lab.await_ready(name)
    until(lambda: by_pool(lab, "salt_workers")["pillar"] == 2, SOON, "it is back in its pool")
    lab.pings()


def test_a_worker_of_a_pool_that_is_none_does_not_start(pooled: Lab) -> None:
    answer = pooled.run("saltern", "mworker", "-c", str(pooled.etc), "--pool", "pilar")
    assert answer.code == 78
    said = "worker_pool: worker_pools has no pool 'pilar', but auth, default, pillar; the nearest is 'pillar'"
    assert said in answer.err


class Flood:
    """A minion of the lab that asks without waiting for answers."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], lab: Lab, minion: str) -> None:
        self.socket = RequestSocket(context, f"tcp://127.0.0.1:{lab.port['ret_port']}")
        pki = lab.root / "minions" / minion / "pki"
        key = PrivateKey.from_pem((pki / "minion.pem").read_bytes())
        master = PublicKey.from_pem((pki / "minion_master.pub").read_text())
        machine = SignIn(minion, key, master)
        answer = machine.feed(self.socket.ask(machine.request(), iter([5.0])))
        assert answer.credentials is not None, answer
        assert answer.credentials.session is not None
        self._session = ClientSession(minion, Crypticle(answer.credentials.session), key)

    def send(self, count: int) -> None:
        load = {"cmd": "_file_list", "saltenv": "base", "prefix": ""}
        # Encrypted before the first is sent: on a busy machine the workers would answer them as fast as they are made.
        for payload in [self._session.seal(load, time.time())[0] for _ in range(count)]:
            self.socket.send(payload)

    def answers(self) -> tuple[int, int]:
        """How many answers came so far, and how many of them say that the master is busy."""
        count = busy = 0
        while (reply := self.socket.receive(0.5)) is not None:
            count += 1
            try:
                check_busy(reply)
            except Busy:
                busy += 1
        return count, busy


@pytest.fixture
def flood(pooled: Lab) -> Iterator[Flood]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        yield Flood(context, pooled, "web1")
    finally:
        context.destroy(linger=0)


def test_a_minion_that_floods_the_master_keeps_nobody_else_waiting(pooled: Lab, flood: Flood) -> None:
    lab = pooled
    refused = lab.metric("reqserver", "salt_requests_refused_total")
    flood.send(3000)
    assert lab.salt("web2", "test.ping") == {"web2": True}
    count, busy = flood.answers()
    # A tenth of what may wait is one minion's; the rest was told to come back.
    assert count == 3000
    assert busy > 1000
    until(lambda: lab.metric("reqserver", "salt_requests_refused_total") == refused + busy, SOON, "they are counted")
    lab.pings()


def test_a_worn_worker_begins_anew_between_two_requests(module_labs: NewLab) -> None:
    lab = module_labs(minions=("web1",), options={"worker_max_requests": 6})
    lab.start_all()
    pid = lab.processes["mworker"].pid

    def lives() -> int:
        lab.pings()
        return lab.log("mworker").count("the worker restarts after 6 requests (worker_max_requests)")

    until(lambda: lives() > 1, SOON, "two new lives")
    assert lab.processes["mworker"].pid == pid
    lab.pings()
    lab.close()


@pytest.fixture(scope="module")
def narrow(module_labs: NewLab) -> Lab:
    """One worker, and room for two that wait; it may be stopped for a minute before it is given up."""
    lab = module_labs(minions=("web1",), options={"max_waiting_requests": 2, "worker_silence": 60})
    lab.start_all()
    return lab


def test_a_full_master_says_so_at_once_and_is_asked_again_later(narrow: Lab) -> None:
    lab = narrow
    worker = lab.processes["mworker"]
    worker.send_signal(signal.SIGSTOP)
    jobs: list[Any] = []
    try:
        # One that the worker holds, two that wait.
        jobs += [lab.started("salt", "-t", "30", "--out", "json", "--static", "*", "test.ping") for _ in range(3)]
        until(lambda: lab.metric("reqserver", "salt_requests_queued") == 2, SOON, "two wait")
        # While the worker is stopped: it is the reqserver that says so.
        answer = lab.run("salt", "*", "test.ping")
        assert (answer.code, answer.out) == (1, "")
        assert "ERROR: the master is busy: too many requests wait already; try again in 5 s" in answer.err
        called = lab.started("salt-call", "-c", str(lab.root / "minions" / "web1"), "--out", "json", "pillar.items")
        until(lambda: lab.metric("reqserver", "salt_requests_refused_total") >= 2, SOON, "a minion is refused, too")
    finally:
        worker.send_signal(signal.SIGCONT)
    # The minion's own requests may have had one of the places.
    answers = [lab.finished(job) for job in jobs]
    assert all(
        one.data == {"web1": True} if one.code == 0 else one.err.startswith("ERROR: the master ") for one in answers
    ), answers
    assert [one for one in answers if one.code == 0]
    # The minion has waited, and was answered.
    assert lab.finished(called).code == 0


#: A pillar whose first compilation says who compiles it, and ends with its process.
ENDLESS = """\
#!py
import os, time

def run():
    try:
        os.rename({flag!r}, {flag!r} + "-taken")
    except OSError:
        return {{"compiled": True}}
    with open({flag!r} + "-by", "w") as file:
        file.write(str(os.getpid()) + "\\n")
    time.sleep(1000)
"""


def test_what_a_killed_worker_had_in_hand_is_handed_on_at_once(module_labs: NewLab) -> None:
    """Its kernel closes its connection: the reqserver does not wait until it was silent for a minute."""
    lab = module_labs(minions=("web1",), workers=2, options={"worker_silence": 60})
    flag = lab.root / "endless"
    (lab.tree / "pillar" / "endless.sls").write_text(ENDLESS.format(flag=str(flag)))
    top = lab.tree / "pillar" / "top.sls"
    top.write_text(top.read_text().replace("    - defaults\n", "    - defaults\n    - endless\n"))
    lab.start_all()
    flag.touch()
    by = Path(f"{flag}-by")
    called = lab.started("salt-call", "-c", str(lab.root / "minions" / "web1"), "--out", "json", "pillar.items")
    until(lambda: by.exists() and by.read_text().endswith("\n"), SOON, "a worker compiles the pillar")
    (victim,) = (name for name, process in lab.processes.items() if process.pid == int(by.read_text()))
    killed = time.monotonic()
    lab.kill(victim)
    answer = lab.finished(called)
    took = time.monotonic() - killed
    assert "compiled" in answer.data["local"]
    # On a busy machine salt-call needs seconds to end.
    assert took < 40, took
    assert "the connection of worker " in lab.log("reqserver")
    assert lab.metric("reqserver", "salt_workers") == 1
    lab.start(victim)
    until(lambda: lab.metric("reqserver", "salt_workers") == 2, SOON, "it is back")
    lab.pings()


def test_minions_outlive_their_master_being_full(narrow: Lab) -> None:
    narrow.pings()
    assert narrow.tracebacks() == []
    assert Path(f"/proc/{narrow.processes['web1'].pid}").exists()
