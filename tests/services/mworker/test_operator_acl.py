"""What operators may do: our option, and Salt's with Salt beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fnmatch import filter as matching
from typing import Any

import pytest

from saltern.mworker.operator_acl import barred_by_list, barred_functions, may_use, rows_of
from saltern.mworker.peer_acl import PeerCall
from tests.conftest import Oracle

ROWS: dict[str, list[Any]] = {
    "functions": ["test.*", "grains.item"],
    "everything": [".*"],
    "a target": [{"web*": ["test.", "cmd.run"]}],
    "arguments": [{"web*": [{"cmd.run": {"args": ["uptime"]}}, {"test.kwarg": {"kwargs": {"a": "1"}}}]}],
    "runners": ["@runner"],
    "runners, in the plural": ["@runners"],
    "some runners": [{"@runner": ["jobs.list_", "manage.up"]}],
    "a module": ["@jobs"],
    "some of a module": [{"@jobs": ["active"]}],
    "wheel": ["@wheel"],
    "some wheel functions": [{"@wheel": ["key.list"]}],
    "broken": ["(", {"a": 1, "b": 2}, {"web*": 5}],
    "nothing": [],
}

#: Whom a job is for, of web1, web2, db1; what is run; with which arguments.
JOBS: list[tuple[str, list[str], list[list[Any]]]] = [
    ("*", ["test.ping"], [[]]),
    ("web*", ["test.ping"], [[]]),
    ("web1", ["cmd.run"], [["uptime"]]),
    ("web1", ["cmd.run"], [["reboot"]]),
    ("web1", ["test.kwarg"], [[{"__kwarg__": True, "a": "1"}]]),
    ("db1", ["grains.items"], [[]]),
    ("db1", ["state.apply"], [[]]),
]

CALLS = [
    ("@runner", "jobs.list_jobs"),
    ("@runner", "jobs.active"),
    ("@runner", "manage.up"),
    ("@wheel", "key.list_all"),
    ("@wheel", "key.accept"),
]

MINIONS = ("web1", "web2", "db1")

#: Reads rows, jobs and calls; writes {row: [what Salt's functions say of each]}.
SALTS = """
import fnmatch, json, sys
from salt.utils.minions import CkMinions
class Checked(CkMinions):
    def __init__(self): self.opts = {}
    def check_minions(self, expr, tgt_type="glob", **kwargs):
        return {"minions": [m for m in ("web1", "web2", "db1") if fnmatch.fnmatch(m, expr)], "missing": []}
    def __del__(self): pass
rows, jobs, calls = json.load(sys.stdin)
found = {}
for name, row in rows.items():
    ck = Checked()
    said = []
    for tgt, funs, args in jobs:
        said.append(bool(ck.auth_check(row, funs if len(funs) > 1 else funs[0], args if len(funs) > 1 else args[0], tgt, "glob")))
    for form, fun in calls:
        check = ck.runner_check if form == "@runner" else ck.wheel_check
        said.append(check(row, fun, {"arg": [], "kwarg": {}}) is True)
    found[name] = said
print(json.dumps(found))
"""


def ours(row: Sequence[Any]) -> list[bool]:
    said = []
    for tgt, funs, args in JOBS:
        meant = set(matching(MINIONS, tgt))
        calls = [_call(fun, given) for fun, given in zip(funs, args, strict=True)]
        barred = barred_functions(
            "publisher_acl", row, calls, lambda target, meant=meant: meant <= set(matching(MINIONS, target))
        )
        said.append(not barred)
    return [*said, *(may_use("publisher_acl", row, policy, PeerCall(fun)) for policy, fun in CALLS)]


def _call(fun: str, given: list[Any]) -> PeerCall:
    named = [one for one in given if isinstance(one, dict)]
    kwargs = {name: value for one in named for name, value in one.items() if name != "__kwarg__"}
    return PeerCall(fun, [one for one in given if not isinstance(one, dict)], kwargs)


@pytest.mark.oracle
def test_publisher_acl_as_salt(oracle: Oracle) -> None:
    said = json.loads(oracle.run("python", "-c", SALTS, stdin=json.dumps([ROWS, JOBS, CALLS])))
    assert {name: ours(row) for name, row in ROWS.items()} == said


def test_find_job_needs_a_right_as_any_function() -> None:
    """The question of a waiting `salt` needs none: ``question_of``, tests/security/test_find_job.py."""
    for option in ("control_acl", "publisher_acl"):
        calls = [PeerCall("saltutil.find_job"), PeerCall("cmd.run")]
        assert barred_functions(option, (), calls, lambda target: True) == ["saltutil.find_job", "cmd.run"]


@pytest.mark.parametrize(
    ("control", "publisher", "client", "own", "found"),
    [
        ({"*": [".*"]}, {}, "cli", True, ("control_acl", [".*"])),
        ({"*": [".*"]}, {}, "ann", False, ("control_acl", [".*"])),
        ({"*": [".*"]}, {"ann": ["test."]}, "ann", False, ("publisher_acl", ["test."])),
        ({"*": [".*"]}, {"ann": ["test."]}, "bob", False, ("publisher_acl", ())),
        ({"*": [".*"]}, {"ann": ["test."]}, "cli", True, ("control_acl", [".*"])),
        ({"ann": ["cmd.run"]}, {"ann": ["test."]}, "ann", False, ("control_acl", ["cmd.run"])),
        ({}, {}, "ann", False, ("control_acl", ())),
    ],
    ids=str,
)
def test_which_row_counts(control: Any, publisher: Any, client: str, own: bool, found: Any) -> None:
    assert rows_of(control, publisher, client, own=own) == found


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
