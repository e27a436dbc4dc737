"""Finding 38.8: each command of port 4507, sent by each principal, answers what ``rights_matrix.yaml`` says."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from saltern.kit.links.control import ControlError
from saltern.mworker.commands import CONTROL_COMMANDS, ControlPolicy
from saltern.mworker.runners import job_queries
from saltern.mworker.runners.runner import RunnerFault, RunnerTools
from tests.case_files import read
from tests.security.api_before_worker import external_auth
from tests.services.mworker.conftest import Worker

NewWorker = Callable[..., Worker]

pytestmark = pytest.mark.redis

MATRIX: Any = read(Path(__file__).with_name("rights_matrix.yaml"))

WEB = ("web1", "web2", "web3")
DB = tuple(f"db{number}" for number in range(1, 8))
ALL = (*WEB, *DB)

#: Job -> function, arguments, minions; each but ``own`` is of root, who uses the key `cli`.
JOBS: Mapping[str, tuple[str, list[Any], tuple[str, ...]]] = {
    "wide": ("state.apply", ["secret-sls"], ALL),
    "narrow": ("test.ping", [], ("web1", "web2")),
    "other": ("test.ping", [], ("db1",)),
    "own": ("test.ping", [], ("web1",)),
}


@dataclass
class Day:
    """A master with jobs, and a principal that sends requests."""

    master: Worker
    principal: str
    #: How requests are sent: (command, fields) -> answer.
    send: Callable[..., Any]
    jids: dict[str, str] = field(default_factory=dict)
    #: The field ``on_behalf`` of runners that the principal starts.
    behalf: dict[str, Any] = field(default_factory=dict)


def _job(master: Worker, name: str, publish: Callable[..., Any]) -> str:
    fun, arg, minions = JOBS[name]
    jid = str(publish("publish", fun=fun, arg=arg, tgt=list(minions), tgt_type="list")["jid"])
    for minion in minions:
        bad = name == "wide" and minion == "db7"
        value: Any = False if bad else {"secret": minion}
        ret = {"id": minion, "jid": jid, "fun": fun, "return": value, "retcode": int(bad), "success": not bad}
        master.store.jobs.record_return(ret, ttl=3600, now_ms=int(time.time() * 1000))
    return jid


def a_day(new_worker: NewWorker, tmp_path: Path, principal: str, *, by_token: bool) -> Day:
    """Return a master as a principal sees it: an operator's key, or with ``by_token`` a user of external_auth."""
    rows, options = MATRIX["principals"][principal], {"eauth_failures_per_minute": 0}
    # The own job is published while the principal may still publish it.
    if by_token:
        before = new_worker(external_auth=external_auth(tmp_path, {principal: ["test.ping"]}), **options)
        master = new_worker(external_auth=external_auth(tmp_path, {principal: rows}), **options)
        signed = master.control("login", "api", username=principal, password=f"pw-{principal}", eauth="file")
        more: dict[str, Any] = {"token": signed["token"]}
        client, behalf = "api", {"way": "user", "name": principal, "eauth": "file", "groups": []}
    else:
        before = new_worker(publisher_acl={principal: ["test.ping"]}, **options)
        master, more = new_worker(publisher_acl={principal: rows}, **options), {}
        client, behalf = principal, {"way": "key", "name": principal, "eauth": "", "groups": []}
    master.accept(*ALL)
    day = Day(master, principal, lambda cmd, **fields: master.control(cmd, client, **fields, **more), behalf=behalf)
    for name in JOBS:
        if name == "own":
            day.jids[name] = _job(master, name, lambda cmd, **fields: before.control(cmd, client, **fields, **more))
        else:
            day.jids[name] = _job(master, name, lambda cmd, **fields: master.control(cmd, "cli", user="root", **fields))
    started = master.control("runner", "cli", fun="state.orchestrate", arg=["secret-orch"], user="root")
    day.jids["orch"] = started["jid"]
    ret = {"id": "master_master", "jid": started["jid"], "return": "secret", "success": True, "retcode": 0}
    master.store.jobs.record_return(ret, ttl=3600, now_ms=int(time.time() * 1000))
    return day


# ------------------------------------------------------------------------------------------- requests, and what they say


def _names(answer: Any) -> list[str]:
    return [each["id"] if isinstance(each, dict) else str(each) for each in answer]


def _count(found: Any) -> Any:
    return len(found) or "-"


def _looked(day: Day, cmd: str, words: list[str]) -> Any:
    if cmd in ("targets", "fleet"):
        return _count(_names(day.send(cmd, tgt="*")["minions"]))
    if cmd == "known":
        return _count(day.send(cmd, minions=list(ALL)))
    if cmd == "find_jobs":
        filters: dict[str, Any] = dict(word.split("=") for word in words)
        if "success" in filters:
            filters["success"] = filters["success"] == "True"
        jobs = day.send(cmd, filters=filters)["jobs"]
        shown = [job for job in jobs if job["load"]["tgt"]]
        hidden = [job for job in jobs if job not in shown]
        assert "secret-sls" not in str(hidden)
        assert all(
            set(job["meta"]) <= {"created", "ended", "user", "fun", "expected"} or "tgt" not in job["meta"]
            for job in hidden
        )
        return f"{len(jobs)} of which {len(shown)} with arguments"
    jid = day.jids[words[0]]
    minions = list(JOBS[words[0]][2]) if words[0] in JOBS else ["master_master"]
    if cmd == "job_returns":
        found = day.send(cmd, jid=jid)
        assert set(found) == set(day.send(cmd, jid=jid, minions=minions))
        return _count(found)
    if cmd == "failed_of":
        return _count(day.send(cmd, jid=jid, minions=minions))
    if cmd == "job_matrix":
        return _count(day.send(cmd, jid=jid)["rows"])
    if cmd == "job_status":
        found = day.send(cmd, jid=jid)
        assert found["counts"]["expected"] == len(found["minions"])
        return _count(found["minions"])
    assert cmd == "job_call"
    found = day.send(cmd, jid=jid)
    assert ("secret" in str(found)) is bool(found["arg"])
    return "args" if found["tgt"] else "no args"


