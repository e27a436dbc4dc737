"""The pass ``conflicts.join``: SLS files become one map of IDs; an ID belongs to one SLS."""

from __future__ import annotations

import pytest

from .conftest import Compile, order, told

FAULTS = {
    "one ID in two SLS": (
        {"a.sls": "include: [b]\nx: test.nop\nsame:\n  test.nop: []\n", "b.sls": "\nsame: test.nop\n"},
        ["b.sls:2 Detected conflicting IDs, SLS IDs need to be globally unique."],
    ),
    "extend is no map": (
        {"a.sls": "x: test.nop\nextend: [b]\n"},
        ["a.sls:2 Extension value in SLS 'a' is not a dictionary"],
    ),
    "an extended ID is no map": (
        {"a.sls": "extend:\n  x: 3\nx: test.nop\n"},
        ["a.sls:2 Extension name 'x' in SLS 'a' is not a dictionary"],
    ),
    "nothing below extend": (
        {"a.sls": "x: test.nop\nextend:\n"},
        ["a.sls:2 Extension value in SLS 'a' is not a dictionary"],
    ),
    "nothing below exclude": (
        {"a.sls": "x: test.nop\nexclude:\n"},
        ["a.sls:2 Exclude Declaration in SLS a is not formed as a list"],
    ),
    "an exclude of another form": (
        {"a.sls": "x: test.nop\nexclude:\n  - sld: b\n  - [b]\n  - id: 5\n"},
        ["a.sls:2 An exclude of SLS 'a' is not an SLS, sls: SLS or id: ID"] * 3,
    ),
    "exclude is no list": (
        {"a.sls": "x: test.nop\nexclude: b\n"},
        ["a.sls:2 Exclude Declaration in SLS a is not formed as a list"],
    ),
}


@pytest.mark.parametrize(("files", "faults"), FAULTS.values(), ids=FAULTS)
def test_faults(compiled: Compile, files: dict[str, str], faults: list[str]) -> None:
    assert told(compiled(files).faults) == faults


def test_both_places_of_a_conflict(compiled: Compile) -> None:
    (fault,) = compiled({"a.sls": "include: [b]\nsame: test.nop\n", "b.sls": "\nsame: test.nop\n"}).faults
    assert "'same' and is found in SLS 'base:a' and SLS 'base:b'" in fault.message
    assert fault.hint.endswith("a.sls:2")
    assert fault.excerpt.splitlines()[1] == "same: test.nop    <======================"


def test_two_environments_share_no_id(compiled: Compile) -> None:
    found = compiled(
        {"a.sls": "same: test.nop\n"}, dev={"d.sls": "same: test.nop\n"}, matches={"base": ["a"], "dev": ["d"]}
    )
    assert "'base:a' and SLS 'dev:d'" in found.faults[0].message


def test_one_sls_asked_for_twice_conflicts_with_nothing(compiled: Compile) -> None:
    assert order(compiled({"a.sls": "x: test.nop\n"}, matches={"base": ["a", "a", "*"]})) == ["x"]


def test_high_data_tells_where_it_is_from(compiled: Compile) -> None:
    assert compiled({"a.sls": "include: [b]\nx: test.nop\n", "b.sls": "y:\n  test.nop:\n    - name: z\n"}).high == {
        "y": {
            "test": [{"name": "z"}, "nop", {"order": 10000}],
            "__sls__": "b",
            "__env__": "base",
            "__sls_included_from__": ["a"],
        },
        "x": {"test": ["nop", {"order": 10001}], "__sls__": "a", "__env__": "base"},
    }


def test_high_data_shows_what_is_still_to_be_done(compiled: Compile) -> None:
    high = compiled({"a.sls": "extend:\n  x:\n    test.nop: []\nexclude: [{id: y}]\nx: test.nop\ny: test.nop\n"}).high
    assert high["__extend__"] == [{"x": {"test": ["nop"], "__sls__": "a", "__env__": "base"}}]
    assert high["__exclude__"] == [{"id": "y"}]
