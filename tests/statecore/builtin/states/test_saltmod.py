"""States of orchestrations before a master that answers as it is told: what they ask, what they make of it, as Salt does."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from statecore.builtin.states.saltmod.results import succeeded
from statecore.model.errors import CommandError
from statecore.model.ports import MasterCall, MinionJob
from tests import case_files

_HERE = Path(__file__).parent
CASES: list[dict[str, Any]] = case_files.read(_HERE / "saltmod.yaml")
BY_ID = {case["id"]: case for case in CASES}


class Scripted:
    """A master that answers what a case says."""

    jid = "20260101000000000000"

    def __init__(self, case: Mapping[str, Any]) -> None:
        self._case = case
        self.jobs: list[MinionJob] = []
        self.calls: list[MasterCall] = []
        self.heard: list[tuple[str, Mapping[str, Any]]] = list(map(tuple, case.get("events") or ()))

    def ask(self, job: MinionJob, told: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        self.jobs.append(job)
        answers = self._case["answers"]
        if isinstance(answers, str):
            raise CommandError(answers)
        return copy.deepcopy(answers)

    def publish(self, job: MinionJob) -> dict[str, Any]:
        raise NotImplementedError("the states wait for their jobs")

    def run(self, calls: Sequence[MasterCall]) -> list[dict[str, Any]]:
        self.calls += calls
        return copy.deepcopy(self._case["made"])

    def wheel(self, call: MasterCall) -> dict[str, Any]:
        return self.run([call])[0]

    def events(self, prefix: str, seconds: float) -> Iterator[tuple[str, Mapping[str, Any]]]:
        return (event for event in self.heard if event[0].startswith(prefix))


Told = Callable[..., tuple[dict[str, Any], Scripted]]


@pytest.fixture
def told(plain: Any) -> Told:
    """What our state makes of a case, and what it asked."""

    def tell(case: Mapping[str, Any]) -> tuple[dict[str, Any], Scripted]:
        master = Scripted(case)
        ctx = plain.context(master=master, test=case.get("test", False))
        # Not by plain.state, which has an argument ``test`` of its own.
        entry = ctx.states[f"salt.{case['fun']}"](name=case.get("name", case["id"]), **case["arguments"])
        return entry, master

    return tell


@pytest.fixture(scope="module")
def salts(oracle: Any) -> dict[str, Any]:
    said = oracle.run("python", str(_HERE / "salt_saltmod.py"), stdin=json.dumps(CASES), timeout=60)
    return dict(zip(BY_ID, json.loads(said), strict=True))


@pytest.mark.oracle
@pytest.mark.parametrize("name", BY_ID)
def test_as_salt(name: str, told: Told, salts: dict[str, Any]) -> None:
    case = BY_ID[name]
    entry, master = told(case)
    own = {"returned": entry, "asked": [_as_salt_asks(job) for job in master.jobs]}
    jobs = [_without_what_is_not_ours(asked) for asked in salts[name]["asked"] if "tgt" in asked]
    theirs = {"returned": salts[name]["returned"], "asked": jobs}
    if "differs" in case:
        assert own != theirs, "no difference any more"
    else:
        assert own == theirs


@pytest.mark.oracle
@pytest.mark.parametrize("name", [case["id"] for case in CASES if "made" in case and not case.get("test")])
def test_runners_and_wheels_are_called_as_salt_calls_them(name: str, told: Told, salts: dict[str, Any]) -> None:
    _, master = told(BY_ID[name])
    theirs = []
    for asked in salts[name]["asked"]:
        given = {key: value for key, value in asked.items() if key not in ("name", "full_return")}
        kwarg = {**given.pop("kwarg", {}), **{key: value for key, value in given.items() if key != "arg"}}
        theirs.append((asked["name"], list(given.get("arg", [])), kwarg))
    # What Salt's saltutil.runner adds to an orchestration.
    added = {"saltenv", "orchestration_jid"}
    ours = [
        (call.fun, list(call.arg), {k: v for k, v in call.kwarg.items() if k not in added}) for call in master.calls
    ]
    assert ours == theirs


def _as_salt_asks(job: MinionJob) -> dict[str, Any]:
    asked = {
        "tgt": job.tgt,
        "fun": job.fun,
        "tgt_type": job.tgt_type,
        "arg": list(job.arg),
        "kwarg": dict(job.kwarg),
        "ret": job.ret,
        "timeout": job.timeout,
        "expect_minions": job.expected,
        **job.passed_on,
    }
    more = {"batch": job.batch, "subset": job.subset, "failhard": job.failhard or None}
    return asked | {key: value for key, value in more.items() if value is not None}


def _without_what_is_not_ours(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in asked.items() if key not in ("ssh", "_cmd_meta")}


@pytest.mark.parametrize("name", [case["id"] for case in CASES if "differs" in case])
def test_where_salt_is_wrong(name: str, told: Told) -> None:
    entry, master = told(BY_ID[name])
    expected: Mapping[str, tuple[Any, int]] = {
        "no test by argument": (True, 1),
        "parallel orchestration fails": (False, 1),
        "parallel in test mode": (None, 0),
    }
    assert (entry["result"], len(master.jobs) + len(master.calls)) == expected[name]


# ------------------------------------------------------------------------------------------------------------------- events


@pytest.mark.parametrize(
    ("events", "arguments", "result", "seen"),
    [
        ([("a/1", {"id": "x"}), ("a/2", {"id": "y"})], {"id_list": ["x", "y"]}, True, ["x", "y"]),
        ([("a/1", {"id": ["x", "y", "z"]})], {"id_list": ["x", "y"]}, True, ["x", "y"]),
        ([("a/1", {"data": {"id": "x"}})], {"id_list": ["x"]}, True, ["x"]),
        ([("a/1", {"name": "x"})], {"id_list": ["x"], "event_id": "name"}, True, ["x"]),
        ([("a/1", {"id": "x"}), ("a/1", {"id": "x"})], {"id_list": ["x", "y"]}, False, ["x"]),
        ([("b/1", {"id": "x"}), ("a/1", {}), ("a/1", {"data": "x"})], {"id_list": ["x"]}, False, []),
        ([], {"id_list": []}, True, []),
    ],
)
def test_wait_for_event(told: Told, events: Any, arguments: Any, result: bool, seen: list[str]) -> None:
    entry, _ = told({"id": "a/*", "fun": "wait_for_event", "arguments": arguments, "events": events})
    assert (entry["result"], entry["changes"].get("minions_seen", [])) == (result, seen)
    assert entry["comment"].startswith("All events seen in " if result else "Timeout value reached. Not seen: ")


@pytest.mark.parametrize(
    ("asked", "result", "comment"),
    [
        (
            {"id": "a", "fun": "wait_for_event", "test": True, "arguments": {"id_list": ["x"]}},
            None,
            "Orchestration would wait for event 'a'",
        ),
        (
            {"id": "a", "fun": "wait_for_event", "arguments": {"id_list": "x"}},
            False,
            "id_list must be a list of the awaited values, not str",
        ),
        (
            {"id": "a", "fun": "wait_for_event", "arguments": {"id_list": ["x"], "node": "minion"}},
            False,
            "not supported: node=minion. An orchestration only receives events of its master",
        ),
        (
            {"id": "test.ping", "fun": "function", "arguments": {"tgt": "*"}, "answers": "the master does not answer"},
            False,
            "the master does not answer",
        ),
    ],
)
def test_what_is_refused(told: Told, asked: Mapping[str, Any], result: bool | None, comment: str) -> None:
    entry, _ = told(asked)
    assert (entry["result"], entry["comment"], entry["changes"]) == (result, comment, {})


@pytest.mark.parametrize(("fun", "arguments"), [("state", {"tgt": "*", "sls": "x"}), ("runner", {}), ("wheel", {})])
def test_without_a_master(plain: Any, fun: str, arguments: Mapping[str, Any]) -> None:
    with pytest.raises(Exception, match=r"put it into an SLS and run it with salt-run state\.orchestrate"):
        plain.state(f"salt.{fun}", name="x", **arguments)


@pytest.mark.parametrize("argument", [{"ssh": True}, {"roster": "flat"}])
def test_there_is_no_ssh(plain: Any, argument: Mapping[str, Any]) -> None:
    with pytest.raises(Exception, match=r"not supported: (ssh|roster)"):
        plain.state("salt.state", name="x", tgt="*", sls="y", **argument)


@pytest.mark.parametrize(
    ("running", "good"),
    [
        ({"a": {"result": True}}, True),
        ({"a": {"result": None}}, True),
        ({"a": {"result": True}, "b": {"result": False}}, False),
        ({"m": {"a": {"result": False}}}, False),
        ({"m": {}}, False),
        ({"a": "text"}, True),
        ({}, False),
        (None, False),
        (["error"], False),
    ],
)
def test_succeeded(running: Any, good: bool) -> None:
    assert succeeded(running) is good
