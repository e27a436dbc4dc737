"""Who may publish what: tables, and Salt's opinion of the same rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from saltern.mworker.peer_acl import PeerCall, may_publish, may_run
from tests.conftest import Oracle

#: Compound target -> minions that it means. Jobs are for web1 and web2.
MEANT: Mapping[str, set[str]] = {
    "web*": {"web1", "web2"},
    "web1": {"web1"},
    "G@none:x": set(),
    "*": {"web1", "web2", "db"},
}

CASES: tuple[tuple[str, Any, str, list[Any], dict[str, Any], bool], ...] = (
    ("nothing is granted", {}, "test.ping", [], {}, False),
    ("to others", {"db": [".*"]}, "test.ping", [], {}, False),
    ("by an expression of ids", {"we[a-c]": ["test.ping"]}, "test.ping", [], {}, True),
    ("ids match from the start", {"eb1": [".*"]}, "test.ping", [], {}, False),
    ("and need not to the end", {"w": [".*"]}, "test.ping", [], {}, True),
    ("functions match from the start", {".*": ["ping"]}, "test.ping", [], {}, False),
    ("and need not to the end", {".*": ["test"]}, "test.ping", [], {}, True),
    ("rules add up", {"web.*": ["x"], ".*1": ["test.ping"]}, "test.ping", [], {}, True),
    ("rules are a list", {".*": "test.ping"}, "test.ping", [], {}, False),
    ("no circles", {".*": [".*"]}, "publish.publish", [], {}, False),
    ("on a target", {".*": [{"web*": "test.ping"}]}, "test.ping", [], {}, True),
    ("on all", {".*": [{"*": ["test.ping"]}]}, "test.ping", [], {}, True),
    ("on a part of it", {".*": [{"web1": ["test.ping"]}]}, "test.ping", [], {}, False),
    ("on nobody", {".*": [{"G@none:x": ["test.ping"]}]}, "test.ping", [], {}, False),
    ("about runners", {".*": [{"@runner": ["test.ping"]}]}, "test.ping", [], {}, False),
    ("two targets in one rule", {".*": [{"web*": [".*"], "*": [".*"]}]}, "test.ping", [], {}, False),
    ("an argument", {".*": [{"*": [{"cmd.run": {"args": ["ls"]}}]}]}, "cmd.run", ["ls -l"], {}, True),
    ("another", {".*": [{"*": [{"cmd.run": {"args": ["ls"]}}]}]}, "cmd.run", ["rm"], {}, False),
    ("any", {".*": [{"*": [{"cmd.run": {"args": [None, "b"]}}]}]}, "cmd.run", [1, "b"], {}, True),
    ("too few", {".*": [{"*": [{"cmd.run": {"args": [None, "b"]}}]}]}, "cmd.run", ["b"], {}, False),
    ("by name", {".*": [{"*": [{"cmd.run": {"kwargs": {"cwd": "/tmp"}}}]}]}, "cmd.run", [], {"cwd": "/tmp"}, True),
    ("missing", {".*": [{"*": [{"cmd.run": {"kwargs": {"cwd": "/tmp"}}}]}]}, "cmd.run", ["/tmp"], {}, False),
    ("alternatives", {".*": [{"*": [{"a.b": [{"args": ["x"]}, {"args": ["y"]}]}]}]}, "a.b", ["y"], {}, True),
    ("a number", {".*": [{"*": [{"a.b": {"args": ["1"]}}]}]}, "a.b", [12], {}, True),
)


@pytest.mark.parametrize(
    ("peer", "fun", "args", "kwargs", "allowed"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_rules(peer: Any, fun: str, args: list[Any], kwargs: dict[str, Any], allowed: bool) -> None:
    assert (
        may_publish(peer, "web1", [PeerCall(fun, args, kwargs)], lambda target: {"web1", "web2"} <= MEANT[target])
        is allowed
    )


@pytest.mark.oracle
def test_salt_decides_the_same(oracle: Oracle) -> None:
    program = (
        "import json, re, sys; from salt.utils.minions import CkMinions; from unittest import mock\n"
        "meant, cases = json.load(sys.stdin)\n"
        "told = []\n"
        "check = CkMinions.__new__(CkMinions); check.opts = {}\n"
        "check.check_minions = lambda expr, kind, **more: {'minions': meant.get(expr, ['web1', 'web2'])}\n"
        "for _, peer, fun, args, kwargs, _ in cases:\n"
        "    granted = [one for who, rules in peer.items() if re.match(who, 'web1') and isinstance(rules, list) for one in rules]\n"
        "    words = args + ([{'__kwarg__': True, **kwargs}] if kwargs else [])\n"
        "    told.append(not fun.startswith('publish.') and bool(check.auth_check(granted, fun, words, 'web?', 'glob',\n"
        "                                                       publish_validate=True)))\n"
        "print(json.dumps(told))"
    )
    meant = {target: sorted(minions) for target, minions in MEANT.items()}
    told = json.loads(oracle.run("python", "-c", program, stdin=json.dumps([meant, CASES])))
    assert dict(zip([c[0] for c in CASES], told, strict=True)) == {case[0]: case[-1] for case in CASES}


def test_of_several_functions_each_must_be_granted() -> None:
    calls = [PeerCall("test.ping"), PeerCall("cmd.run", ["id"])]
    assert may_publish({".*": ["test.ping"]}, "web1", calls, lambda target: True) is False
    assert may_publish({".*": ["test.ping", "cmd.run"]}, "web1", calls, lambda target: True) is True
    assert may_publish({".*": [".*"]}, "web1", [*calls, PeerCall("publish.runner")], lambda target: True) is False
    assert may_publish({".*": [".*"]}, "web1", [], lambda target: True) is False


def test_an_expression_that_is_none_grants_nothing() -> None:
    assert may_publish({"(": [".*"], ".*": ["("]}, "web1", [PeerCall("test.ping")], lambda target: True) is False


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ({}, False),
        ({"web.": ["manage"]}, True),
        ({"db": [".*"]}, False),
        ({".*": ["up"]}, False),
        ({".*": [{"*": ".*"}]}, False),
    ],
)
def test_runners(rules: Any, allowed: bool) -> None:
    assert may_run(rules, "web1", "manage.up") is allowed
