"""Finding 38.15: a minion's request has its function's rights checked before its arguments are parsed, and short arguments."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from saltern.mworker.commands import peers
from statecore.model import yaml
from tests.services.mworker.conftest import Worker

pytestmark = pytest.mark.redis

JOB = {"fun": "test.ping", "arg": [], "tgt": "*", "tgt_type": "glob", "ret": "", "tmo": 5}

#: Arguments that took minutes, or whose value is large.
STALLS: dict[str, list[object]] = {
    "base 60": ["1" + ":59" * 300_000],
    "base 60 by name": ["a=1" + ":59" * 300_000],
    "base 60 in a list": ["[1" + ":59" * 20_000 + "]"],
    "keys of one hash": ["{" + "".join(f"{(2**61 - 1) * n}: 1," for n in range(1, 2_000)) + "}"],
    "many keys of one hash": ["{" + "".join(f"{(2**61 - 1) * n}: 1," for n in range(1, 30_000)) + "}"],
    "a long list": ["[" + "1," * 400_000 + "]"],
    "a long map by name": ["pillar={" + "a: 1," * 100_000 + "}"],
    "digits": ["7" * 900_000],
    "hexadecimal digits": ["0x" + "f" * 900_000],
    "nested lists": ["[" * 60_000],
    "aliases": ["[&a [x, x, x, x, x, x, x, x, x, x], " + ", ".join(f"&a{n} [{'*a,' * 9}]" for n in range(900)) + "]"],
    "a thousand lists": ["[" + "1," * 400 + "]"] * 1_000,
}

#: Seconds of CPU time for one request. The old code needs at least twice as long.
_SOON = 1.0


@pytest.fixture
def master(new_worker: Callable[..., Worker]) -> Worker:
    """A worker whose option ``peer`` lets web1 publish test.* on all minions, and web2 only test.ping with an argument."""
    made: Worker = new_worker(
        peer={"web1": ["test."], "web2": [{"*": [{"test.ping": {"args": ["x"]}}]}]}, peer_run={"web1": ["jobs."]}
    )
    made.accept("db1")
    return made


@pytest.mark.parametrize("name", STALLS)
@pytest.mark.parametrize(
    ("minion", "cmd"),
    [("web1", "minion_pub"), ("web1", "minion_publish"), ("web1", "minion_runner"), ("web3", "minion_pub")],
    ids=["by minion_pub", "by minion_publish", "by minion_runner", "without a right"],
)
def test_no_argument_of_a_minion_keeps_a_worker_busy(master: Worker, minion: str, cmd: str, name: str) -> None:
    asker = master.minion(minion)
    fields: dict[str, Any] = {**JOB, "fun": "jobs.active"} if cmd == "minion_runner" else {**JOB}
    began = time.process_time()
    asker.send({"cmd": cmd, "id": minion, **fields, "arg": STALLS[name], "tgt": "nobody"})
    assert time.process_time() - began < _SOON


@pytest.mark.parametrize(
    ("minion", "fun"),
    [
        ("web1", "cmd.run"),
        ("web1", "test.ping,cmd.run"),
        ("web1", "cmd.run,test.ping"),
        ("web1", "publish.publish"),
        ("web2", "test.echo"),
        ("web2", "test.ping,test.echo"),
        ("web3", "test.ping"),
    ],
)
@pytest.mark.parametrize("cmd", ["minion_pub", "minion_publish"])
def test_without_the_functions_right_no_argument_is_parsed(
    master: Worker, monkeypatch: pytest.MonkeyPatch, minion: str, fun: str, cmd: str
) -> None:
    parsed: list[object] = []
    monkeypatch.setattr(peers, "parse_arguments", lambda *given, **named: parsed.append(given) or ([], {}))
    assert master.minion(minion).ask(cmd, **{**JOB, "fun": fun, "arg": ["[1, 2]"]}) == {}
    assert parsed == []


def test_without_a_runners_right_no_argument_is_parsed(master: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[object] = []
    monkeypatch.setattr(peers, "parse_arguments", lambda *given, **named: parsed.append(given) or ([], {}))
    assert master.minion("web1").ask("minion_runner", fun="manage.up", arg=["[1, 2]"]) == {}
    assert parsed == []


@pytest.mark.parametrize(
    "arg", [["[" + "1," * 40_000 + "]"], ["pillar={" + "a: 1," * 20_000 + "}"]], ids=["1", "pillar"]
)
def test_the_reason_names_the_argument(master: Worker, arg: list[object], request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id
    answer = master.minion("web1").ask("minion_pub", **{**JOB, "arg": arg, "explain": True})
    assert answer["refused"].startswith(f"the argument {name} is a list or map of ")
    assert "send the list or map itself" in answer["refused"]


@pytest.mark.ordinary
def test_short_arguments_are_read_as_before(master: Worker) -> None:
    answer = master.minion("web1").ask(
        "minion_pub", **{**JOB, "fun": "test.arg", "arg": ["[1, 2]", "a={b: 1}", "1:30"]}
    )
    load = master.context.store.jobs.load(answer["jid"])
    assert load is not None
    assert load["arg"] == [[1, 2], "1:30", {"__kwarg__": True, "a": {"b": 1}}]
    assert master.minion("web2").ask("minion_pub", **{**JOB, "arg": ["x"]})["jid"]
    assert master.minion("web2").ask("minion_pub", **{**JOB, "arg": ["y"]}) == {}


@pytest.mark.ordinary
def test_a_long_map_is_sent_as_a_map(master: Worker) -> None:
    pillar = yaml.load("[" + "1," * 40_000 + "]")
    answer = master.minion("web1").ask("minion_pub", **{**JOB, "arg": [{"__kwarg__": True, "pillar": {"a": pillar}}]})
    assert answer["jid"]
