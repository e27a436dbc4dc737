"""Ranges: what stands for them, on a master that may ask, and on minions, which may not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from statecore.model.errors import TargetError
from statecore.targeting.match import Subject, compile_target, expanded_target, listed_ids

KNOWN = {"%web": ["web1", "web2"], "%db": ["db1"], "%none": []}

GROUPS = {"front": "R@%web and not web2", "front2": "N@front or R@%db"}


def ranges(expression: str) -> Sequence[str]:
    if expression not in KNOWN:
        raise TargetError(f"no cluster {expression}")
    return KNOWN[expression]


CASES: list[tuple[Any, str, tuple[Any, str], set[str]]] = [
    ("%web", "range", (["web1", "web2"], "list"), {"web1", "web2"}),
    ("%none", "range", ([], "list"), set()),
    ("R@%web and not web2", "compound", ("L@web1,web2 and not web2", "compound"), {"web1"}),
    ("R@%none or db1", "compound", ("L@ or db1", "compound"), {"db1"}),
    (["R@%web", "or", "R@%db"], "compound", ("L@web1,web2 or L@db1", "compound"), {"web1", "web2", "db1"}),
    ("not R@%web", "compound", ("not L@web1,web2", "compound"), {"db1"}),
    ("front", "nodegroup", ("( L@web1,web2 and not web2 )", "compound"), {"web1"}),
    (
        "front2",
        "nodegroup",
        ("( ( L@web1,web2 and not web2 ) or L@db1 )", "compound"),
        {"web1", "db1"},
    ),
]


@pytest.mark.parametrize(("tgt", "tgt_type", "spelled", "meant"), CASES)
def test_a_range_is_its_minions(tgt: Any, tgt_type: str, spelled: tuple[Any, str], meant: set[str]) -> None:
    assert expanded_target(tgt, tgt_type, GROUPS, ranges) == spelled
    everybody = [Subject(name, {}) for name in ("web1", "web2", "db1")]
    here = compile_target(tgt, tgt_type, nodegroups=GROUPS, ranges=ranges)
    there = compile_target(*spelled)
    assert {one.id for one in everybody if here(one)} == {one.id for one in everybody if there(one)} == meant


@pytest.mark.parametrize(("tgt", "tgt_type"), [("%x", "range"), ("R@%x", "compound"), (["R@%x"], "compound")])
def test_what_the_server_does_not_know_is_an_error(tgt: Any, tgt_type: str) -> None:
    for understand in (expanded_target, listed_ids):
        if (understand, tgt_type) != (listed_ids, "range"):
            with pytest.raises(TargetError, match="no cluster %x"):
                understand(tgt, tgt_type, {}, ranges)


@pytest.mark.parametrize(("tgt", "tgt_type"), [("%web", "range"), ("R@%web", "compound")])
def test_where_nobody_can_ask(tgt: str, tgt_type: str) -> None:
    with pytest.raises(TargetError, match="'%web' cannot be resolved: no range server is asked from here"):
        compile_target(tgt, tgt_type)
    with pytest.raises(TargetError, match="cannot be resolved"):
        expanded_target(tgt, tgt_type, {})


def test_names_of_ranges_count_as_named() -> None:
    assert listed_ids("R@%web and not R@%db", "compound", {}, ranges) == ["web1", "web2"]
