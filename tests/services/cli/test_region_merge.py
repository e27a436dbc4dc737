"""The merge of several regions' answers: a return counts before silence, each minion is shown once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saltern.cli.region_merge import RegionMerge, ReturnKind
from saltern.cli.return_printer import Absence


def absence(state: str = "expected", key: str | None = None, age: float | None = None) -> Absence:
    return Absence({"return": state, "state": state, "retcode": 1}, None if key is None else {"key": key, "age": age})


def load(value: Any, retcode: int = 0) -> dict[str, Any]:
    return {"return": value, "retcode": retcode}


def test_a_return_counts_before_the_silence_of_another_region() -> None:
    merge = RegionMerge(["eu", "us"])
    assert merge.published("eu", ["a", "b"]) == ["a", "b"]
    assert merge.published("us", ["b", "a", "c"]) == ["c"]
    merge.absent("us", "a", absence("offline"))
    assert merge.given_up() == []
    assert merge.returned("eu", "a", load(True)) is ReturnKind.FIRST
    merge.returned("eu", "b", load(True))
    assert not merge.settled
    merge.returned("us", "c", load(True))
    assert merge.settled
    # The regions where they are not need not be waited for.
    assert merge.given_up() == []


def test_nobody_is_given_up_before_each_master_has_answered() -> None:
    merge = RegionMerge(["eu", "us"])
    merge.published("eu", ["a"])
    merge.absent("eu", "a", absence())
    assert merge.given_up() == []
    assert not merge.settled
    merge.published("us", ["a"])
    assert merge.given_up() == []
    merge.absent("us", "a", None)
    assert merge.given_up() == [("a", absence())]
    assert merge.given_up() == []
    assert merge.settled


def test_a_region_that_fails_before_it_publishes_is_not_waited_for() -> None:
    merge = RegionMerge(["eu", "us"])
    merge.published("eu", ["a"])
    merge.absent("eu", "a", None)
    assert merge.ended("us") == []
    assert merge.given_up() == [("a", None)]
    assert merge.settled


def test_a_region_that_fails_later_names_those_that_it_owes() -> None:
    merge = RegionMerge(["eu", "us"])
    merge.published("eu", ["a", "b", "c"])
    merge.published("us", ["b"])
    merge.returned("eu", "c", load(True))
    assert merge.ended("eu") == ["a", "b"]
    for minion in ("a", "b"):
        merge.absent("eu", minion, absence())
    assert merge.given_up() == [("a", absence())]
    merge.returned("eu", "b", load(True))
    assert merge.settled


@pytest.mark.parametrize(
    ("second", "kind"),
    [
        (load(1), ReturnKind.REPEATED),
        (load(2), ReturnKind.DIFFERENT),
        (load(1, 3), ReturnKind.DIFFERENT),
        ({**load(1), "cmd": "_return"}, ReturnKind.REPEATED),
    ],
)
def test_a_minion_that_returns_in_two_regions_is_shown_once(second: dict[str, Any], kind: ReturnKind) -> None:
    merge = RegionMerge(["eu", "us"])
    merge.published("eu", ["a"])
    merge.published("us", ["a"])
    assert merge.returned("eu", "a", load(1)) is ReturnKind.FIRST
    assert merge.returned("us", "a", second) is kind


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (absence("started"), absence("offline", "accepted", 1)),
        (absence("lost", "accepted", 9), absence("offline", "accepted", 1)),
        (absence("offline", "accepted", 5), absence("offline", "accepted", 50)),
        (absence("offline", "accepted", 5), absence("offline", "accepted", None)),
        (absence("expected", "accepted", 50), absence("expected", "rejected", 5)),
        (absence("expected", "rejected", 5), absence("expected")),
        (absence("expected"), None),
    ],
)
def test_the_region_that_knows_most_speaks_for_a_silent_minion(one: Absence, other: Absence | None) -> None:
    for first, second in ((one, other), (other, one)):
        merge = RegionMerge(["eu", "us"])
        merge.published("eu", ["a"])
        merge.published("us", ["a"])
        merge.absent("eu", "a", first)
        merge.absent("us", "a", second)
        assert merge.given_up() == [("a", one)]


@given(st.data())
def test_each_minion_is_settled_once_whatever_the_order(data: st.DataObject) -> None:
    regions, minions = ["eu", "us", "ap"], ["a", "b", "c"]
    has = {region: data.draw(st.sets(st.sampled_from(minions))) for region in regions}
    # What happens in each region, in its order: publication, outcomes, end.
    scripts = {
        region: [
            ("published", ""),
            *((data.draw(st.sampled_from(["returned", "absent"])), minion) for minion in sorted(has[region])),
            ("ended", ""),
        ]
        for region in regions
    }
    merge = RegionMerge(regions)
    shown: list[str] = []
    returned: set[str] = set()
    while any(scripts.values()):
        region = data.draw(st.sampled_from([name for name in regions if scripts[name]]))
        what, minion = scripts[region].pop(0)
        if what == "published":
            merge.published(region, has[region])
        elif what == "returned":
            returned.add(minion)
            if merge.returned(region, minion, load(1)) is ReturnKind.FIRST:
                shown.append(minion)
        elif what == "absent":
            merge.absent(region, minion, absence())
        else:
            assert set(merge.ended(region)) <= set(minions) - returned
        shown += [name for name, _ in merge.given_up()]
    assert merge.settled
    assert sorted(shown) == sorted(set().union(*has.values()))