def _published(day: Day, words: list[str]) -> Any:
    if words[0] == "find_job":
        asked = {"fun": "saltutil.find_job", "arg": [day.jids[words[1]]], "tgt": ["web1"], "tgt_type": "list"}
    else:
        asked = {"fun": words[0], "arg": [], "tgt": words[1]}
    return _count(day.send("publish", **asked)["minions"])


def _run(day: Day, words: list[str]) -> str:
    arg = [day.jids[words[1]]] if len(words) > 1 else []
    day.send("runner", fun=words[0], arg=arg)
    assert len(day.master.runners) == 1
    return "ok"


def _rerun(day: Day, words: list[str]) -> Any:
    """Start the runner; carry it out as its process does, with the key of the role mworker."""
    day.send("runner", fun="jobs.rerun", arg=[day.jids[words[0]]], kwarg={"all": True})

    def call(cmd: str, **fields: Any) -> Any:
        return _checked(day.master.control(cmd, "mworker", on_behalf=day.behalf, **fields))

    tools = SimpleNamespace(
        store=day.master.store,
        options=day.master.context.options,
        user=day.principal,
        control=SimpleNamespace(call=call),
    )
    return _count(job_queries.rerun(cast(RunnerTools, tools), day.jids[words[0]], all=True)["minions"])


def _checked(answer: Any) -> Any:
    if isinstance(answer, tuple):
        raise ControlError(*answer)
    return answer


def outcome(day: Day, request: str) -> Any:
    """Send a request of the matrix and return its outcome in the matrix' words."""
    cmd, *words = request.split()
    raw = day.send
    day.send = lambda cmd, **fields: _checked(raw(cmd, **fields))
    try:
        if cmd == "publish":
            return _published(day, words)
        if cmd == "runner":
            return _run(day, words)
        if cmd == "rerun":
            return _rerun(day, words)
        if cmd == "wheel":
            day.send("wheel", fun=words[0], kwarg={"match": "nobody"} if words[0] == "key.accept" else {})
            return "ok"
        if cmd in ("ping", "topology"):
            return "ok" if day.send(cmd) else "-"
        if cmd == "kept_events":
            day.send(cmd, after=0)
            return "ok"
        return _looked(day, cmd, words)
    except (ControlError, RunnerFault) as error:
        if isinstance(error, ControlError) and error.name not in ("AuthorizationError", "UnknownJob"):
            raise
        return "-"
    finally:
        day.send = raw


def _wrong(day: Day, requests: list[str]) -> dict[str, str]:
    """Return the requests whose outcome is not the matrix', each with what it is."""
    wrong = {}
    for request in requests:
        row = MATRIX["requests"][request]
        day.master.runners.clear()
        wanted, found = row.get(day.principal, row["else"]), outcome(day, request)
        if found != wanted:
            wrong[request] = f"{found}, not {wanted}"
    return wrong


#: Command -> its requests in the matrix.
BY_COMMAND: dict[str, list[str]] = {}
for each in MATRIX["requests"]:
    BY_COMMAND.setdefault(each.split()[0], []).append(each)


@pytest.mark.parametrize("principal", MATRIX["principals"])
@pytest.mark.parametrize("cmd", [name for name in BY_COMMAND if name != "ping"])
def test_each_command_does_what_the_matrix_says(
    new_worker: NewWorker, tmp_path: Path, cmd: str, principal: str
) -> None:
    assert _wrong(a_day(new_worker, tmp_path, principal, by_token=False), BY_COMMAND[cmd]) == {}


@pytest.mark.parametrize("principal", MATRIX["principals"])
def test_a_user_with_a_token_has_the_same_row(new_worker: NewWorker, tmp_path: Path, principal: str) -> None:
    assert _wrong(a_day(new_worker, tmp_path, principal, by_token=True), list(MATRIX["requests"])) == {}


@pytest.mark.ordinary
def test_each_command_is_in_the_matrix() -> None:
    free = {name for name, row in CONTROL_COMMANDS.items() if row.policy is ControlPolicy.REQSERVER}
    # Sign-in and webhooks have tests of their own.
    free |= {"login", "logout", "token_info", "hook"}
    assert {request.split()[0] for request in MATRIX["requests"]} - {"rerun"} == CONTROL_COMMANDS.keys() - free


@pytest.mark.ordinary
def test_each_row_names_its_principals() -> None:
    for request, row in MATRIX["requests"].items():
        assert set(row) - {"else"} <= set(MATRIX["principals"]), request
