"""Promise 1, and that every job has an end: minions of ours that were away, deaf or killed, and jobs that wait for them."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from masterstore.lives import jid_ms
from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, Held, Lab, until

pytestmark = pytest.mark.roles


@pytest.fixture(scope="module")
def lab(module_labs: NewLab) -> Iterator[Lab]:
    made = module_labs()
    for minion in made.minions:
        path = made.root / "minions" / minion / "minion"
        path.write_text(path.read_text() + yaml.safe_dump({"replay_delay": 0.2, "process_count_max": 2}))
    made.start_all()
    made.salt("*", "saltutil.sync_modules")
    yield made
    assert made.tracebacks() == []


def publish(lab: Lab, *words: str) -> str:
    """The JID of a job that nobody waits for."""
    return lab.ok("salt", "--async", *words).out.split()[-1]


def result(lab: Lab, jid: str, minion: str = "web1") -> dict[str, Any] | None:
    stored = lab.redis().hget(f"ret:{jid}", minion)
    return json.loads(stored) if stored else None


def life(lab: Lab, jid: str, minion: str = "web1") -> str:
    """Letters of the steps of a job (masterstore/life.py)."""
    return "".join(filter(str.isalpha, lab.redis().hget(f"salt:job:{jid}:life", minion) or ""))


def processes(lab: Lab, minion: str = "web1") -> list[int]:
    """The minion's processes, the main one first."""
    main = lab.processes[minion].pid
    found = [main]
    for pid in found:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def kill_all(lab: Lab, minion: str = "web1") -> None:
    """As a supervisor does that kills the whole group."""
    everybody = processes(lab, minion)
    for pid in everybody:
        os.kill(pid, signal.SIGSTOP)
    lab.kill(minion)
    for pid in everybody[1:]:
        os.kill(pid, signal.SIGKILL)


def ran(lab: Lab, jid: str, fun: str, minion: str = "web1") -> int:
    """How often the minion began it, by its own words."""
    return lab.log(minion).count(f"runs {fun} [jid={jid}")


def test_a_minion_that_was_down_runs_what_it_missed(lab: Lab) -> None:
    until((lab.cache("web1") / "asked").exists, SOON, "it has asked before")
    lab.kill("web1")
    jids = [publish(lab, "web*", "test.echo", f"missed-{number}") for number in range(3)]
    lab.start("web1")
    for number, jid in enumerate(jids):
        ret = until(lambda jid=jid: result(lab, jid), SOON, "the job that it missed")  # type: ignore[misc]
        assert ret["return"] == f"missed-{number}"
        assert ran(lab, jid, "test.echo") == 1
    lab.await_ready("web1")
    lab.pings()


def test_a_minion_that_was_deaf_asks(lab: Lab) -> None:
    """The publisher forgets what it did not send: only the minion can know that it missed something."""
    before = lab.processes["web1"].pid
    lab.kill("publisher")
    jid = publish(lab, "web1", "test.echo", "unsent")
    newest = lab.redis().xrevrange("salt:publications", count=1)[0][0]
    for name in lab.redis().hkeys("salt:publisher:cursors"):
        lab.redis().hset("salt:publisher:cursors", name, newest)
    lab.start("publisher")
    until(lambda: result(lab, jid), SOON, "the job that was never sent")
    assert lab.processes["web1"].pid == before
    assert "running a missed job: test.echo" in lab.log("web1")
    lab.await_ready("publisher")
    lab.pings()


def test_a_job_that_runs_for_a_while_is_told_of(lab: Lab) -> None:
    held = Held(lab)
    jid = held.publish()
    until(lambda: life(lab, jid) == "s", SOON, "the minion says that it works on the job")
    held.let_go()
    until(lambda: life(lab, jid) == "sr", SOON, "its return")
    quick = publish(lab, "web1", "test.ping")
    until(lambda: life(lab, quick) == "r", SOON, "a short job returns and says no more")


@pytest.mark.parametrize("whom", ["the jobber", "the main process and the jobber", "all of them"])
def test_a_job_that_was_killed_has_an_end(lab: Lab, whom: str) -> None:
    held = Held(lab)
    jid = held.publish()
    proc = lab.cache("web1") / "proc" / jid
    (jobber,) = [pid for pid in processes(lab) if proc.exists() and os.getpgid(pid) == pid and pid != processes(lab)[0]]
    if whom == "all of them":
        kill_all(lab)
    elif whom == "the jobber":
        os.kill(jobber, signal.SIGKILL)
    else:
        lab.kill("web1")
        os.kill(jobber, signal.SIGKILL)
    if whom != "the jobber":
        lab.start("web1")
    ret = until(lambda: result(lab, jid), SOON, "an end of the killed job")
    held.let_go()
    assert ret["return"].startswith("JobKilled: "), ret
    assert (ret["retcode"], ret["success"], ret["fun"]) == (1, False, "held.wait")
    seen = "was killed by signal 9" if whom == "the jobber" else "the minion was killed while it ran this job"
    assert seen in ret["return"]
    lab.await_ready("web1")
    lab.pings()
    assert ran(lab, jid, "held.wait") == 1
    until(lambda: not list((lab.cache("web1") / "journal").iterdir()), SOON, "the journal is empty")
    assert lab.redis().hget(f"salt:job:{jid}", "duplicates") is None


def test_a_job_that_had_not_begun_runs_after_the_restart(lab: Lab) -> None:
    """Two places, and three jobs: the third waits in the minion when all of it is killed."""
    held = Held(lab)
    running = [held.publish(), held.publish()]
    waiting = publish(lab, "web1", "test.echo", "in line")
    journal = lab.cache("web1") / "journal"
    until((journal / f"{waiting}.received").exists, SOON, "the minion has the third job")
    until(lambda: "the job waits: process_count_max (2)" in lab.log("web1"), SOON, "it waits for a place")
    kill_all(lab)
    assert result(lab, waiting) is None
    lab.start("web1")
    assert until(lambda: result(lab, waiting), SOON, "the job that waited")["return"] == "in line"
    held.let_go()
    for jid in running:
        ended = until(lambda jid=jid: result(lab, jid), SOON, "the end of a killed job")  # type: ignore[misc]
        assert ended["return"].startswith("JobKilled")
        until(lambda jid=jid: result(lab, jid, "web2"), SOON, "web2 has done it")  # type: ignore[misc]
    lab.await_ready("web1")
    lab.pings()


def test_a_job_that_must_not_run_late_does_not(lab: Lab) -> None:
    lab.kill("web1")
    late = publish(lab, "--no-replay", "web*", "test.echo", "now or never")
    until(lambda: result(lab, late, "web2"), SOON, "web2 was there")
    # A publisher sends the jobs of the last seconds again to who comes back.
    until(lambda: time.time() * 1000 > jid_ms(late) + 12_500, SOON, "the publisher does not send it again")
    asked = publish(lab, "web1", "test.echo", "any time")
    lab.start("web1")
    until(lambda: result(lab, asked), SOON, "the minion has asked for what it missed")
    lab.await_ready("web1")
    lab.pings()
    assert (ran(lab, late, "test.echo"), ran(lab, asked, "test.echo")) == (0, 1)
