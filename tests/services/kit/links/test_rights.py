"""What senders may do: tables, and thousands of generated rules and requests with Salt's decision beside ours."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from fnmatch import filter as matching
from typing import Any

import pytest

from saltern.kit.links.rights import (
    OWN_ROWS,
    Call,
    Kind,
    Rights,
    barred_by_list,
    decide,
    rights_of_minion,
    rights_of_operator,
    rights_of_user,
    runners_of_minion,
)
from tests.conftest import Oracle

MINIONS = ("web1", "web2", "db1")


def meant(target: str) -> frozenset[str]:
    return frozenset(matching(MINIONS, target))


def allowed(rights: Rights, fun: str, args: list[Any], kwargs: dict[str, Any], tgt: str) -> bool:
    return not decide(rights, Kind.PUBLISH, [Call(fun, args, kwargs)]).refused_on(meant(tgt), meant)


#: What is decided -> (option peer, function, arguments, whether web1 may publish it to web*).
PEERS: dict[str, tuple[Any, str, list[Any], dict[str, Any], bool]] = {
    "nothing is granted": ({}, "test.ping", [], {}, False),
    "to others": ({"db": [".*"]}, "test.ping", [], {}, False),
    "by an expression of ids": ({"we[a-c]": ["test.ping"]}, "test.ping", [], {}, True),
    "ids match from the start": ({"eb1": [".*"]}, "test.ping", [], {}, False),
    "ids need not match to the end": ({"w": [".*"]}, "test.ping", [], {}, True),
    "functions match from the start": ({".*": ["ping"]}, "test.ping", [], {}, False),
    "functions need not match to the end": ({".*": ["test"]}, "test.ping", [], {}, True),
    "rules add up": ({"web.*": ["x"], ".*1": ["test.ping"]}, "test.ping", [], {}, True),
    "rules are a list": ({".*": "test.ping"}, "test.ping", [], {}, False),
    "no circles": ({".*": [".*"]}, "publish.publish", [], {}, False),
    "no circles by another name": ({".*": [".*"]}, "publisher.run", [], {}, False),
    "an invalid expression": ({"(": [".*"], ".*": ["("]}, "test.ping", [], {}, False),
    "on a target": ({".*": [{"web*": "test.ping"}]}, "test.ping", [], {}, True),
    "on all": ({".*": [{"*": ["test.ping"]}]}, "test.ping", [], {}, True),
    "on a part of it": ({".*": [{"web1": ["test.ping"]}]}, "test.ping", [], {}, False),
    "on two parts of it": ({".*": [{"web1": ["test.ping"]}, {"web2": ["test.ping"]}]}, "test.ping", [], {}, False),
    "on nobody": ({".*": [{"nobody": ["test.ping"]}]}, "test.ping", [], {}, False),
    "about runners": ({".*": [{"@runner": ["test.ping"]}]}, "test.ping", [], {}, False),
    "two targets in one rule": ({".*": [{"web*": [".*"], "*": [".*"]}]}, "test.ping", [], {}, False),
    "an argument": ({".*": [{"*": [{"cmd.run": {"args": ["ls"]}}]}]}, "cmd.run", ["ls -l"], {}, True),
    "another argument": ({".*": [{"*": [{"cmd.run": {"args": ["ls"]}}]}]}, "cmd.run", ["rm"], {}, False),
    "any argument": ({".*": [{"*": [{"cmd.run": {"args": [None, "b"]}}]}]}, "cmd.run", [1, "b"], {}, True),
    "too few arguments": ({".*": [{"*": [{"cmd.run": {"args": [None, "b"]}}]}]}, "cmd.run", ["b"], {}, False),
    "by name": ({".*": [{"*": [{"a.b": {"kwargs": {"c": "/tmp"}}}]}]}, "a.b", [], {"c": "/tmp"}, True),
    "missing": ({".*": [{"*": [{"a.b": {"kwargs": {"c": "/tmp"}}}]}]}, "a.b", ["/tmp"], {}, False),
    "alternatives": ({".*": [{"*": [{"a.b": [{"args": ["x"]}, {"args": ["y"]}]}]}]}, "a.b", ["y"], {}, True),
    "a number": ({".*": [{"*": [{"a.b": {"args": ["1"]}}]}]}, "a.b", [12], {}, True),
    "broken args": ({".*": [{"*": [{"a.b": {"args": None}}]}]}, "a.b", ["x"], {}, False),
    "broken kwargs": ({".*": [{"*": [{"a.b": {"kwargs": ["c"]}}]}]}, "a.b", [], {"c": 1}, False),
}


@pytest.mark.parametrize(("peer", "fun", "args", "kwargs", "may"), PEERS.values(), ids=list(PEERS))
def test_what_minions_may_publish(peer: Any, fun: str, args: list[Any], kwargs: dict[str, Any], may: bool) -> None:
    assert allowed(rights_of_minion(peer, "web1"), fun, args, kwargs, "web*") is may


def test_of_several_functions_each_must_be_allowed() -> None:
    calls = [Call("test.ping"), Call("cmd.run", ["id"]), Call("cmd.run")]
    decision = decide(Rights("peer", ["test.ping", {"web*": "cmd.run"}]), Kind.PUBLISH, calls)
    assert (decision.refused, decision.everywhere) == ([], False)
    assert decision.reach(meant) == {"web1", "web2"}
    assert decision.refused_on(meant("web1"), meant) == []
    assert decision.refused_on(meant("*"), meant) == ["cmd.run"]
    assert decide(Rights("peer", ["test.ping"]), Kind.PUBLISH, calls).refused == ["cmd.run"]


@pytest.mark.parametrize(
    ("rules", "may"),
    [
        ({}, False),
        ({"web.": ["manage"]}, True),
        ({"db": [".*"]}, False),
        ({".*": ["up"]}, False),
        ({".*": [{"*": ".*"}]}, False),
    ],
)
def test_what_runners_minions_may_start(rules: Any, may: bool) -> None:
    assert (not decide(runners_of_minion(rules, "web1"), Kind.RUNNER, [Call("manage.up")]).refused) is may


FULL = [".*"]


@pytest.mark.parametrize(
    ("control", "publisher", "client", "found"),
    [
        ({"*": FULL}, {}, "cli", ("control_acl", FULL)),
        ({"*": FULL}, {}, "ann", ("control_acl", FULL)),
        ({"*": FULL}, {"ann": ["test."]}, "ann", ("publisher_acl", ["test."])),
        ({"*": FULL}, {"ann": ["test."]}, "bob", ("publisher_acl", ())),
        ({"*": FULL}, {"ann": ["test."]}, "web", ("publisher_acl", ())),
        ({"*": FULL}, {"ann": ["test."]}, "cli", ("control_acl", FULL)),
        ({"ann": ["cmd.run"]}, {"ann": ["test."]}, "ann", ("control_acl", ["cmd.run"])),
        ({}, {}, "cli", ("control_acl", OWN_ROWS["cli"])),
        ({}, {"ann": FULL}, "reactor", ("control_acl", OWN_ROWS["reactor"])),
        ({"api": FULL}, {}, "mworker", ("control_acl", OWN_ROWS["mworker"])),
        ({"cli": []}, {}, "cli", ("control_acl", [])),
        ({}, {}, "web", ("control_acl", ())),
        ({}, {}, "api", ("control_acl", OWN_ROWS["api"])),
        ({}, {}, "ann", ("control_acl", ())),
        ({}, {}, "publisher", ("control_acl", ())),
        ({}, {}, "", ("control_acl", ())),
    ],
    ids=str,
)
def test_which_row_of_an_operator_counts(control: Any, publisher: Any, client: str, found: Any) -> None:
    rights = rights_of_operator(control, publisher, client)
    assert (rights.option, rights.rules) == found
    assert rights.whole_names is (rights.option == "control_acl")


def test_control_acl_matches_whole_names() -> None:
    rights = Rights("control_acl", ["test.*", "cmd", "(", "@runner", 5], whole_names=True)
    decision = decide(rights, Kind.PUBLISH, [Call("test.ping"), Call("cmd.run"), Call("@runner")])
    assert decision.refused == ["cmd.run", "@runner"]
    assert decide(rights, Kind.RUNNER, [Call("manage.up")]).refused == []
    assert decide(rights, Kind.WHEEL, [Call("key.accept")]).refused == ["key.accept"]


@pytest.mark.parametrize(
    ("user", "groups", "permissive", "rules"),
    [
        ("ann", (), False, ["a"]),
        ("bob", (), False, ["every"]),
        ("bob", ("ops",), False, ["o", "every"]),
        ("ann", ("ops", "dev"), False, ["a", "o"]),
        ("ann", (), True, ["a", "every"]),
        ("bob", (), True, ["every"]),
        ("*", (), False, ["every"]),
        ("a*", (), False, ["every"]),
        ("ops%", (), False, ["every"]),
        ("broken", (), False, ["every"]),
    ],
)
def test_rules_of_an_authenticated_user(user: str, groups: Any, permissive: bool, rules: list[str]) -> None:
    rows = {"ann": ["a"], "ops%": ["o"], "*": ["every"], "broken": "all"}
    assert rights_of_user({"pam": rows}, "pam", user, groups, permissive=permissive).rules == rules
    assert rights_of_user({"pam": rows}, "ldap", user, groups, permissive=permissive).rules == []


@pytest.mark.parametrize(
    ("blacklist", "found"),
    [
        ({}, ""),
        ({"users": ["bob"]}, ""),
        ({"users": ["a*"]}, "ann"),
        ({"users": ["^(?!bob).*$"]}, "ann"),
        ({"modules": ["cmd.*"]}, "cmd.run"),
        ({"modules": ["cmd"]}, ""),
        ({"modules": ["(", None]}, ""),
    ],
    ids=str,
)
def test_who_is_barred(blacklist: Any, found: str) -> None:
    assert barred_by_list(blacklist, ["ann"], ["test.ping", "cmd.run"]) == found


# ------------------------------------------------------------------------------------------------------ generated, as Salt


EXPRESSIONS = (
    "test.ping",
    "test.*",
    "test",
    r"cmd\.run$",
    ".*",
    r"^cmd\.",
    "grains.item",
    "(",
    "ping",
    "state|test",
    "key",
    "jobs.li",
)
TARGETS = ("*", "web*", "web1", "db1", "nobody", "@runner", "@runners", "@wheel", "@wheels", "@jobs", "@test", "@key")
FUNCTIONS = ("test.ping", "cmd.run", "grains.items", "state.apply", "cmd.run_all", "test")
MASTERS = ("jobs.list_jobs", "jobs.active", "manage.up", "key.list_all", "key.accept", "test.arg", "test", "a.b.c")
WANTED = (None, "a", "^a$", "1", ".*", "b", "(", "")
GIVEN = ("a", "ab", 1, None, ["a"], {"a": 1}, True, 1.5, "")


class Drawn:
    """Rules and requests, the same in each run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def arguments(self) -> dict[str, Any]:
        draw, found = self.random, {}
        if draw.random() < 0.7:
            found["args"] = [draw.choice(WANTED) for _ in range(draw.randrange(3))]
        if draw.random() < 0.5:
            found["kwargs"] = {name: draw.choice(WANTED) for name in draw.sample("ab", draw.randrange(3))}
        return found

    def function(self) -> Any:
        draw = self.random
        expression = draw.choice(EXPRESSIONS)
        if draw.random() < 0.5:
            return expression
        conditions = [self.arguments() for _ in range(draw.randrange(1, 3))]
        return {expression: conditions if len(conditions) > 1 else conditions[0]}

    def rule(self) -> Any:
        draw = self.random
        kind = draw.random()
        if kind < 0.25:
            return draw.choice(EXPRESSIONS)
        if kind < 0.35:
            return draw.choice([target for target in TARGETS if target.startswith("@")])
        if kind < 0.4:
            return draw.choice([{}, 5, None, {"web*": ".*", "*": ".*"}, ["test.ping"]])
        functions = [self.function() for _ in range(draw.randrange(1, 4))]
        return {draw.choice(TARGETS): functions if draw.random() < 0.8 else functions[0]}

    def row(self) -> list[Any]:
        return [self.rule() for _ in range(self.random.randrange(5))]

    def call(self, functions: tuple[str, ...]) -> tuple[str, list[Any], dict[str, Any]]:
        draw = self.random
        kwargs = {name: draw.choice(GIVEN) for name in draw.sample("abc", draw.randrange(3))}
        return draw.choice(functions), [draw.choice(GIVEN) for _ in range(draw.randrange(3))], kwargs


