"""The pass ``apply_use``: arguments copied from another state."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Compile, low, told

LENDER = "l:\n  test.nop:\n    - name: lent\n    - p: 1\n    - q: 2\n    - order: 3\n    - require: [{test: z}]\nz: test.nop\n"

LENT: dict[str, tuple[str, dict[str, Any]]] = {
    "use": ("b:\n  test.nop: [{use: [{test: l}]}]\n", {"p": 1, "q": 2}),
    "its own wins": ("b:\n  test.nop: [{q: own}, {use: [{test: l}]}]\n", {"p": 1, "q": "own"}),
    "by name": ("b:\n  test.nop: [{use: [{test: lent}]}]\n", {"p": 1, "q": 2}),
    "a map instead of a list": ("b:\n  test.nop: [{use: {test: l}}]\n", {"p": 1, "q": 2}),
    "an ID alone": ("b:\n  test.nop: [{use: [l]}]\n", {"p": 1, "q": 2}),
    "of two the later one": (
        "b:\n  test.nop: [{use: [{test: l}, {test: m}]}]\nm:\n  test.nop: [{p: 3}]\n",
        {"p": 3, "q": 2},
    ),
    "a whole SLS": ("b:\n  test.nop: [{use: [{sls: a}]}]\n", {"p": 1, "q": 2}),
    "from nobody": ("b:\n  test.nop: [{use: [{test: nobody}]}]\n", {}),
    "from another module": ("b:\n  test.nop: [{use: [{cmd: l}]}]\n", {}),
    "from itself": ("b:\n  test.nop: [{p: 5}, {use: [{test: b}]}]\n", {"p": 5}),
    "use_in": ("b: test.nop\nc:\n  test.nop: [{p: 7}, {name: c}, {use_in: [{test: b}]}]\n", {"p": 7}),
}


@pytest.mark.parametrize(("text", "expected"), LENT.values(), ids=LENT)
def test_lent(compiled: Compile, text: str, expected: dict[str, Any]) -> None:
    found = compiled({"a.sls": text + LENDER})
    assert told(found.faults) == []
    chunk = low(found, "b")
    assert {key: chunk[key] for key in "pq" if key in chunk} == expected
    assert chunk["name"] == "b"
    assert "require" not in chunk
    assert chunk["order"] == 10000


def test_requisites_that_salt_lends(compiled: Compile) -> None:
    found = compiled(
        {
            "a.sls": "l:\n  test.nop: [{listen: [{test: z}]}, {require_any: [{test: z}]}, {watch: [{test: z}]}]\nz: test.nop\n"
            "b:\n  test.nop: [{use: [{test: l}]}]\n"
        }
    )
    assert {"listen", "require_any", "watch"} & low(found, "b").keys() == {"listen", "require_any"}


def test_a_function_in_place_of_a_module(compiled: Compile) -> None:
    found = compiled({"a.sls": "l: test.nop\nb:\n  test.nop: [{use: [{test.nop: l}]}]\n"})
    assert told(found.faults) == [
        "a.sls:2 Invalid requisite in use: test.nop for l, in SLS 'a'. Requisites must not contain dots, did you mean 'test'?"
    ]
