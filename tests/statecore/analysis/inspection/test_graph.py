"""``graph``: boxes in the order of the run, arrows from what comes first to what waits."""

from __future__ import annotations

from statecore.analysis.inspection.graph import drawn

from .conftest import MakeMinion

#: SLS -> (IDs in order, arrows by IDs).
CASES = {
    "order and kinds": (
        """
late: {test.nop: [{order: last}]}
first: {test.nop: [{require: [{test: second}]}]}
second: test.nop
watching: {test.nop: [{watch: [{test: first}]}, {onchanges_any: [second]}]}
""",
        ["second", "first", "watching", "late"],
        ["second require first", "first watch watching", "second onchanges_any watching"],
    ),
    "a prereq comes before its target": (
        "a: test.nop\nb: {test.nop: [{prereq: [{test: a}]}]}\n",
        ["b", "a"],
        ["b prereq a"],
    ),
    "listen does not touch the order": (
        "a: {test.nop: [{listen: [{test: b}]}]}\nb: {test.nop: [{listen_in: [{test: c}]}]}\nc: test.nop\n",
        ["a", "b", "c"],
        ["b listen a", "b listen c"],
    ),
    "a whole SLS is one arrow, from its last state": (
        "include: [many]\na: {test.nop: [{require: [{sls: many}]}]}\n",
        ["m0", "m1", "m2", "m3", "m4", "a"],
        ["m4 require sls: many a"],
    ),
    "the other side of an _in": (
        "a: {test.nop: [{require_in: [{test: b}]}]}\nb: test.nop\n",
        ["a", "b"],
        ["a require b"],
    ),
}


def test_graphs(minion: MakeMinion) -> None:
    made = minion({"many.sls": "".join(f"m{number}: test.nop\n" for number in range(5))})
    for name, (text, ids, arrows) in CASES.items():
        made.write({"a.sls": text})
        found = drawn(made.run_parts(), ["a"])
        named = {box.number: box.id for box in found.boxes}
        assert [box.id for box in found.boxes] == ids, name
        told = [f"{named[arrow.first]} {arrow.kind} {named[arrow.then]}" for arrow in found.arrows]
        assert sorted(told) == sorted(arrows), name
        assert all(made.short(box.at).partition(":")[0] in ("a.sls", "many.sls") for box in found.boxes)


def test_states_of_one_id_are_told_apart_by_their_names(minion: MakeMinion) -> None:
    made = minion({"a.sls": "x: {test.nop: [{names: [one, two]}]}\ny: {test.nop: [{name: other}]}\n"})
    assert [box.label for box in drawn(made.run_parts(), ["a"]).boxes] == ["one", "two", "y"]
