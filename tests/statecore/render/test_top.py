"""Top files: errors with their lines, and cases that are not compared with real Salt."""

from __future__ import annotations

import pytest

from statecore.model.errors import SlsError

from .conftest import Plant, fault_of

FAULTS = {
    "not a map": ("- a\n", "top.sls:1", "The top file must be a map of environments"),
    "an environment that is no map": (
        "# x\nbase: [a]\n",
        "top.sls:2",
        "The top file matches for saltenv base are not formatted as a dict",
    ),
    "a text for a list": (
        "base:\n  '*': [a]\n  'web*': a\n",
        "top.sls:3",
        "Malformed topfile: state declarations for matcher 'web*' in saltenv 'base' are not formed as a list (got str)",
    ),
    "no list at all": (
        "base:\n  '*':\n",
        "top.sls:2",
        "Malformed topfile: state declarations for matcher '*' in saltenv 'base' are not formed as a list (got NoneType)",
    ),
    "an environment that is a number": (
        "5:\n  '*': [a]\n",
        "top.sls:1",
        "Environment 5 in top file is not formed as a string",
    ),
    "an empty environment": ("'':\n  '*': [a]\n", "top.sls:1", "Empty saltenv statement in top file"),
    "an empty option": (
        "base:\n  '*':\n    - match:\n    - a\n",
        "top.sls:2",
        "Improperly formatted top file matcher in saltenv base: {'match': None}",
    ),
    "a number for a reference": (
        "base:\n  '*': [a, 5]\n",
        "top.sls:2",
        "Environment base contains 5, which is not an SLS reference",
    ),
    "an empty reference": ("base:\n  '*': ['']\n", "top.sls:2", "Environment base contains an empty sls index"),
    "Jinja": (
        "base:\n  '*': [{{ nothing }}]\n",
        "top.sls:2",
        "Rendering SLS 'base:top' failed: Jinja variable 'nothing' is undefined; line 2",
    ),
    "an expression": (
        "base:\n  'G@os:Debian and (': [a]\n",
        "",
        "The top file's target 'G@os:Debian and (' cannot be understood",
    ),
    "a matcher": ("base:\n  'x':\n    - match: moon\n    - a\n", "", "The top file's target 'x' cannot be understood"),
}


@pytest.mark.parametrize(("text", "place", "message"), FAULTS.values(), ids=FAULTS)
def test_faults(planted: Plant, text: str, place: str, message: str) -> None:
    tree = planted({"top.sls": text})
    found = fault_of(tree.top)
    assert found[0] == place
    assert found[1].startswith(message)


def test_every_fault_is_told(planted: Plant) -> None:
    tree = planted({"top.sls": "base:\n  a: x\n  b: y\ndev: []\n"})
    with pytest.raises(SlsError) as caught:
        tree.top()
    assert [fault.mark.line for fault in caught.value.faults if fault.mark] == [2, 3, 4]


def test_no_top_file(planted: Plant) -> None:
    assert planted({"a.sls": ""}).top() == {}


def test_another_delimiter(planted: Plant) -> None:
    top = "base:\n  'path|to|it':\n    - match: grain\n    - delimiter: '|'\n    - a\n"
    assert planted({"top.sls": top}, grains={"path": {"to": "it"}}).top() == {"base": ["a"]}


def test_an_included_top_file_may_include(planted: Plant) -> None:
    files = {
        "top.sls": "include: [x]\n",
        "x.sls": "include: [y, x]\nbase:\n  '*': [a]\n",
        "y.sls": "base:\n  w*: [b]\n",
    }
    assert planted(files).top() == {"base": ["a", "b"]}


def test_an_unknown_strategy_is_merge(planted: Plant) -> None:
    tree = planted({"top.sls": "base:\n  '*': [a]\n"}, opts={"top_file_merging_strategy": "nothing"})
    assert tree.top() == {"base": ["a"]}
