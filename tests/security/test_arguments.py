"""Attacks by arguments that the master and a minion could read differently: an access list allows one command, and the
attack wants another to run.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgpack
import pytest

from saltern.kit.command.arguments import read_arguments
from saltwire.pack import packb, unpackb
from tests.conftest import Oracle
from tests.services.mworker.conftest import Worker

pytestmark = pytest.mark.redis

BY_NAME = [{"*": [{"cmd.run": {"kwargs": {"cmd": "^uptime$"}}}]}]
BY_PLACE = [{"*": [{"cmd.run": {"args": ["^uptime$"]}}]}]
BOTH = [{"*": [{"cmd.run": {"args": ["^uptime$"], "kwargs": {"cwd": "^/tmp$"}}}]}]

K = "__kwarg__"

#: Attack -> (rules, function, arguments of the request).
ATTACKS: dict[str, tuple[Any, Any, Any]] = {
    "a text behind the map": (BY_NAME, "cmd.run", [{K: True, "cmd": "uptime"}, "cmd=id"]),
    "a text before the map": (BY_NAME, "cmd.run", ["cmd=id", {K: True, "cmd": "uptime"}, "cmd=id"]),
    "a second map with 1": (BY_NAME, "cmd.run", [{K: True, "cmd": "uptime"}, {K: 1, "cmd": "id"}]),
    "a first map with 1": (BY_NAME, "cmd.run", [{K: 1, "cmd": "id"}, {K: True, "cmd": "uptime"}]),
    "a second map with 1.0": (BY_NAME, "cmd.run", [{K: True, "cmd": "uptime"}, {K: 1.0, "cmd": "id"}]),
    "a second map with a text": (BY_NAME, "cmd.run", [{K: True, "cmd": "uptime"}, {K: "yes", "cmd": "id"}]),
    "a second map with True": (BY_NAME, "cmd.run", [{K: True, "cmd": "uptime"}, {K: True, "cmd": "id"}]),
    "only a map with 1": (BY_NAME, "cmd.run", [{K: 1, "cmd": "uptime"}, "cmd=id"]),
    "a text as bytes": (BY_NAME, "cmd.run", [{K: True, "cmd": "uptime"}, b"cmd=id"]),
    "a name as bytes": (BY_NAME, "cmd.run", [{K: True, "cmd": "uptime", b"cmd": "id"}]),
    "the mark as bytes": (BY_NAME, "cmd.run", [{K: True, "cmd": "uptime"}, {b"__kwarg__": True, b"cmd": b"id"}]),
    "a value as bytes": (BY_NAME, "cmd.run", [{K: True, "cmd": b"id"}]),
    "a text with a line end": (BY_NAME, "cmd.run", [{K: True, "cmd": "uptime"}, "cmd=id\n"]),
    "a text of two lines": (BY_NAME, "cmd.run", [{K: True, "cmd": "uptime"}, "cmd=id\n#"]),
    "a text with carriage returns": (BY_NAME, "cmd.run", [{K: True, "cmd": "uptime"}, "cmd=id\r#"]),
    "a text with a line separator": (BY_NAME, "cmd.run", [{K: True, "cmd": "uptime"}, "cmd=id\u2028#"]),
    "a text that YAML reads": (BY_NAME, "cmd.run", [{K: True, "cmd": "uptime"}, "cmd=[id]"]),
    "a quoted text": (BY_NAME, "cmd.run", [{K: True, "cmd": "uptime"}, "cmd='id'"]),
    "a tuple as a map's name": (BY_NAME, "cmd.run", [{K: True, "cmd": "uptime", 1: "id"}, "cmd=id"]),
    "a list around the text": (BY_NAME, "cmd.run", [{K: True, "cmd": "uptime"}, ["cmd=id"], "cmd=id"]),
    "by place, then by name": (BY_PLACE, "cmd.run", ["uptime", "cmd=id"]),
    "by place, then by a map": (BY_PLACE, "cmd.run", ["uptime", {K: 1, "cmd": "id"}]),
    "by place, the name first": (BY_PLACE, "cmd.run", ["cmd=id", "uptime"]),
    "by place, another command first": (BY_PLACE, "cmd.run", ["id", "uptime"]),
    "by place, a mark without True first": (BY_PLACE, "cmd.run", [{K: 0, "cmd": "id"}, "uptime"]),
    "another directory by a text": (BOTH, "cmd.run", ["uptime", {K: True, "cwd": "/tmp"}, "cwd=/root"]),
    "another directory by a second map": (BOTH, "cmd.run", ["uptime", {K: True, "cwd": "/tmp"}, {K: 1, "cwd": "/"}]),
    "several functions, a map for a list": (BY_NAME, ["cmd.run", "cmd.run"], [[{K: True, "cmd": "uptime"}], {"a": 1}]),
    "several functions, a text for a list": (BY_NAME, ["cmd.run"], ["id"]),
    "several functions, a text behind": (BY_NAME, ["cmd.run", "cmd.run"], [[{K: True, "cmd": "uptime"}], ["cmd=id"]]),
    "several functions, one list too many": (BY_NAME, ["cmd.run"], [[{K: True, "cmd": "uptime"}], ["cmd=id"]]),
    "several functions, a list as bytes": (BY_NAME, ["cmd.run"], [[{K: True, "cmd": "uptime"}, b"cmd=id"]]),
    "one function, lists of lists": (BY_NAME, "cmd.run", [[{K: True, "cmd": "uptime"}], "cmd=id"]),
    "arguments that are a map": (BY_NAME, "cmd.run", {"cmd": "id"}),
    "arguments that are a text": (BY_NAME, "cmd.run", "cmd=id"),
}


def read_by_saltern_0_1(given: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return (positional, keyword) arguments as minions of Saltern 0.1 read the list ``arg`` of a publication."""
    positional: list[Any] = []
    keyword: dict[str, Any] = {}
    for one in given:
        if isinstance(one, dict) and one.get(K):
            keyword |= {str(name): value for name, value in one.items() if name != K}
        elif isinstance(one, str) and (match := re.match(r"([^\d\W]\w*)=(?!=)(.*)\Z", one, re.DOTALL)):
            keyword[match[1]] = match[2]
        else:
            positional.append(one)
    return positional, keyword


