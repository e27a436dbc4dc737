"""Promises 2 and 3: whatever is killed on the way, the result arrives; rolling every role loses no job."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import zmq

from saltern.kit.links.control import ControlClient
from saltern.kit.links.sockets import LinkKeys
from tests.roles.conftest import NewLab
from tests.roles.lab import COMMAND, ROLES, SOON, Answer, Held, Lab, until

pytestmark = pytest.mark.roles

BOTH = ["web1", "web2"]


@pytest.fixture(scope="module")
def breakable(module_labs: NewLab) -> Lab:
    """A lab of this module's own with two workers; what a test breaks there must come back by itself."""
    made = module_labs(workers=2)
    made.start_all()
    made.salt("*", "saltutil.sync_modules")
    return made


@pytest.fixture
def held(breakable: Lab) -> Iterator[Held]:
    """A held job; afterwards everybody is well again, and nothing has crashed on its own."""
    made = Held(breakable)
    yield made
    made.let_go()
    breakable.await_ready(*breakable.roles, *breakable.minions)
    breakable.pings()
    assert breakable.tracebacks() == []


def ended_well(lab: Lab, answer: Answer) -> None:
    """Both results came to the one who waits, and are in the job cache."""
    assert answer.code == 0, answer
    assert sorted(answer.data) == BOTH, answer
    for run in answer.data.values():
        (result,) = run.values()
        assert result["result"] is True, answer
    (jid,) = [jid for jid, job in lab.runner("jobs.list_jobs", "search_function=state.apply", "limit=1").items()]
    assert sorted(lab.redis().hkeys(f"ret:{jid}")) == BOTH


@pytest.mark.parametrize("role", [*ROLES, "redis"])
def test_a_role_is_killed_in_the_middle_of_a_job(breakable: Lab, held: Held, role: str) -> None:
    """The minions finish while it is down."""
    lab = breakable
    waiting = lab.started("salt", "--out", "json", "--static", *held.state_words())
    held.await_started()
    victims = [name for name in lab.roles if name.startswith(role)] or [role]
    for victim in victims:
        assert lab.kill(victim) == -signal.SIGKILL
    held.let_go()
    until(lambda: not lab.jobbers(), SOON, "both minions have finished while it is down")
    for victim in victims:
        lab.start_redis() if victim == "redis" else lab.start(victim)
    ended_well(lab, lab.finished(waiting))


def test_a_job_published_while_the_publisher_is_down_is_delivered_once(breakable: Lab) -> None:
    lab = breakable
    lab.kill("publisher")
    jid = lab.ok("salt", "--async", "*", "test.echo", "late").out.split()[-1]
    lab.start("publisher")
    until(lambda: lab.redis().hlen(f"ret:{jid}") == len(BOTH), SOON, "both results of a job that waited")
    # Sent again for whoever comes back, and run once all the same.
    for minion in BOTH:
        assert lab.log(minion).count(f"runs test.echo [jid={jid}") == 1
    lab.await_ready("publisher")
    lab.pings()


def test_the_minion_is_killed_between_its_result_and_the_masters_word(breakable: Lab, held: Held) -> None:
    """The result is in the spool before it is sent, and goes out when the minion starts again."""
    lab = breakable
    jid = held.publish()
    main = lab.processes["web1"]
    main.send_signal(signal.SIGSTOP)
    held.let_go()
    spool = lab.cache("web1") / "spool"
    until(lambda: list(spool.glob(f"*-{jid}.ret")), SOON, "the result in the spool")
    lab.kill("web1")
    assert lab.redis().hkeys(f"ret:{jid}") in ([], ["web2"])
    lab.start("web1")
    until(lambda: sorted(lab.redis().hkeys(f"ret:{jid}")) == BOTH, SOON, "the spooled result at the master")
    until(lambda: not list(spool.iterdir()), SOON, "the spool is empty")
    assert lab.runner("jobs.lookup_jid", jid) == dict.fromkeys(BOTH, True)


def test_the_minion_is_killed_while_its_job_runs(breakable: Lab, held: Held) -> None:
    """The jobber goes on, and the next main process finds what it left."""
    lab = breakable
    jid = held.publish()
    lab.kill("web1")
    lab.start("web1")
    lab.await_ready("web1")
    held.let_go()
    until(lambda: sorted(lab.redis().hkeys(f"ret:{jid}")) == BOTH, SOON, "the result of a jobber without its minion")


def test_a_job_that_is_delivered_again_to_a_restarted_minion_does_not_run_again(breakable: Lab) -> None:
    """A publisher that came back a moment ago sends its jobs again to whoever comes back: here a minion that had them."""
    lab = breakable
    lab.restart("publisher")
    lab.await_ready("publisher")
    jid = lab.ok("salt", "--async", "*", "test.echo", "once").out.split()[-1]
    until(lambda: lab.redis().hlen(f"ret:{jid}") == len(BOTH), SOON, "both results")
    # A minion that is killed before it heard the master's word sends its result again, and rightly so.
    until(lambda: not list((lab.cache("web1") / "spool").iterdir()), SOON, "the master's word on web1's result")
    lab.restart("web1")
    lab.await_ready("web1")
    lab.pings()
    assert lab.log("web1").count(f"runs test.echo [jid={jid}") == 1
    assert lab.redis().hget(f"salt:job:{jid}", "duplicates") is None


