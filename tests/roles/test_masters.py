"""A minion with two masters, each a lab of its own: connected to both, or to one after the other; one of them is killed."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, STARTUP, Lab, until

pytestmark = pytest.mark.roles

#: What of a master must be there for its minions.
ROLES = ("eventpublisher", "reqserver", "mworker", "publisher")


@pytest.fixture(scope="module")
def labs(module_labs: NewLab) -> Iterator[tuple[Lab, Lab]]:
    """Two masters that have the same key, as Salt asks for; the second has no minions of its own."""
    one = module_labs(minions=("hot", "over"))
    two = module_labs(minions=())
    shutil.rmtree(two.etc / "keys")
    shutil.copytree(one.etc / "keys", two.etc / "keys")
    for lab in (one, two):
        lab.start_redis()
        for role in ROLES:
            lab.start(role)
    for lab in (one, two):
        lab.await_ready(*ROLES)
    yield one, two
    assert one.tracebacks() == two.tracebacks() == []


def configure(labs: tuple[Lab, Lab], minion: str, **more: Any) -> None:
    """The minion's masters, by their ports."""
    file = labs[0].root / "minions" / minion / "minion"
    masters = [f"127.0.0.1:{lab.port['ret_port']}" for lab in labs]
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"master": masters, "auth_timeout": 1} | more))


def answers(lab: Lab, minion: str) -> bool:
    done = lab.run("salt", "-t", "2", "--out", "json", "--static", minion, "test.ping")
    return done.code == 0 and json.loads(done.out) == {minion: True}


def jobs(lab: Lab, fun: str) -> list[Any]:
    return list(lab.runner("jobs.list_jobs", f"search_function={fun}").values())


def test_it_serves_both_and_one_of_them_alone(labs: tuple[Lab, Lab], tmp_path: Path) -> None:
    one, two = labs
    mine = {"mine_functions": {"test.echo": ["mine"]}}
    beat = {"beat": {"function": "test.arg", "args": [1], "seconds": 3600}}
    configure(labs, "hot", **mine, schedule=beat)
    one.start("hot")
    one.await_ready("hot")
    for lab in labs:
        until(lambda lab=lab: answers(lab, "hot"), SOON, "the minion answers this master")
    # What it does by itself it does once, and tells each of them.
    for lab in labs:
        until(lambda lab=lab: jobs(lab, "test.arg"), SOON, "the job of the schedule is in the job cache")
        until(lambda lab=lab: lab.runner("mine.get", "hot", "test.echo") == {"hot": "mine"}, SOON, "the mine is told")
        assert len(jobs(lab, "test.arg")) == 1
    assert two.salt("hot", "schedule.list", "return_yaml=False")["hot"].keys() == {"beat"}
    one.kill("reqserver")
    one.kill("publisher")
    assert answers(two, "hot")
    assert one.call("hot", "test.ping").code == 0
    for role in ("reqserver", "publisher"):
        one.start(role)
    one.await_ready(*ROLES)
    until(lambda: answers(one, "hot"), STARTUP, "the first master is served again")
    one.kill("hot", 15)


def test_what_it_does_by_itself_goes_on_while_one_is_away(labs: tuple[Lab, Lab]) -> None:
    one, two = labs

    def away(lab: Lab, *roles: str) -> None:
        for role in roles:
            lab.kill(role)

    def back(lab: Lab, *roles: str) -> None:
        for role in roles:
            lab.start(role)
        lab.await_ready(*ROLES)

    away(two, "reqserver", "publisher")
    states = {"function": "state.single", "args": ["test.nop", "x"], "seconds": 1}
    beacons = {"memusage": [{"percent": "0%"}, {"interval": 1}]}
    configure(labs, "hot", schedule={"often": states}, beacons=beacons)
    one.start("hot")
    until(lambda: jobs(one, "state.single"), STARTUP, "the first master's process has the schedule")
    back(two, "reqserver", "publisher")
    until(lambda: answers(two, "hot"), STARTUP, "the second master has the minion, too")
    # What it hears of still comes; nothing that it asks is answered.
    away(one, "reqserver")
    until(
        lambda: "another process of the minion takes over" in one.log("hot"),
        SOON,
        "the process of the first gives them up",
    )
    # States that ran with the files of a master that is away would wait for it.
    known = len(jobs(two, "state.single"))
    until(
        lambda: len(jobs(two, "state.single")) > known + 3, STARTUP, "states are applied with the files of the second"
    )
    two.ok("salt-run", "state.event", "salt/beacon/hot/memusage/", "count=1")
    back(one, "reqserver")
    one.kill("hot", 15)


def test_it_goes_to_the_next_and_back(labs: tuple[Lab, Lab]) -> None:
    one, two = labs
    alive = {"master_alive_interval": 1, "master_failback": True, "master_failback_interval": 1}
    beacons = {"memusage": [{"percent": "0%"}, {"interval": 1}]}
    configure(labs, "over", master_type="failover", beacons=beacons, **alive)
    one.start("over")
    one.await_ready("over")
    assert answers(one, "over")
    assert "over" not in two.keys()["minions"]
    one.kill("reqserver")
    one.kill("publisher")
    until(lambda: "over" in two.keys()["minions"] and answers(two, "over"), STARTUP, "the second master has it")
    two.ok("salt-run", "state.event", "salt/beacon/over/memusage/", "count=1")
    for role in ("reqserver", "publisher"):
        one.start(role)
    until(lambda: answers(one, "over"), STARTUP, "it is back at the first")
    assert "leaving the master" in one.log("over")
    # Its processes stand still, and every connection stays.
    for role in ROLES:
        one.processes[role].send_signal(signal.SIGSTOP)
    until(lambda: "has not answered for" in one.log("over"), STARTUP, "it leaves a master that owes an answer")
    until(lambda: answers(two, "over"), STARTUP, "the second master has it")
    for role in ROLES:
        one.processes[role].send_signal(signal.SIGCONT)
    until(lambda: answers(one, "over"), STARTUP, "it is back at the first again")
    assert one.dead() == {}
