"""The pass ``invert_requisite_in``: the named state gets the requisite."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Compile, low, told

TURNED: dict[str, tuple[str, dict[str, Any]]] = {
    "require_in": ("- require_in: [{test: t}]", {"require": [{"test": "x"}]}),
    "watch_in": ("- watch_in: [{test: t}]", {"watch": [{"test": "x"}]}),
    "onfail_in": ("- onfail_in: [{test: t}]", {"onfail": [{"test": "x"}]}),
    "onchanges_in": ("- onchanges_in: [{test: t}]", {"onchanges": [{"test": "x"}]}),
    "prereq_in": ("- prereq_in: [{test: t}]", {"prereq": [{"test": "x"}]}),
    "by name": ("- require_in: [{test: named}]", {"require": [{"test": "x"}]}),
    "an ID alone": ("- require_in: [t]", {"require": [{"test": "x"}]}),
    "a name alone": ("- require_in: [named]", {"require": [{"test": "x"}]}),
    "a map instead of a list": ("- require_in: {test: t}", {"require": [{"test": "x"}]}),
    "each once, however many are named": ("- require_in: [{test: x2}, {test: t}]", {"require": [{"test": "x"}]}),
    "a map of an SLS": ("- require_in: {sls: b}", {"require": [{"test": "x"}]}),
    "two kinds": (
        "- require_in: [{test: t}]\n    - watch_in: [{test: t}]",
        {"require": [{"test": "x"}], "watch": [{"test": "x"}]},
    ),
    "nobody": ("- require_in: [nothing-of-the-kind]", {}),
}

KINDS = ("require", "watch", "onfail", "onchanges", "prereq")

FAULTS = {
    "unknown ID": (
        "x:\n  test.nop:\n    - require_in: [{test: tt}]\nttt: test.nop\n",
        ["a.sls:1 Cannot extend ID 'tt' in 'base:a'. It is not part of the high state."],
    ),
    "two modules of which the first is not there": (
        "x:\n  test.nop:\n    - require_in: [{cmd: t}, {test: t}]\nt: test.nop\n",
        ["a.sls:1 Cannot extend ID 't' in 'base:a'. It is not part of the high state."],
    ),
    "a text": (
        "x:\n  test.nop:\n    - require_in: t\nt: test.nop\n",
        ["a.sls:3 The require_in statement in state 'x' in SLS 'a' needs to be formed as a list"],
    ),
    "in one entry with another": (
        "x:\n  test.nop:\n    - name: y\n      require_in: [{test: t}]\nt: test.nop\n",
        ["a.sls:4 Multiple dictionaries defined in argument of state 'x' in SLS 'a'"],
    ),
    "another module": (
        "x:\n  test.nop:\n    - require_in: [{cmd: t}]\nt: test.nop\n",
        ["a.sls:1 Cannot extend ID 't' in 'base:a'. It is not part of the high state."],
    ),
    "a function": (
        "y: test.nop\nx:\n  test.nop:\n    - watch_in: [{test.nop: y}]\n",
        [
            "a.sls:2 Invalid requisite in watch: test.nop for y, in SLS 'a'. Requisites must not contain dots, did you mean"
            " 'test'?"
        ],
    ),
}


@pytest.mark.parametrize(("argument", "expected"), TURNED.values(), ids=TURNED)
def test_turned(compiled: Compile, argument: str, expected: dict[str, Any]) -> None:
    text = f"include: [b]\nx:\n  test.nop:\n    {argument}\nx2: test.nop\n"
    found = compiled({"a.sls": text, "b.sls": "t:\n  test.nop: [{name: named}]\n"})
    assert told(found.faults) == []
    assert {key: value for key, value in low(found, "t").items() if key in KINDS} == expected


@pytest.mark.parametrize(("text", "faults"), FAULTS.values(), ids=FAULTS)
def test_faults(compiled: Compile, text: str, faults: list[str]) -> None:
    assert told(compiled({"a.sls": text}).faults) == faults


def test_a_whole_sls(compiled: Compile) -> None:
    found = compiled(
        {
            "a.sls": "include: [b]\nx:\n  test.nop:\n    - require_in: [{sls: b}]\n",
            "b.sls": "p: test.nop\nq: test.nop\n",
        }
    )
    assert [low(found, id_)["require"] for id_ in "pq"] == [[{"test": "x"}], [{"test": "x"}]]


def test_added_to_what_is_there(compiled: Compile) -> None:
    found = compiled(
        {
            "a.sls": "x:\n  test.nop: [{require_in: [{test: t}]}]\ny: test.nop\nt:\n  test.nop: [{require: [{test: y}]}]\n"
        }
    )
    assert low(found, "t")["require"] == [{"test": "y"}, {"test": "x"}]


def test_disabled(compiled: Compile) -> None:
    text = "x:\n  test.nop:\n    - require_in: [{test: t}]\n    - watch: [{test: t}]\nt: test.nop\n"
    found = compiled({"a.sls": text}, disabled_requisites=["require_in", "watch"])
    assert "require" not in low(found, "t")
    assert {"watch", "require_in"} & low(found, "x").keys() == set()


def test_disabled_as_a_text(compiled: Compile) -> None:
    text = "x:\n  test.nop:\n    - require_in: [{test: t}]\nt: test.nop\n"
    assert "require" not in low(compiled({"a.sls": text}, disabled_requisites="require_in"), "t")


def test_a_module_that_the_id_has_not_is_passed_over_behind_one_that_it_has(compiled: Compile) -> None:
    """As in Salt, only the first named state module must exist in the target ID."""
    found = compiled({"a.sls": "x:\n  test.nop:\n    - require_in: [{test: t}, {cmd: t}]\nt: test.nop\n"})
    assert told(found.faults) == []
    assert [(chunk["state"], chunk["__id__"]) for chunk in found.chunks] == [("test", "x"), ("test", "t")]
