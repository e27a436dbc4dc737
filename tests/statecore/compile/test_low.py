"""The passes ``make_chunks`` and ``expand_names``: low chunks."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Compile, low, told

NAMES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "each its chunk": (
        "[p, q]",
        [{"name": "p", "v": 1, "order": 10000.0001}, {"name": "q", "v": 1, "order": 10000.0002}],
    ),
    "one overridden": (
        "[p, q: [v: 2, w: 3]]",
        [{"name": "p", "v": 1, "order": 10000.0001}, {"name": "q", "v": 2, "w": 3, "order": 10000.0002}],
    ),
    "overridden by a map": ("[q: {v: 2}]", [{"name": "q", "v": 2, "order": 10000.0001}]),
    "twice is once": ("[p, p]", [{"name": "p", "v": 1, "order": 10000.0001}]),
    "numbers are texts": ("[8080]", [{"name": "8080", "v": 1, "order": 10000.0001}]),
    "none at all": ("[]", [{"name": "x", "v": 1, "order": 10000}]),
}


def test_a_chunk(compiled: Compile) -> None:
    assert compiled({"a.sls": "x:\n  test.nop:\n    - name: n\n    - v: [1]\n"}).chunks == (
        {
            "state": "test",
            "name": "n",
            "__sls__": "a",
            "__env__": "base",
            "__id__": "x",
            "v": [1],
            "order": 10000,
            "fun": "nop",
        },
    )


@pytest.mark.parametrize(
    ("argument", "name"),
    [("name: n", "n"), ("name: 5", "x"), ("name: null", "x"), ("name: [n]", "x"), ("other: n", "x")],
)
def test_the_name(compiled: Compile, argument: str, name: str) -> None:
    assert low(compiled({"a.sls": f"x:\n  test.nop:\n    - {argument}\n"}), "x")["name"] == name


def test_an_argument_cannot_change_the_module(compiled: Compile) -> None:
    (chunk,) = compiled({"a.sls": "x:\n  test.nop:\n    - state: cmd\n"}).chunks
    assert chunk["state"] == "test"


def test_of_equal_arguments_the_last_counts(compiled: Compile) -> None:
    assert low(compiled({"a.sls": "x:\n  test.nop: [{v: 1}, {v: 2}]\n"}), "x")["v"] == 2


@pytest.mark.parametrize(("names", "expected"), NAMES.values(), ids=NAMES)
def test_names(compiled: Compile, names: str, expected: list[dict[str, Any]]) -> None:
    found = compiled({"a.sls": f"x:\n  test.nop:\n    - v: 1\n    - names: {names}\n"})
    keys = {"name", "v", "w", "order"}
    assert [{key: chunk[key] for key in chunk if key in keys} for chunk in found.chunks] == expected


def test_chunks_of_names_share_nothing(compiled: Compile) -> None:
    one, other = compiled({"a.sls": "x:\n  test.nop:\n    - list: [1]\n    - names: [p, q]\n"}).chunks
    one["list"].append(2)
    assert other["list"] == [1]


REQUIRED = {
    "there": ({"a.sls": "include: [b]\nx:\n  test.nop: [{require: [{sls: b}]}]\n", "b.sls": "y: test.nop\n"}, []),
    "there, and empty": ({"a.sls": "include: [b]\nx:\n  test.nop: [{require: [{sls: b}]}]\n", "b.sls": ""}, []),
    "one that only includes": (
        {
            "a.sls": "include: [b]\nx:\n  test.nop: [{require: [{sls: b}]}]\n",
            "b.sls": "include: [c]\n",
            "c.sls": "y: test.nop\n",
        },
        [],
    ),
    "a glob may match nothing": ({"a.sls": "x:\n  test.nop: [{require: [{sls: 'b*'}]}]\n"}, []),
    "not there": (
        {"a.sls": "x:\n  test.nop:\n    - name: n\n    - watch:\n      - sls: b\n"},
        ["a.sls:4 Referenced state does not exist for requisite [watch: (sls: b)] in state [n] in SLS [a]"],
    ),
    "excluded": (
        {"a.sls": "include: [b]\nexclude: [b]\nx:\n  test.nop: [{require: [{sls: b}]}]\n", "b.sls": "y: test.nop\n"},
        ["a.sls:4 Referenced state does not exist for requisite [require: (sls: b)] in state [x] in SLS [a]"],
    ),
}


@pytest.mark.parametrize(("files", "faults"), REQUIRED.values(), ids=REQUIRED)
def test_required_sls(compiled: Compile, files: dict[str, str], faults: list[str]) -> None:
    assert told(compiled(files).faults) == faults


def test_a_mistyped_sls_is_named(compiled: Compile) -> None:
    files = {"a.sls": "include: [web]\nx:\n  test.nop: [{require: [{sls: wbe}]}]\n", "web.sls": "y: test.nop\n"}
    assert compiled(files).faults[0].hint == "the nearest is 'web'"


def test_an_id_that_is_missing_is_named(compiled: Compile) -> None:
    (fault,) = compiled({"a.sls": "x:\n  test.nop: [{require: [{test: nothin}]}]\nnothing: test.nop\n"}).faults
    assert (fault.mark and fault.mark.line, fault.hint) == (2, "the nearest is 'nothing'")
