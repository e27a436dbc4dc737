"""Several workers of one parent: what becomes of jobs when a worker or the parent ends, and what probes say."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, Held, Lab, until

pytestmark = pytest.mark.roles

WORKERS = 3

#: A pillar that takes long while a file is there; it leaves the process id of the worker that compiles it.
SLOW = """\
#!py
import os, time

def run():
    flag = {flag!r}
    try:
        os.rename(flag, flag + "-taken")
    except OSError:
        return {{"slow": False}}
    with open(flag + "-pid", "w") as file:
        file.write(str(os.getpid()))
    deadline = time.monotonic() + {seconds}
    while time.monotonic() < deadline:
        time.sleep(0.02)
    os.rename(flag + "-taken", flag + "-done")
    return {{"slow": True}}
"""


@pytest.fixture(scope="module")
def forked(module_labs: NewLab) -> Lab:
    """A master whose workers have one parent."""
    lab = module_labs(options={"worker_processes": WORKERS, "worker_max_requests": 200})
    write_slow_pillar(lab, 30)
    top = lab.tree / "pillar" / "top.sls"
    top.write_text(top.read_text().replace("    - defaults\n", "    - defaults\n    - slow\n"))
    lab.start_all()
    lab.salt("*", "saltutil.sync_all")
    return lab


def write_slow_pillar(lab: Lab, seconds: float) -> None:
    text = SLOW.format(flag=str(lab.root / "slow"), seconds=seconds)
    (lab.tree / "pillar" / "slow.sls").write_text(text)


def workers(lab: Lab) -> set[int]:
    """Return the process ids of the workers."""
    parent = lab.processes["mworker"].pid
    return {int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()}


@pytest.fixture
def whole(forked: Lab) -> Iterator[Lab]:
    """The lab with all its workers."""
    until(lambda: len(workers(forked)) == WORKERS and forked.probe("mworker", "/readyz")[0] == 200, SOON, "all workers")
    until(lambda: forked.metric("reqserver", "salt_workers") == WORKERS, SOON, "the reqserver knows them")
    yield forked
    forked.pings()
    assert forked.tracebacks() == []


def slow_request(lab: Lab) -> tuple[int, subprocess.Popen[str]]:
    """Let a worker begin a slow request of web1; return the worker's process id, and the command that waits for the answer."""
    for name in ("slow-taken", "slow-done", "slow-pid"):
        (lab.root / name).unlink(missing_ok=True)
    (lab.root / "slow").touch()
    asked = lab.started("salt", "-t", "60", "--out", "json", "--static", "web1", "pillar.items")
    until(lambda: (lab.root / "slow-pid").exists() and (lab.root / "slow-pid").read_text(), SOON, "the slow pillar")
    return int((lab.root / "slow-pid").read_text()), asked


def test_workers_share_one_parent_and_answer_all_requests(whole: Lab) -> None:
    whole.pings()
    run = whole.salt("*", "state.apply")
    assert all(result["result"] for states in run.values() for result in states.values())
    status, text = whole.probe("mworker", "/metrics")
    assert status == 200
    assert 'salt_worker_processes{state="running",process="mworker"} 3.0' in text
    for number in range(1, WORKERS + 1):
        assert f'process_resident_memory_bytes{{process="mworker-{number}"}}' in text
    assert whole.probe("mworker", "/healthz") == (200, "ok")


def test_the_request_of_a_killed_worker_is_answered_by_another_one(whole: Lab) -> None:
    lab = whole
    before, requeued = workers(lab), lab.metric("reqserver", "salt_requests_requeued_total")
    holder, asked = slow_request(lab)
    assert holder in before
    os.kill(holder, signal.SIGKILL)
    answer = lab.finished(asked)
    assert answer.data["web1"]["slow"] is False, answer
    until(lambda: lab.metric("reqserver", "salt_requests_requeued_total") == requeued + 1, SOON, "it is counted")
    until(lambda: len(workers(lab)) == WORKERS, SOON, "it is replaced")
    assert len(before & workers(lab)) == WORKERS - 1
    assert "ended: signal 9 (Killed); it starts again in 0.5 s" in lab.log("mworker")