def test_the_preloaded_process_is_killed_while_its_job_runs(breakable: Lab, held: Held) -> None:
    lab = breakable
    jid = held.publish()
    (zygote,) = children(lab.processes["web1"].pid)
    os.kill(zygote, signal.SIGKILL)
    until(lambda: children(lab.processes["web1"].pid) not in ([], [zygote]), SOON, "a new zygote")
    held.let_go()
    until(lambda: sorted(lab.redis().hkeys(f"ret:{jid}")) == BOTH, SOON, "the result of its jobber")
    lab.pings()


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_worker_is_killed_while_it_holds_a_request(breakable: Lab) -> None:
    """Two workers stand still, each with a request; one is killed, and the other one does its work, too."""
    lab = breakable
    workers = ("mworker", "mworker2")
    until(lambda: lab.metric("reqserver", "salt_workers") == 2, SOON, "both workers are connected")
    until(lambda: lab.metric("reqserver", "salt_workers_busy") == 0, SOON, "both workers are idle")
    requeued = lab.metric("reqserver", "salt_requests_requeued_total")
    for worker in workers:
        lab.processes[worker].send_signal(signal.SIGSTOP)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(publish, lab) for _ in workers]
        until(lambda: lab.metric("reqserver", "salt_workers_busy") == 2, SOON, "each worker holds a request")
        lab.kill("mworker")
        lab.processes["mworker2"].send_signal(signal.SIGCONT)
        jobs = [job.result(SOON) for job in asked]
    assert [job["minions"] for job in jobs] == [BOTH, BOTH]
    assert jobs[0]["jid"] != jobs[1]["jid"]
    for job in jobs:
        until(lambda jid=job["jid"]: lab.redis().hlen(f"ret:{jid}") == len(BOTH), SOON, "the results")  # type: ignore[misc]
    # The client repeats its request, so that the other worker may have answered it before the dead worker is missed.
    until(lambda: lab.metric("reqserver", "salt_requests_requeued_total") > requeued, SOON, "the request is handed on")
    # Nobody published twice.
    assert (
        sum(
            fields["load"].count(jobs[0]["jid"]) > 0
            for _, fields in lab.redis().xrevrange("salt:publications", count=20)
        )
        == 1
    )
    lab.start("mworker")
    lab.await_ready("mworker")
    lab.pings()


def publish(lab: Lab) -> dict[str, Any]:
    """test.ping through 4507, from this process."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    client = ControlClient(context, lab.master_options, LinkKeys.load(lab.etc / "keys" / "cli"))
    try:
        job: dict[str, Any] = client.call(
            "publish", timeout=SOON, tgt="*", tgt_type="glob", fun="test.ping", arg=[], request_id=os.urandom(16).hex()
        )
        return job
    finally:
        client.close()
        context.term()


def test_every_role_is_rolled_while_jobs_go_on(breakable: Lab) -> None:
    """SIGTERM and a new process, one after the other; no job is lost and no minion is restarted."""
    lab = breakable
    answers: list[Answer] = []
    rolled = threading.Event()

    def ping() -> None:
        while not rolled.is_set():
            # A busy machine is slow to start a role, and to answer.
            answers.append(lab.run("salt", "-t", "20", "--out", "json", "--static", "*", "test.ping"))

    minions = [lab.processes[minion].pid for minion in lab.minions]
    with ThreadPoolExecutor(1) as pool:
        pinging = pool.submit(ping)
        try:
            for role in lab.roles:
                before = len(answers)
                assert lab.kill(role, signal.SIGTERM) == 0
                lab.start(role)
                lab.await_ready(role)
                # A `salt` whose event bus went away in the middle asks the job cache when its own time is over.
                until(lambda before=before: len(answers) > before, COMMAND, f"a job after {role} was rolled")  # type: ignore[misc]
        finally:
            rolled.set()
        pinging.result(60)
    assert len(answers) > len(lab.roles)
    for answer in answers:
        assert (answer.code, answer.data) == (0, dict.fromkeys(BOTH, True)), answer
    assert [lab.processes[minion].pid for minion in lab.minions] == minions
    assert lab.dead() == {}
    assert lab.tracebacks() == []


def test_a_killed_runner_ends_for_those_who_wait(breakable: Lab) -> None:
    lab = breakable
    waiting = lab.started("salt-run", "test.sleep", "60")
    (jid,) = until(lambda: lab.redis().zrange("salt:runners", 0, -1), SOON, "the runner works")
    where = until(lambda: lab.redis().hget(f"salt:job:{jid}", "where"), SOON, "the runner gives a sign of life")
    os.kill(int(where.split()[1]), signal.SIGKILL)
    answer = lab.finished(waiting)
    assert answer.code == 1, answer
    for part in ("The runner test.sleep has no result", "was killed by signal 9 (Killed)", where, "jobs.active"):
        assert part in answer.out, answer
    found = lab.runner("jobs.list_job", jid)
    assert found["Result"]["master_master"]["success"] is False
    assert lab.redis().zrange("salt:runners", 0, -1) == []
