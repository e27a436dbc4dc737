"""The pass ``extend``: extends are merged into their IDs."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Compile, low, told

B = "x:\n  test.nop:\n    - name: n\n    - comment: c\n    - require:\n      - test: y\ny: test.nop\n"

LAID: dict[str, tuple[str, dict[str, Any]]] = {
    "an argument is replaced": (
        "test: [{comment: other}]",
        {"name": "n", "comment": "other", "require": [{"test": "y"}]},
    ),
    "an argument is added": (
        "test: [{more: 1}]",
        {"name": "n", "comment": "c", "require": [{"test": "y"}], "more": 1},
    ),
    "requisites are added to": (
        "test: [{require: [{test: z}]}]",
        {"name": "n", "comment": "c", "require": [{"test": "y"}, {"test": "z"}]},
    ),
    "requisites of another kind": (
        "test: [{watch: [{test: z}]}]",
        {"name": "n", "comment": "c", "require": [{"test": "y"}], "watch": [{"test": "z"}]},
    ),
    "the function": ("test.ping: []", {"name": "n", "comment": "c", "require": [{"test": "y"}]}),
}

FAULTS = {
    "unknown, with what is near": (
        {"a.sls": "include: [b]\nextend:\n  xx:\n    test:\n      - name: z\n", "b.sls": "xxx: test.nop\n"},
        ["a.sls:3 Cannot extend ID 'xx' in 'base:a'. It is not part of the high state."],
        "the nearest ID is 'xxx'",
    ),
    "an argument that is no name": (
        {"a.sls": "extend:\n  c:\n    test: [{more: 1}]\nx:\n  test.nop: [{comment: c}]\n"},
        ["a.sls:2 Cannot extend ID 'c' in 'base:a'. It is not part of the high state."],
        "",
    ),
    "no list": (
        {"a.sls": "x: test.nop\nextend:\n  x:\n    test: {comment: c}\n"},
        ["a.sls:4 State 'x' in SLS 'a' is not formed as a list"],
        "",
    ),
    "no state": (
        {"a.sls": "x: test.nop\nextend:\n  x: {}\n"},
        ["a.sls:3 Extension 'x' in SLS 'a' has no state"],
        "",
    ),
    "unknown, of an SLS that is excluded": (
        {"a.sls": "include: [b]\nexclude: [b]\nx: test.nop\n", "b.sls": "extend:\n  qq:\n    test: [{comment: c}]\n"},
        ["b.sls:2 Cannot extend ID 'qq' in 'base:b'. It is not part of the high state."],
        "",
    ),
    "two of that name": (
        {
            "a.sls": "extend:\n  n:\n    test:\n      - order: 1\nx:\n  test.nop: [{name: n}]\ny:\n  test.nop: [{name: n}]\n"
        },
        ["a.sls:2 Cannot extend ID 'n' in 'base:a'. It is not part of the high state."],
        "",
    ),
}


@pytest.mark.parametrize(("body", "expected"), LAID.values(), ids=LAID)
def test_laid_over(compiled: Compile, body: str, expected: dict[str, Any]) -> None:
    found = compiled({"a.sls": f"include: [b]\nextend:\n  x: {{{body}}}\nz: test.nop\n", "b.sls": B})
    assert told(found.faults) == []
    chunk = low(found, "x")
    assert {key: chunk.get(key) for key in expected} == expected
    assert next(each["fun"] for each in found.chunks if each["__id__"] == "x") == ("ping" if "ping" in body else "nop")


@pytest.mark.parametrize(("files", "faults", "hint"), FAULTS.values(), ids=FAULTS)
def test_faults(compiled: Compile, files: dict[str, str], faults: list[str], hint: str) -> None:
    found = compiled(files)
    assert told(found.faults) == faults
    assert found.faults[0].hint == hint


def test_by_the_name_of_a_state(compiled: Compile) -> None:
    found = compiled({"a.sls": "include: [b]\nextend:\n  n:\n    test: [{comment: other}]\n", "b.sls": B})
    assert low(found, "x")["comment"] == "other"


def test_a_name_takes_the_place_of_names(compiled: Compile) -> None:
    found = compiled(
        {
            "a.sls": "include: [b]\nextend:\n  x:\n    test: [{name: one}]\n",
            "b.sls": "x:\n  test.nop: [{names: [p, q]}]\n",
        }
    )
    assert low(found, "x")["name"] == "one"


def test_another_module(compiled: Compile) -> None:
    found = compiled({"a.sls": "include: [b]\nextend:\n  y:\n    cmd.run: [{name: 'true'}]\n", "b.sls": B})
    assert [(chunk["state"], chunk["name"]) for chunk in found.chunks if chunk["__id__"] == "y"] == [
        ("test", "y"),
        # The order of the file is given already; what an extend adds comes behind it.
        ("cmd", "true"),
    ]


def test_the_first_extend_is_laid_first(compiled: Compile) -> None:
    found = compiled(
        {
            "a.sls": "include: [b]\nextend:\n  y:\n    test: [{comment: a}]\n",
            "b.sls": B,
            "c.sls": "include: [b]\nextend:\n  y:\n    test: [{comment: c}]\n",
        },
        matches={"base": ["a", "c"]},
    )
    assert low(found, "y")["comment"] == "c"


def test_what_is_included_is_laid_over_what_its_includer_lays(compiled: Compile) -> None:
    """As in Salt, the extends of an included SLS are applied after those of its includer, because an SLS is opened
    before its includes.
    """
    found = compiled(
        {
            "a.sls": "include: [b, c]\nextend:\n  y:\n    test: [{comment: a}]\n",
            "b.sls": B,
            "c.sls": "include: [b]\nextend:\n  y:\n    test: [{comment: c}]\n",
        }
    )
    assert low(found, "y")["comment"] == "c"


def test_an_excluded_sls_extends_nothing(compiled: Compile) -> None:
    found = compiled(
        {
            "a.sls": "include: [b, c]\nexclude: [{sls: c}]\n",
            "b.sls": B,
            "c.sls": "include: [b]\nextend:\n  y:\n    test: [{comment: c}]\n",
        }
    )
    assert "comment" not in low(found, "y")


def test_what_is_extended_stays_as_it_was_shown(compiled: Compile) -> None:
    """Passes do not change their input."""
    found = compiled(
        {"a.sls": "include: [b]\nextend:\n  x:\n    test: [{require: [{test: z}]}]\nz: test.nop\n", "b.sls": B}
    )
    assert found.high["x"]["test"][2] == {"require": [{"test": "y"}]}