def test_no_job_is_lost_when_workers_are_killed_while_minions_return(whole: Lab) -> None:
    lab = whole
    held = Held(lab)
    jid = held.publish()
    for pid in workers(lab):
        os.kill(pid, signal.SIGKILL)
    held.let_go()
    until(
        lambda: lab.ok("salt-run", "jobs.lookup_jid", jid, "--out=json").data == {"web1": True, "web2": True},
        SOON,
        "both",
    )


def test_sighup_replaces_all_workers_and_commands_go_on(whole: Lab) -> None:
    lab = whole
    before = workers(lab)
    (lab.etc / "master.d").mkdir(exist_ok=True)
    (lab.etc / "master.d" / "later.conf").write_text("worker_max_requests: 150\n")
    lab.processes["mworker"].send_signal(signal.SIGHUP)
    answers = 0
    while not lab.log("mworker").count("all processes are replaced"):
        lab.pings()
        answers += 1
    assert answers
    assert not before & workers(lab)


def test_sighup_with_an_unusable_configuration_changes_nothing(whole: Lab) -> None:
    lab = whole
    before = workers(lab)
    wrong = lab.etc / "master.d" / "wrong.conf"
    wrong.parent.mkdir(exist_ok=True)
    wrong.write_text("worker_silence: [soon]\n")
    try:
        lab.processes["mworker"].send_signal(signal.SIGHUP)
        until(lambda: "the workers keep their options" in lab.log("mworker"), SOON, "it is refused")
        assert workers(lab) == before
    finally:
        wrong.unlink()


def test_a_stopped_worker_makes_the_parent_unready_and_unhealthy(whole: Lab) -> None:
    lab = whole
    one = min(workers(lab))
    os.kill(one, signal.SIGSTOP)
    try:
        status, why = lab.probe("mworker", "/healthz")
        assert (status, why.partition(": ")[2]) == (503, "no answer within 2 s")
        assert lab.probe("mworker", "/readyz")[0] == 503
    finally:
        os.kill(one, signal.SIGCONT)


def test_workers_finish_their_requests_when_the_parent_is_asked_to_end(whole: Lab) -> None:
    lab = whole
    write_slow_pillar(lab, 3)
    _, asked = slow_request(lab)
    pids, parent = workers(lab), lab.processes.pop("mworker")
    parent.terminate()
    assert parent.wait(SOON) == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    lab.start("mworker")
    lab.await_ready("mworker")
    answer = lab.finished(asked)
    # The worker that had the request has finished it, and no other worker was asked.
    assert answer.data["web1"]["slow"] is not False, answer
    assert (lab.root / "slow-done").exists()


def test_workers_end_with_a_killed_parent_and_the_next_one_goes_on(whole: Lab) -> None:
    lab = whole
    held = Held(lab)
    jid = held.publish()
    pids, parent = workers(lab), lab.processes.pop("mworker")
    parent.kill()
    parent.wait()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), SOON, "the workers end")
    held.let_go()
    lab.start("mworker")
    lab.await_ready("mworker")
    until(
        lambda: lab.ok("salt-run", "jobs.lookup_jid", jid, "--out=json").data == {"web1": True, "web2": True},
        SOON,
        "both",
    )


def test_a_worn_worker_is_replaced_between_two_requests(module_labs: NewLab) -> None:
    lab = module_labs(minions=("web1",), options={"worker_processes": 2, "worker_max_requests": 6})
    lab.start_all()

    def lives() -> int:
        lab.pings()
        return lab.log("mworker").count("is replaced by a new process")

    until(lambda: lives() > 1, SOON, "two new lives")
    assert "starts again in" not in lab.log("mworker")
    lab.close()


def test_a_parent_whose_workers_cannot_start_says_why(module_labs: NewLab) -> None:
    lab = module_labs(minions=(), options={"worker_processes": 2, "worker_pool": "none"})
    answer = lab.run("saltern", "mworker", "-c", str(lab.etc))
    assert answer.code == 78
    assert "worker_pool: worker_pools has no pool 'none'" in answer.err
    assert answer.out == ""
    lab.close()
