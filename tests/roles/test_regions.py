"""Two masters with one key, each a lab of its own: jobs for one region and for all, a minion that moves, a region that is down."""

from __future__ import annotations

import json
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, STARTUP, Answer, Lab, until

pytestmark = pytest.mark.roles

#: What of a master must be there for its minions.
ROLES = ("eventpublisher", "reqserver", "mworker", "publisher")

#: A module whose function counts its calls on the minion, and can be held.
COUNTED_MODULE = '''\
"""Counts its calls."""

import os
import time


def call(directory, go="", seconds=120):
    """Write a file for this call. Return the number of calls so far, as soon as the file ``go`` exists."""
    name = os.path.join(directory, __opts__["id"])
    with open(name, "a") as file:
        file.write("called\\n")
    deadline = time.monotonic() + seconds
    while go and not os.path.exists(go) and time.monotonic() < deadline:
        time.sleep(0.02)
    with open(name) as file:
        return len(file.readlines())
'''


@pytest.fixture(scope="module")
def labs(module_labs: NewLab) -> Iterator[tuple[Lab, Lab]]:
    """The regions eu and us. Each minion's list begins with its own region's master; its key is accepted in both."""
    eu, us = module_labs(minions=("eu1", "mover")), module_labs(minions=("us1",))
    # The key pair by which minions know the master is all that the masters share.
    for role in ("publisher", "mworker"):
        for name in ("master.pem", "master.pub"):
            shutil.copy(eu.etc / "keys" / role / name, us.etc / "keys" / role / name)
    options = yaml.safe_load((eu.etc / "master").read_text())
    (eu.etc / "master").write_text(yaml.safe_dump(options | {"regions": {"eu": ".", "us": str(us.etc)}}))
    for lab, other in ((eu, us), (us, eu)):
        (lab.tree / "salt" / "_modules" / "counted.py").write_text(COUNTED_MODULE)
        for minion in lab.minions:
            file = lab.root / "minions" / minion / "minion"
            alive = {"master_type": "failover", "master_alive_interval": 1, "auth_timeout": 1, "retry_dns": 0}
            back = {"master_failback": True, "master_failback_interval": 1}
            masters = [f"127.0.0.1:{one.port['ret_port']}" for one in (lab, other)]
            file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | alive | back | {"master": masters}))
        lab.start_redis()
        for role in (*ROLES, *lab.minions):
            lab.start(role)
    for lab in (eu, us):
        lab.await_ready(*ROLES, *lab.minions)
    share_keys(eu, us)
    eu.ok("salt", "--region", "all", "*", "saltutil.sync_modules")
    yield eu, us
    assert eu.tracebacks() == us.tracebacks() == []


def share_keys(eu: Lab, us: Lab) -> None:
    """The accepted keys of each region in the other one, as docs/operations/regions.md says."""
    for lab, other in ((eu, us), (us, eu)):
        directory = lab.root / "keys-of-region"
        lab.ok("salt-key", "-y", "--export", str(directory))
        other.ok("salt-key", "-y", "--import", str(directory))
    assert eu.keys()["minions"] == us.keys()["minions"] == ["eu1", "mover", "us1"]


def salt(lab: Lab, *words: str) -> Answer:
    return lab.run("salt", "--out=json", "--static", *words)


def down(lab: Lab) -> None:
    for role in ROLES:
        lab.kill(role)


def up(lab: Lab) -> None:
    for role in ROLES:
        lab.start(role)
    lab.await_ready(*ROLES)


def is_at(lab: Lab, minion: str) -> bool:
    done = lab.run("salt", "-c", str(lab.etc), "-t", "2", "--out=json", "--static", minion, "test.ping")
    return done.code == 0 and json.loads(done.out) == {minion: True}