def commands(load: Mapping[str, Any], read: Callable[[Sequence[Any]], Any]) -> list[dict[str, Any]]:
    """Return the keyword arguments with which a minion calls each ``cmd.run`` of a job; {} for a call that fails.

    ``read``: function that turns the list ``arg`` into (positional, keyword) arguments.
    """
    groups = [load["arg"]] if isinstance(load["fun"], str) else load["arg"]
    found = []
    for group in groups:
        positional, keyword = read(group)
        bound = {**({"cmd": positional[0]} if positional else {}), **keyword}
        found.append({} if positional and "cmd" in keyword else bound)
    return found


@pytest.mark.parametrize("read", [read_arguments, read_by_saltern_0_1], ids=["by minions", "by minions of Saltern 0.1"])
@pytest.mark.parametrize(("rules", "fun", "arg"), ATTACKS.values(), ids=list(ATTACKS))
def test_an_operator_runs_nothing_but_what_the_access_list_allows(
    new_worker: Callable[..., Worker], read: Any, rules: Any, fun: Any, arg: Any
) -> None:
    master = new_worker(publisher_acl={"ann": rules})
    master.accept("web1")
    request = msgpack.packb({"cmd": "publish", "fun": fun, "arg": arg, "tgt": "*"})
    msgpack.unpackb(master.handler.answer(b"control", "ann", request), strict_map_key=False)
    assert_allowed(master, read)


