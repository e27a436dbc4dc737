"""The passes ``number_states`` and ``sort``: automatic order numbers, and the sorted run list."""

from __future__ import annotations

import pytest

from .conftest import Compile, low, order

SORTED = {
    "as declared": ("z: test.nop\ny: test.nop\n", "z y"),
    "a number before those without": ("z: test.nop\ny:\n  test.nop:\n    - order: 1\n", "y z"),
    "first and last": (
        "l:\n  test.nop:\n    - order: last\nm: test.nop\nf:\n  test.nop:\n    - order: first\n",
        "f m l",
    ),
    "negative from the end": (
        "a:\n  test.nop:\n    - order: -1\nb:\n  test.nop:\n    - order: last\nc:\n  test.nop:\n    - order: -5\nd: test.nop\n",
        "d c a b",
    ),
    "what is no order stands behind all numbers": (
        "a:\n  test.nop:\n    - order: soon\nb: test.nop\nc:\n  test.nop:\n    - order: last\n",
        "b a c",
    ),
    "fractions": (
        "a:\n  test.nop:\n    - order: 1.5\nb:\n  test.nop:\n    - order: 1\nc:\n  test.nop:\n    - order: 2\n",
        "b a c",
    ),
    "equal numbers by module, ID, name": (
        "b:\n  test.nop:\n    - order: 5\na:\n  test.nop:\n    - order: 5\nc:\n  cmd.run:\n    - order: 5\n",
        "c a b",
    ),
    "names in their order": ("b:\n  test.nop:\n    - names: [z, a]\na: test.nop\n", "b b a"),
}


@pytest.mark.parametrize(("text", "expected"), SORTED.values(), ids=SORTED)
def test_sorted(compiled: Compile, text: str, expected: str) -> None:
    assert order(compiled({"a.sls": text})) == expected.split()


def test_numbers_go_on_through_the_includes(compiled: Compile) -> None:
    found = compiled(
        {"a.sls": "include: [b]\nx: test.nop\n", "b.sls": "y: test.nop\nz:\n  test.nop: []\n  cmd.run: []\n"}
    )
    assert [(chunk["__id__"], chunk["state"], chunk["order"]) for chunk in found.chunks] == [
        ("y", "test", 10000),
        ("z", "test", 10001),
        ("z", "cmd", 10002),
        ("x", "test", 10003),
    ]


def test_an_order_that_is_given_takes_no_number(compiled: Compile) -> None:
    found = compiled({"a.sls": "x:\n  test.nop:\n    - order: 7\ny: test.nop\n"})
    assert [chunk["order"] for chunk in found.chunks] == [7, 10000]


def test_without_automatic_order_by_module_and_id(compiled: Compile) -> None:
    found = compiled({"a.sls": "z: test.nop\nb: cmd.run\na: test.nop\n"}, state_auto_order=False)
    assert [(chunk["__id__"], chunk["order"]) for chunk in found.chunks] == [("b", 1), ("a", 1), ("z", 1)]


def test_last_is_behind_the_highest_number(compiled: Compile) -> None:
    found = compiled({"a.sls": "x:\n  test.nop:\n    - order: 5000000\ny:\n  test.nop:\n    - order: last\n"})
    assert low(found, "y")["order"] == 6_000_100