#: Reads generated cases; prints what Salt decides.
SALTS = """
import fnmatch, json, logging, sys
import salt.acl
from salt.utils.minions import CkMinions
logging.disable(logging.CRITICAL)
class Checked(CkMinions):
    def __init__(self): self.opts = {"permissive_acl": False}
    def check_minions(self, expr, tgt_type="glob", **kwargs):
        return {"minions": [m for m in ("web1", "web2", "db1") if fnmatch.fnmatchcase(m, expr)], "missing": []}
    def __del__(self): pass
ck = Checked()
cases = json.load(sys.stdin)
def published(row, fun, args, kwargs, tgt, peer):
    words = args + ([{"__kwarg__": True, **kwargs}] if kwargs else [])
    return bool(ck.auth_check(row, fun, words, tgt, "glob", publish_validate=peer))
def special(row, kind, fun, args, kwargs):
    check = ck.runner_check if kind == "@runner" else ck.wheel_check
    return check(row, fun, {"arg": args, "kwarg": kwargs}) is True
def barred(patterns, fun):
    return salt.acl.PublisherACL({"modules": patterns}).cmd_is_blacklisted(fun)
print(json.dumps({
    "published": [published(*case) for case in cases["published"]],
    "special": [special(*case) for case in cases["special"]],
    "users": [ck.fill_auth_list(rows, user, groups) for rows, user, groups in cases["users"]],
    "barred": [barred(*case) for case in cases["barred"]],
}))
"""


