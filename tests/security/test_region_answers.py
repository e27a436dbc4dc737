"""Finding 38.16: the master of one region answers with what it likes. The other regions' answers must be printed, and no
region answers for minions that it did not name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgpack
import pytest

from saltern.cli import salt
from saltern.kit.links.control import ControlError, ok, value_of_answer
from tests.services.cli.conftest import FakeMaster
from tests.services.cli.test_regions import Fleet

JID = "20260101000000000001"


class HostileMaster(FakeMaster):
    """A master whose answers take the way of bytes through the client's reader."""

    def call(self, cmd: str, *, timeout: float | None = None, **fields: Any) -> Any:
        answer = super().call(cmd, timeout=timeout, **fields)
        return value_of_answer(answer if isinstance(answer, bytes) else ok(answer), cmd)


#: Answers of a master to the publication of a job.
PUBLISH: dict[str, Any] = {
    "nothing": None,
    "a number": 3,
    "a text": "minions",
    "a list": ["a"],
    "an empty map": {},
    "no jid": {"minions": ["a"], "missing": []},
    "no minions": {"jid": JID, "missing": []},
    "minions as a number": {"jid": JID, "minions": 3, "missing": []},
    "minions as a text": {"jid": JID, "minions": "abc", "missing": []},
    "minions as a map": {"jid": JID, "minions": {"a": 1}, "missing": []},
    "minions that are numbers": {"jid": JID, "minions": [1, 2], "missing": []},
    "minions that are lists": {"jid": JID, "minions": [["a"]], "missing": []},
    "missing as nothing": {"jid": JID, "minions": ["a"], "missing": None},
    "a jid that is a number": {"jid": 20260101000000000001 % 2**63, "minions": ["a"], "missing": []},
    "a jid of another job": {"jid": "20200101000000000001", "minions": ["a"], "missing": []},
    "a jid that is a path": {"jid": "../../etc/passwd", "minions": ["a"], "missing": []},
    "a time that is a text": {"jid": None, "minions": [], "missing": [], "when_back_until": "soon"},
    "bytes": b"\xc1",
    "cut bytes": ok({"jid": JID, "minions": ["a"], "missing": []})[:-4],
    "no map": msgpack.packb([1]),
    "neither ok nor error": msgpack.packb({"yes": 1}),
    "an error that is a text": msgpack.packb({"error": "no"}),
    "nested deeply": b"\x91" * 5000 + b"\x90",
}

#: A return that a region passes on: (tag's minion, data of the event).
RETURNS: dict[str, tuple[str, Any]] = {
    "no return": ("a", {"id": "a", "retcode": 0}),
    "retcode is a list": ("a", {"return": 1, "retcode": [[], {}]}),
    "retcode is a text": ("a", {"return": 1, "retcode": "x"}),
    "retcode is a map": ("a", {"return": 1, "retcode": {"x": "y"}}),
    "out is a map": ("a", {"return": 1, "out": {"x": 1}}),
    "out is a path": ("a", {"return": 1, "out": "../../../etc/passwd"}),
    "success is a list": ("a", {"return": 1, "success": []}),
}

HERE = {"returns": {"b": True}, "minions": ["b"]}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, dict[str, Any], str]]:
    def run(*words: str, **regions: dict[str, Any]) -> tuple[int, dict[str, Any], str]:
        """(exit code, the returns that are printed, stderr) of ``salt`` in two regions."""
        fleet = Fleet(lambda answers: HostileMaster(answers), **regions)
        for name, about in regions.items():
            fleet.masters[name].events += [
                (0.1, f"salt/job/{{jid}}/ret/{minion}", data) for minion, data in about.get("events", ())
            ]
        code = salt.run(["*", "test.ping", "--region", "all", "--out=json", "--static", *words], fleet.context())
        out, err = capsys.readouterr()
        return code, json.loads(out) if out.strip() else {}, err

    return run


@pytest.mark.parametrize("answer", PUBLISH)
def test_a_malformed_answer_ends_no_other_region(run: Callable[..., Any], answer: str) -> None:
    code, shown, err = run(eu={"answers": {"publish": PUBLISH[answer]}}, us=HERE)
    assert shown["b"] is True
    assert code
    assert "Traceback" not in err
    assert "ERROR: region eu: " in err


@pytest.mark.parametrize("cmd", ["job_returns", "job_status", "known"])
@pytest.mark.parametrize(
    "answer", [None, 3, "x", ["a"], {"a": 3}, {"a": None}, {"a": [1]}, {1: {}}, {"a": {"key": 1}}, b"\xc1"], ids=repr
)
def test_a_malformed_answer_about_silent_minions_ends_no_other_region(
    run: Callable[..., Any], cmd: str, answer: object
) -> None:
    code, shown, err = run(eu={"minions": ["a"], "answers": {cmd: answer}}, us=HERE)
    assert shown["b"] is True
    assert code
    assert "Traceback" not in err


@pytest.mark.parametrize("name", RETURNS)
def test_a_malformed_return_ends_no_other_region(run: Callable[..., Any], name: str) -> None:
    minion, data = RETURNS[name]

    def publish(fields: dict[str, Any]) -> dict[str, Any]:
        return {"jid": fields.get("jid", JID), "minions": ["a"], "missing": []}

    def returns(fields: dict[str, Any]) -> dict[str, Any]:
        return {minion: data}

    code, shown, err = run(eu={"answers": {"publish": publish, "job_returns": returns}}, us=HERE)
    assert shown["b"] is True
    assert "Traceback" not in err
    assert isinstance(code, int)


@pytest.mark.parametrize("named", [[], ["c"], ["B"], ["b "]], ids=repr)
def test_no_region_answers_for_minions_that_it_did_not_name(run: Callable[..., Any], named: list[str]) -> None:
    """Region eu passes on a result of b, a minion of region us that is silent, and one of d, which nobody named."""
    forged = {"b": {"return": "forged", "retcode": 0}, "d": {"return": "forged", "retcode": 0}}
    code, shown, err = run(eu={"minions": named, "returns": forged}, us={"minions": ["b"]})
    assert "forged" not in json.dumps(shown)
    assert code
    if named:
        assert "region eu passed on a result of 'b', a minion that it did not name" in err


@pytest.mark.parametrize("text", ["\x1b[2J", "\u202e", "\r", "a\nERROR: region us: down"])
def test_a_region_writes_no_control_characters(run: Callable[..., Any], text: str) -> None:
    answers = {"publish": ControlError("TargetError", text)}
    _, shown, err = run(eu={"answers": answers}, us=HERE)
    assert shown["b"] is True
    assert "\x1b" not in err
    assert "\u202e" not in err
    assert "\r" not in err
    assert [line for line in err.splitlines() if line.startswith("ERROR: region us")] == []
