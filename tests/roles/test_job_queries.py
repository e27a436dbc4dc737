"""A job as an operator follows it with real roles: found while it runs, watched to its end, run again where it failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.roles.lab import SOON, Held, Lab, until

pytestmark = pytest.mark.roles


def test_a_job_is_found_while_it_runs_and_watched_to_its_end(lab: Lab) -> None:
    lab.salt("*", "saltutil.sync_modules")
    held = Held(lab)
    jid = held.publish()
    until(
        lambda: jid in lab.runner("jobs.list_jobs", "state=running", "minion=web1"), SOON, "the job counts as running"
    )
    watching = lab.started("salt-run", "-t", "60", "jobs.watch", jid)
    held.let_go()
    answer = lab.finished(watching)
    assert answer.code == 0, answer
    assert answer.out.startswith(f"{jid}: held.wait on * for ")
    assert answer.out.splitlines()[-1] == "2/2 returned"
    states = lab.runner("jobs.list_job", jid)["States"]
    assert {minion: told["State"] for minion, told in states.items()} == {"web1": "returned", "web2": "returned"}
    assert jid in lab.runner("jobs.list_jobs", "after=10m", "success=True", "function=held.*")


def test_a_job_is_run_again_for_those_that_failed(lab: Lab, tmp_path: Path) -> None:
    lab.run("salt", "*", "test.exception", "message=again")
    (jid,) = lab.runner("jobs.list_jobs", "function=test.exception", "limit=1")
    again = lab.ok("salt-run", "--out", "json", "jobs.rerun", jid, "--failed").data
    assert (again["repeats"], again["minions"]) == (jid, ["web1", "web2"])
    answer = lab.run("salt-run", "-t", "60", "jobs.watch", again["jid"])
    assert answer.code == 1, answer
    assert answer.out.splitlines()[-1] == "2/2 returned, 2 failed"
    refused = lab.run("salt-run", "jobs.rerun", jid, "--lost")
    assert (refused.code, refused.out) == (1, f"no minion of job {jid} is left for that: 2 returned\n")
    found = lab.runner("jobs.stats", "window=10m", "function=test.exception")["functions"]["test.exception"]
    assert (found["returns"], found["failures"]) == (2 * found["jobs"], found["returns"])
    place = tmp_path / "jobs.ndjson"
    lab.ok("salt-run", "jobs.export", f"file={place}", "function=test.exception", "limit=1", "--returns")
    lines = [json.loads(line) for line in place.read_text("utf-8").splitlines()]
    assert [line["jid"] for line in lines] == [again["jid"]] * 3
    assert [line.get("id") for line in lines] == [None, "web1", "web2"]
    assert "again" in lines[1]["return"]


@pytest.mark.parametrize(
    "words", [["lookup_jid"], ["list_job"], ["print_job"], ["exit_success"], ["watch"], ["rerun", "--all"]]
)
def test_an_unknown_job(lab: Lab, words: list[str]) -> None:
    fun, *more = words
    answer = lab.run("salt-run", f"jobs.{fun}", "20200101000000000000", *more)
    assert answer.code == 1, answer
    assert "no job with the JID 20200101000000000000 is in the job cache" in answer.out + answer.err
