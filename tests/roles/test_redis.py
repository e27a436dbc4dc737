"""Redis away: roles wait and say why, requests are answered with an error that names it, and all comes back by itself."""

from __future__ import annotations

import json
import signal
import time

import pytest

from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, Held, Lab, until

pytestmark = pytest.mark.roles

BOTH = ["web1", "web2"]

#: Roles that cannot work without Redis, and say so.
NEED_REDIS = ("mworker", "publisher", "maintenance")

#: Seconds within which an operator is told.
PATIENCE = 30.0


@pytest.fixture(scope="module")
def late(module_labs: NewLab) -> Lab:
    """A lab whose Redis has not been started yet."""
    made = module_labs()
    for name in (*made.roles, *made.minions):
        made.start(name)
    return made


def refused(lab: Lab, *words: str) -> None:
    """The command ends soon, with a non-zero exit code and one line that says what is wrong."""
    started = time.monotonic()
    answer = lab.run(*words)
    assert time.monotonic() - started < PATIENCE, answer
    assert answer.code != 0, answer
    said = answer.out + answer.err
    assert "Traceback" not in said, answer
    assert f"redis at redis://mworker:***@127.0.0.1:{lab.port['redis']}/0" in said, answer


def why_not_ready(lab: Lab, role: str) -> str:
    status, body = lab.probe(role)
    return body if status == 503 else ""


def test_without_redis_at_the_start_roles_wait_and_say_why(late: Lab) -> None:
    for role in NEED_REDIS:
        said = f"redis: redis at redis://{role}:***@127.0.0.1:{late.port['redis']}/0 does not answer"
        until(lambda role=role, said=said: said in why_not_ready(late, role), SOON, f"{role} says what it waits for")  # type: ignore[misc]
        assert late.probe(role, "/healthz")[0] == 200
    named = (
        f"workers: no worker can begin: redis at redis://mworker:***@127.0.0.1:{late.port['redis']}/0 does not answer"
    )
    until(lambda: why_not_ready(late, "reqserver").startswith(named), SOON, "reqserver says what its workers wait for")
    refused(late, "salt", "*", "test.ping")
    refused(late, "salt-key", "-L")
    assert late.dead() == {}


def test_they_recover_by_themselves_when_it_comes(late: Lab) -> None:
    late.start_redis()
    late.await_ready(*late.roles, *late.minions)
    late.pings()
    late.salt("*", "saltutil.sync_modules")
    assert late.tracebacks() == []


def test_redis_lost_later(late: Lab) -> None:
    """Requests are answered, nothing crashes, and the result of a job that ended meanwhile still arrives."""
    lab = late
    lab.await_ready(*lab.roles, *lab.minions)
    held = Held(lab)
    jid = held.publish()
    lab.kill("redis")
    refused(lab, "salt", "*", "test.ping")
    refused(lab, "salt-key", "-L")
    refused(lab, "salt-run", "jobs.list_jobs")
    for role in NEED_REDIS:
        named = f"redis at redis://{role}:***@127.0.0.1:{lab.port['redis']}/0 does not answer"
        assert named in why_not_ready(lab, role)
    held.let_go()
    until(lambda: not lab.jobbers(), SOON, "both minions have finished while Redis is away")
    for minion in BOTH:
        until(
            lambda minion=minion: "the master did not accept a return" in lab.log(minion),
            SOON,
            "it is not acknowledged",
        )  # type: ignore[misc]
    assert all(list((lab.cache(minion) / "spool").iterdir()) for minion in BOTH)

    lab.start_redis()
    until(lambda: sorted(lab.redis().hkeys(f"ret:{jid}")) == BOTH, SOON, "the results of the outage")
    lab.await_ready(*lab.roles)
    assert lab.runner("jobs.lookup_jid", jid) == dict.fromkeys(BOTH, True)
    # Said once, not for each request of each minion.
    assert lab.log("mworker").count("requests are not served until Redis answers") == 1
    assert lab.log("mworker").count("redis is back") == 1
    lab.pings()
    assert lab.tracebacks() == []


def test_a_command_that_waits_outlives_the_outage(late: Lab) -> None:
    """salt started before, Redis away and back in the middle: it shows both results."""
    lab = late
    lab.await_ready(*lab.roles, *lab.minions)
    held = Held(lab)
    waiting = lab.started("salt", "--out", "json", "--static", *held.words())
    held.await_started()
    lab.restart("redis")
    held.let_go()
    answer = lab.finished(waiting)
    assert (answer.code, answer.data) == (0, dict.fromkeys(BOTH, True)), answer
    lab.await_ready(*lab.roles)
    lab.pings()


def test_redis_that_hangs_is_redis_that_is_away(late: Lab) -> None:
    """A Redis that accepts and does not answer holds nobody for longer than its timeout."""
    lab = late
    lab.await_ready(*lab.roles, *lab.minions)
    server = lab.processes["redis"]
    server.send_signal(signal.SIGSTOP)
    try:
        refused(lab, "salt", "*", "test.ping")
        assert lab.probe("mworker")[0] == 503
        assert lab.probe("mworker", "/healthz")[0] == 200
    finally:
        server.send_signal(signal.SIGCONT)
    lab.await_ready(*lab.roles)
    lab.pings()
    assert lab.dead() == {}
    assert lab.tracebacks() == []


def test_a_job_that_no_worker_recorded_is_not_published(late: Lab) -> None:
    """Whoever writes to Redis has a job in the stream; publishers refuse it, say so, and go on."""
    lab = late
    lab.await_ready(*lab.roles, *lab.minions)
    store = lab.redis()
    forged = {
        "jid": "20260101000000000000",
        "fun": "event.fire_master",
        "arg": [{}, "forged"],
        "tgt": "*",
        "tgt_type": "glob",
    }
    store.xadd("salt:publications", {"load": json.dumps({**forged, "expected": BOTH, "user": "root"})})
    until(lambda: "no worker of this master signed it" in lab.log("publisher"), SOON, "the publisher refuses the entry")
    lab.pings()
    assert store.exists("ret:20260101000000000000") == 0