def cases() -> dict[str, list[Any]]:
    drawn = Drawn(15)
    draw = drawn.random
    return {
        "published": [
            (
                drawn.row(),
                *drawn.call(FUNCTIONS),
                draw.choice(("*", "web*", "web1", "db1", "none")),
                draw.random() < 0.5,
            )
            for _ in range(3000)
        ],
        "special": [(drawn.row(), draw.choice(("@runner", "@wheel")), *drawn.call(MASTERS)) for _ in range(3000)],
        "users": [
            (
                {name: [drawn.rule()] for name in draw.sample(("ann", "bob", "*", "ops%", "dev%"), draw.randrange(6))},
                draw.choice(("ann", "bob", "eve")),
                draw.sample(("ops", "dev", "ann"), draw.randrange(3)),
            )
            for _ in range(500)
        ],
        "barred": [
            (
                [draw.choice((*EXPRESSIONS, "cmd.*", "*.run", "[")) for _ in range(draw.randrange(3))],
                draw.choice(FUNCTIONS),
            )
            for _ in range(500)
        ],
    }


def ours(found: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    return {
        "published": [
            allowed(Rights("x", row, no_circles=peer), fun, args, kwargs, tgt)
            for row, fun, args, kwargs, tgt, peer in found["published"]
        ],
        "special": [
            not decide(Rights("x", row), Kind(kind), [Call(fun, args, kwargs)]).refused
            for row, kind, fun, args, kwargs in found["special"]
        ],
        "users": [rights_of_user({"pam": rows}, "pam", user, groups).rules for rows, user, groups in found["users"]],
        "barred": [bool(barred_by_list({"modules": patterns}, [], [fun])) for patterns, fun in found["barred"]],
    }


@pytest.mark.oracle
def test_salt_decides_the_same(oracle: Oracle) -> None:
    generated = cases()
    salts = json.loads(oracle.run("python", "-c", SALTS, stdin=json.dumps(generated)))
    mine = json.loads(json.dumps(ours(generated)))
    differ = [
        (kind, case, salt, own)
        for kind, rows in generated.items()
        for case, salt, own in zip(rows, salts[kind], mine[kind], strict=True)
        if salt != own
    ]
    assert differ == []
    # Both answers are frequent, so that the comparison says something.
    assert all(50 < sum(map(bool, salts[kind])) < len(salts[kind]) - 50 for kind in ("published", "special", "barred"))
