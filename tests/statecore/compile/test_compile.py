"""The compiler's passes together: their order, literal high data, and that the input is not changed."""

from __future__ import annotations

import copy
from typing import Any

from statecore.compile import PASSES, compile_high

from .conftest import Compile, told


def test_the_order_of_the_passes() -> None:
    assert [step.__name__ for step in PASSES] == [
        *("include", "join", "expand", "number_states", "extend", "check", "invert_requisite_in", "apply_use"),
        *("exclude", "make_chunks", "expand_names", "resolve", "sort"),
    ]


def test_literal_high_data() -> None:
    high: dict[str, Any] = {
        "x": {"test.nop": [{"name": "n"}]},
        "y": {"test": ["nop", {"order": 1}, {"require_in": [{"test": "x"}]}]},
        "z": "test.nop",
        "__extend__": [{"x": {"test": [{"v": 1}]}}],
        "__exclude__": [{"id": "z"}],
    }
    before = copy.deepcopy(high)
    found = compile_high(high, {})
    assert found.faults == ()
    assert [(low["__id__"], low["order"]) for low in found.chunks] == [("y", 1), ("x", 101)]
    assert found.chunks[1] | {"order": 0} == {
        "state": "test",
        "name": "n",
        "__id__": "x",
        "v": 1,
        "require": [{"test": "y"}],
        "order": 0,
        "fun": "nop",
    }
    assert high == before


def test_literal_high_data_that_is_malformed() -> None:
    found = compile_high({"x": {"test": []}, "y": 5}, {})
    assert told(found.faults) == [
        "ID y in SLS None is not a dictionary",
        "No function declared in state 'x' in SLS 'None'",
    ]
    assert told(compile_high({"x": {"test": []}}, {}).faults) == ["No function declared in state 'x' in SLS 'None'"]


def test_compiling_twice_gives_the_same(compiled: Compile) -> None:
    found = compiled({"a.sls": "x:\n  test.nop: [{names: [p, q]}]\ny:\n  test.nop: [{require_in: [{test: x}]}]\n"})
    high = copy.deepcopy(found.high)
    again = compile_high(found.high, {})
    assert [low["name"] for low in again.chunks] == [low["name"] for low in found.chunks]
    assert found.high == high


def test_faults_leave_no_chunks(compiled: Compile) -> None:
    found = compiled({"a.sls": "x: test.nop\ny:\n  test: []\n"})
    assert len(found.faults) == 1
    assert found.chunks == ()
    assert set(found.high) == {"x", "y"}