def test_jobs_by_region_and_to_all(labs: tuple[Lab, Lab]) -> None:
    eu, _ = labs
    began = time.monotonic()
    done = salt(eu, "--region", "all", "*", "test.ping")
    took = time.monotonic() - began
    # Each minion is accepted in both regions and connected to one: the other one's silence is not waited for.
    assert (done.code, done.data, done.err) == (0, {"eu1": True, "mover": True, "us1": True}, "")
    assert took < 5, f"{took:.1f} s"
    for region, minion in (("eu", "eu1"), ("us", "us1")):
        done = salt(eu, "--region", region, minion, "test.ping")
        assert (done.code, done.data) == (0, {minion: True})
    # Both job caches have the one JID, each with the returns of its own minions.
    said = eu.ok("salt", "--region", "all", "--async", "*", "test.echo", "x").out
    found = re.fullmatch(r"Executed command with job ID: (\d{20})\n", said)
    assert found, said

    def returns(region: str) -> Any:
        return eu.runner("--region", region, "jobs.lookup_jid", found[1])

    until(lambda: returns("eu") == {"eu1": "x", "mover": "x"}, SOON, "eu has its returns")
    until(lambda: returns("us") == {"us1": "x"}, SOON, "us has its return")
    # A job cache does not hear of the returns in other regions.
    states = eu.runner("--region", "us", "jobs.list_job", found[1])["States"]
    assert states["us1"]["State"] == "returned"
    assert {states[minion]["State"] for minion in ("eu1", "mover")} <= {"expected", "offline"}
    assert eu.ok("salt", "--region", "all", "--preview-target", "--out=json", "*").data == ["eu1", "mover", "us1"]
    done = salt(eu, "--region", "all", "nobody*", "test.ping")
    assert done.code == 2
    done = eu.run("salt", "--region", "asia", "*", "test.ping")
    assert (done.code, done.err) == (64, "ERROR: region 'asia' is not in the option regions; regions are: eu, us\n")


def test_a_minion_moves_while_its_job_runs(labs: tuple[Lab, Lab], tmp_path: Path) -> None:
    eu, us = labs
    go = tmp_path / "go"
    running = eu.started(
        "salt",
        "--region",
        "us,eu",
        "-t",
        "60",
        "--out=json",
        "--static",
        "mover",
        "counted.call",
        str(tmp_path),
        str(go),
    )
    until(lambda: (tmp_path / "mover").exists(), SOON, "the job runs")
    down(eu)
    until(lambda: is_at(us, "mover"), STARTUP, "it has moved")
    go.touch()
    done = eu.finished(running)
    # us published the same JID: the minion did not run the job again, and returned it there.
    assert done.data == {"mover": 1}
    assert done.code in (0, 69), done
    one = salt(us, "mover", "counted.call", str(tmp_path))
    assert (one.code, one.data) == (0, {"mover": 2})
    # Its new master has its grains.
    until(lambda: salt(us, "-G", "id:mover", "test.ping").out.find("true") > 0, SOON, "us finds it by a grain")
    up(eu)
    until(lambda: is_at(eu, "mover"), STARTUP, "it is back in its own region")
    assert (tmp_path / "mover").read_text() == "called\n" * 2


def test_ctrl_c_leaves_the_job_running(labs: tuple[Lab, Lab], tmp_path: Path) -> None:
    eu, _ = labs
    go = tmp_path / "go"
    running = eu.started("salt", "--region", "all", "mover", "counted.call", str(tmp_path), str(go))
    until(lambda: (tmp_path / "mover").exists(), SOON, "the job runs")
    running.send_signal(signal.SIGINT)
    done = eu.finished(running, 20)
    assert done.code == 0, done
    assert done.err.startswith("\nExiting gracefully on Ctrl-c\n")
    (jid,) = set(re.findall(r"salt-run --region eu jobs.lookup_jid (\d{20})", done.err))
    go.touch()
    until(lambda: eu.runner("--region", "eu", "jobs.lookup_jid", jid) == {"mover": 1}, SOON, "the job has gone on")


def test_a_region_is_down(labs: tuple[Lab, Lab]) -> None:
    eu, us = labs
    down(us)
    until(lambda: is_at(eu, "us1"), STARTUP, "the minion of the region that is down has moved")
    done = salt(eu, "--region", "all", "*", "test.ping")
    assert done.data == {"eu1": True, "mover": True, "us1": True}
    assert done.code == 69
    (line,) = (line for line in done.err.splitlines() if line.startswith("ERROR"))
    assert line.startswith("ERROR: region us: no answer from the master at tcp://127.0.0.1:")
    up(us)
    until(lambda: is_at(us, "us1"), STARTUP, "it is back in its own region")
    done = salt(eu, "--region", "all", "*", "test.ping")
    assert (done.code, done.data) == (0, {"eu1": True, "mover": True, "us1": True})


def test_a_minion_that_is_away_everywhere_is_shown_once(labs: tuple[Lab, Lab]) -> None:
    eu, _ = labs
    eu.kill("eu1", 15)
    done = eu.run("salt", "--region", "all", "-t", "1", "*", "test.ping")
    assert done.code == 1
    assert done.out.count("eu1:\n") == 1
    assert "Minion did not return." in done.out
    assert {"mover:", "us1:"} <= set(done.out.splitlines())
    eu.start("eu1")
    eu.await_ready("eu1")
