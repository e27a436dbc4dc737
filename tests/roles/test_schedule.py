"""What minions do by themselves: jobs of the schedule, from configuration, pillar and operators, as the master sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis
import yaml

from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, Lab, until

pytestmark = pytest.mark.roles

EVERY_SECOND = {"function": "test.arg", "args": ["a=b", 1], "kwargs": {"c": 2}, "seconds": 1, "metadata": {"why": "x"}}


@pytest.fixture(scope="module")
def lab(module_labs: NewLab) -> Iterator[Lab]:
    """web1 has a schedule in its configuration, web2 one in its pillar."""
    made = module_labs()
    options = made.root / "minions" / "web1" / "minion"
    jobs = {
        "configured": EVERY_SECOND,
        "silent": {"function": "test.ping", "seconds": 1, "return_job": False},
        "later": {"function": "test.ping", "cron": "0 0 1 1 *"},
    }
    options.write_text(options.read_text() + yaml.safe_dump({"schedule": jobs}))
    pillar = made.tree / "pillar" / "web2.sls"
    pillar.write_text(pillar.read_text() + yaml.safe_dump({"schedule": {"from_pillar": EVERY_SECOND}}))
    made.start_all()
    yield made
    assert made.tracebacks() == []


def jobs_of(lab: Lab, fun: str) -> dict[str, Any]:
    """Jobs in the master's cache by JID."""
    found: dict[str, Any] = lab.runner("jobs.list_jobs", f"search_function={fun}")
    return found


@pytest.mark.parametrize(("minion", "job"), [("web1", "configured"), ("web2", "from_pillar")])
def test_a_scheduled_job_is_in_the_masters_job_cache(lab: Lab, minion: str, job: str) -> None:
    def found() -> dict[str, Any] | None:
        for jid, told in jobs_of(lab, "test.arg").items():
            if told["Target"] == minion:
                whole: dict[str, Any] = lab.runner("jobs.list_job", jid)
                return whole
        return None

    told = until(found, SOON, "the job's return")
    assert told["Function"] == "test.arg"
    assert told["Result"][minion]["return"] == {"args": ["a=b", 1], "kwargs": {"c": 2}}
    raw = redis.Redis(port=lab.port["redis"])
    maps = [raw.hgetall(key) for key in raw.scan_iter("*", _type="hash")]
    assert any(job in str(one) and "schedule" in str(one) and "_TOS" in str(one) for one in maps)


def test_a_job_that_returns_nothing_runs_all_the_same(lab: Lab) -> None:
    until(lambda: "_last_run" in lab.salt("web1", "schedule.job_status", "silent")["web1"], SOON, "it ran")
    assert jobs_of(lab, "test.ping") == {}


def test_operators_add_jobs_that_outlive_the_minion(lab: Lab) -> None:
    place = lab.host("web2") / "tmp"
    place.mkdir(exist_ok=True)
    words = ("schedule.add", "touching", "function=file.touch", "job_args=['/tmp/touched']", "seconds=1")
    assert lab.salt("web2", *words)["web2"]["result"] is True
    until((place / "touched").exists, SOON, "the job has run")
    listed = yaml.safe_load(lab.salt("web2", "schedule.list")["web2"])["schedule"]
    assert (listed["touching"]["saved"], listed["from_pillar"]["saved"]) == (True, False)

    (place / "touched").unlink()
    lab.restart("web2")
    lab.await_ready("web2")
    until((place / "touched").exists, SOON, "the job has run again")

    beside = lab.call("web2", "schedule.delete", "touching", "--out", "json")
    assert beside.data["local"]["changes"] == {"touching": "removed"}
    assert "touching" not in yaml.safe_load(lab.salt("web2", "schedule.list")["web2"])["schedule"]


def test_a_state_manages_the_schedule_of_the_minion_that_runs_it(lab: Lab) -> None:
    job = [{"function": "test.ping"}, {"cron": "0 3 * * *"}]
    (lab.tree / "salt" / "nightly.sls").write_text(yaml.safe_dump({"nightly": {"schedule.present": job}}))
    for test, result, changed in (("True", None, True), ("False", True, True), ("False", True, False)):
        (entry,) = lab.salt("web1", "state.apply", "nightly", f"test={test}")["web1"].values()
        assert (entry["result"], bool(entry["changes"])) == (result, changed), entry
    fires = lab.salt("web1", "schedule.show_next_fire_time", "nightly")["web1"]["next_fire_time"]
    assert fires.endswith("T03:00:00")


def test_a_job_is_run_at_once_and_not_twice_at_a_time(lab: Lab) -> None:
    words = ("schedule.add", "long", "function=test.sleep", "job_args=[30]", "cron=0 0 1 1 *")
    assert lab.salt("web1", *words)["web1"]["result"] is True
    running = lambda: lab.salt("web1", "saltutil.is_running", "test.sleep")["web1"]  # noqa: E731
    for _ in range(2):
        lab.salt("web1", "schedule.run_job", "long")
    (job,) = until(running, SOON, "the job runs")
    assert job["schedule"] == "long"
    until(
        lambda: lab.salt("web1", "schedule.job_status", "long")["web1"].get("_skip_reason") == "maxrunning",
        SOON,
        "the second one is skipped",
    )
    assert len(running()) == 1
    lab.salt("web1", "saltutil.kill_job", job["jid"])
    until(lambda: not running(), SOON, "the job is gone")
