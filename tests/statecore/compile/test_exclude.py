"""The pass ``exclude``: excluded IDs and SLS files are removed."""

from __future__ import annotations

import pytest

from .conftest import Compile, order, told

FILES = {
    "b.sls": "b1: test.nop\nb2: test.nop\n",
    "c/d.sls": "d: test.nop\n",
    "c/e.sls": "e: test.nop\n",
}

LEFT = {
    "an ID": ("[{id: b1}]", "b2 d e a"),
    "an SLS": ("[{sls: b}]", "d e a"),
    "a glob": ("[{sls: 'c.*'}]", "b1 b2 a"),
    "a text is an SLS": ("[c.d]", "b1 b2 e a"),
    "more": ("[{id: b2}, c.e, {sls: c.d}]", "b1 a"),
    "what is not there": ("[{id: nothing}, nowhere]", "b1 b2 d e a"),
    "nothing": ("[]", "b1 b2 d e a"),
}


@pytest.mark.parametrize(("exclude", "expected"), LEFT.values(), ids=LEFT)
def test_left(compiled: Compile, exclude: str, expected: str) -> None:
    found = compiled({**FILES, "a.sls": f"include: [b, 'c.*']\nexclude: {exclude}\na: test.nop\n"})
    assert told(found.faults) == []
    assert order(found) == expected.split()


def test_an_included_sls_excludes_too(compiled: Compile) -> None:
    found = compiled({**FILES, "a.sls": "include: [b, f]\na: test.nop\n", "f.sls": "exclude: [{id: a}]\n"})
    assert order(found) == ["b1", "b2"]


def test_requisites_of_the_excluded_count_while_they_are_turned(compiled: Compile) -> None:
    """As in Salt, requisite_in are inverted before excluding.

    So a remaining state can require an excluded one, which is a fault.
    """
    found = compiled({"a.sls": "exclude: [{id: x}]\nx:\n  test.nop: [{require_in: [{test: t}]}]\nt: test.nop\n"})
    assert told(found.faults) == [
        "a.sls:4 Referenced state does not exist for requisite [require: (test: x)] in state [t] in SLS [a]"
    ]