def assert_allowed(master: Worker, read: Any) -> None:
    for _, job in master.store.publications.range_since(0):
        received: Any = unpackb(packb(job))
        for bound in commands(received, read):
            assert bound.get("cmd", "uptime") == "uptime"
            assert bound.get("cwd", "/tmp") == "/tmp"


@pytest.mark.parametrize("read", [read_arguments, read_by_saltern_0_1], ids=["by minions", "by minions of Saltern 0.1"])
@pytest.mark.parametrize(
    "arg",
    [
        *(arg for rules, fun, arg in ATTACKS.values() if rules is BY_NAME and fun == "cmd.run"),
        [{K: True, "cmd": "uptime"}, "'cmd=id'"],
        [{K: True, "cmd": "uptime"}, '"cmd=id"'],
        [{K: True, "cmd": "uptime"}, '"cmd=id\\n"'],
        [{K: True, "cmd": "uptime"}, '"cmd=id\\n#"'],
        ["cmd=uptime", "! cmd=id"],
        ["cmd=uptime", "!!str cmd=id"],
    ],
    ids=str,
)
def test_a_minion_runs_nothing_but_what_peer_allows(new_worker: Callable[..., Worker], read: Any, arg: Any) -> None:
    master = new_worker(peer={"web1": BY_NAME})
    minion = master.minion("web1")
    minion.ask("minion_pub", fun="cmd.run", arg=arg, tgt="*", ret="", tmo=5)
    assert_allowed(master, read)


@pytest.mark.parametrize(
    ("arg", "sent"),
    [
        (["a", "b=1"], ["a", {K: True, "b": 1}]),
        ([{K: True, "b": 1}, "c=2", {K: True, "b": 3}], [{K: True, "b": 3, "c": 2}]),
        ([b"b=1", b"\xff"], [b"\xff", {K: True, "b": 1}]),
        ([{"b": 1}, "a==b", "a=b\nc"], [{"b": 1}, "a==b", "a=b\nc"]),
        ([], []),
    ],
    ids=str,
)
@pytest.mark.ordinary
def test_arguments_are_published_in_one_form(worker: Worker, arg: Any, sent: Any) -> None:
    worker.accept("web1")
    worker.control("publish", fun="test.arg", arg=arg, tgt="*")
    ((_, job),) = worker.store.publications.range_since(0)
    assert unpackb(packb(job["arg"])) == sent


def drawn(count: int) -> list[list[Any]]:
    """Return ``count`` random argument lists that two readers could understand differently; the same lists in each run."""
    chosen = random.Random(15)
    names, values = (
        ["cmd", "a.b", "_x", "ä", "1a", "a b", "", "a-b"],
        ["id", "1", "[1]", "=", "x\n", "x\ny", "", " y", "None"],
    )
    marks = [True, False, 1, 0, 1.0, "true", None]
    found = []
    for _ in range(count):
        row: list[Any] = []
        for _ in range(chosen.randrange(4)):
            text = f"{chosen.choice(names)}{chosen.choice(['=', '==', ' = '])}{chosen.choice(values)}"
            mark = {K: chosen.choice(marks), chosen.choice(["cmd", "b"]): chosen.choice(values)}
            row.append(chosen.choice([text, mark, {"cmd": 1}, chosen.choice(values), 7, None]))
        found.append(row)
    return found


#: Reads lists of arguments; prints what Salt's minion calls a function with.
SALTS = """
import json, sys
from salt.minion import load_args_and_kwargs
def function(*args, **kwargs): pass
print(json.dumps([load_args_and_kwargs(function, row) for row in json.load(sys.stdin)]))
"""


@pytest.mark.oracle
@pytest.mark.ordinary
def test_salts_minions_read_the_same(oracle: Oracle) -> None:
    rows = drawn(600)
    said = json.loads(oracle.run("python", "-c", SALTS, stdin=json.dumps(rows)))
    assert [list(read_arguments(row)) for row in rows] == said
