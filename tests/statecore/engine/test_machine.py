"""The walk, driven by hand: no module is called here."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statecore.compile import compile_chunks
from statecore.compile.graph import link
from statecore.engine.machine import Adopt, CallState, LeaveOut, Machine, Wait

FINE = {"result": True, "changes": {}}
CHANGED = {"result": True, "changes": {"a": 1}}
FAILED = {"result": False, "changes": {}}
WOULD = {"result": None, "changes": {"a": 1}}


def chunk(id_, **requisites):
    return {"state": "t", "fun": "f", "name": id_, "__id__": id_, "__sls__": "s", **requisites}


def machine_of(*chunks, **kwargs):
    return Machine(link(chunks), **kwargs)


def walk(machine, outcomes=None, checks=None, *, assure=True):
    """Runs the machine; returns [(what, id)] in order. Outcomes by id, for runs and for checks."""
    story = []
    while (instruction := machine.step()) is not None:
        if assure:
            machine.check()
        id_ = instruction.low["__id__"]
        match instruction:
            case CallState(node=node, watch=watch):
                story.append(("check" if node.check else "watch" if watch else "run", id_))
                entry = dict((checks if node.check else outcomes or {}).get(id_, FINE))
            case LeaveOut(result=result, comment=comment):
                story.append((comment, id_))
                entry = {"result": result, "changes": {}, "__state_ran__": False}
            case Adopt(entry=entry):
                story.append(("adopt", id_))
        machine.feed(instruction, entry)
    return story


def ids(story):
    return [id_ for _, id_ in story]


def test_requisites_come_first_in_the_order_of_their_kinds():
    story = walk(
        machine_of(
            chunk("a", watch=[{"t": "w"}], require=[{"t": "r2"}, {"t": "r1"}]), chunk("r1"), chunk("r2"), chunk("w")
        )
    )
    assert ids(story) == ["r2", "r1", "w", "a"]


def test_the_seeds_example():
    story = walk(
        machine_of(
            {**chunk("apache"), "state": "pkg", "name": "httpd"},
            {**chunk("apache", watch=[{"file": "apache_conf"}, {"pkg": "apache"}]), "state": "service"},
            {**chunk("apache_conf"), "state": "file"},
        )
    )
    assert ids(story) == ["apache", "apache_conf", "apache"]


@pytest.mark.parametrize(
    "reference", [{"t": "b"}, {"t": "bee"}, "b", {"id": "b"}, {"t.f": "b"}, {"t": "be*"}, {"sls": "s2"}]
)
def test_ways_to_name_a_state(reference):
    target = {**chunk("b"), "name": "bee", "__sls__": "s2"}
    assert ids(walk(machine_of(chunk("a", require=[reference]), target))) == ["b", "a"]


def test_a_reference_to_nothing_is_a_fault():
    requisites = [{"t": "x"}, {"sls": "empty"}, {"sls": "not*"}, {"t": "y*"}, {"sls": "gone"}]
    graph = link([chunk("a", require=requisites)], empty={"empty"})
    assert [fault.message for fault in graph.faults] == [
        f"Referenced state does not exist for requisite [require: ({what})] in state [a] in SLS [s]"
        for what in ("t: x", "t: y*", "sls: gone")
    ]


def test_prereq_checks_its_target_then_runs_then_the_target():
    story = walk(machine_of(chunk("site"), chunk("stop", prereq=[{"t": "site"}])), checks={"site": WOULD})
    assert story == [("check", "site"), ("run", "stop"), ("run", "site")]


def test_prereq_without_foreseen_changes_is_left_out():
    story = walk(machine_of(chunk("stop", prereq=[{"t": "site"}]), chunk("site")), checks={"site": FINE})
    assert story == [("check", "site"), ("No changes detected", "stop"), ("run", "site")]


def test_a_failed_prereq_keeps_its_target_from_running():
    machine = machine_of(chunk("stop", prereq=[{"t": "site"}]), chunk("site"))
    assert walk(machine, outcomes={"stop": FAILED}, checks={"site": WOULD})[-1] == ("adopt", "site")
    assert machine.running["t_|-site_|-site_|-f"]["changes"] == {}


def test_chained_prereqs_are_checked_from_the_end():
    machine = machine_of(chunk("a", prereq=[{"t": "b"}]), chunk("b", prereq=[{"t": "c"}]), chunk("c"))
    story = walk(machine, checks={"b": WOULD, "c": WOULD})
    assert story == [("check", "c"), ("check", "b"), ("run", "a"), ("run", "b"), ("run", "c")]


def test_chained_prereqs_without_changes():
    machine = machine_of(chunk("a", prereq=[{"t": "b"}]), chunk("b", prereq=[{"t": "c"}]), chunk("c"))
    story = walk(machine, checks={"b": WOULD, "c": FINE})
    assert story == [
        ("check", "c"),
        ("No changes detected", "b"),
        ("No changes detected", "a"),
        ("run", "c"),
    ]


def test_the_requisites_of_a_prereqs_target_run_before_its_check():
    machine = machine_of(chunk("stop", prereq=[{"t": "site"}]), chunk("site", require=[{"t": "dir"}]), chunk("dir"))
    assert walk(machine, checks={"site": WOULD}) == [
        ("run", "dir"),
        ("check", "site"),
        ("run", "stop"),
        ("run", "site"),
    ]


def parallel(id_, **requisites):
    return chunk(id_, parallel=True, **requisites)


#: Chunks, and the story: what is begun ("<"), what is waited for ("="), what runs.
PARALLEL = {
    "others go on": ([parallel("a"), chunk("b"), parallel("c")], "<a b <c =a =c"),
    "what needs it waits": ([parallel("a"), chunk("b", require=["a"]), chunk("c")], "<a =a b c"),
    "what is parallel too is put off": ([parallel("a"), parallel("b", require=["a"]), chunk("c")], "<a c =a <b =b"),
    "with what needs it": (
        [parallel("a"), parallel("b", require=["a"]), chunk("c", require=["b"]), chunk("d")],
        "<a d =a <b =b c",
    ),
    "two at once": (
        [parallel("a"), parallel("b"), parallel("c", require=["a", "b"]), chunk("d")],
        "<a <b d =a =b <c =c",
    ),
    "a prereq's target is checked here": ([parallel("a"), chunk("b", prereq=["a"])], "a? b <a =a"),
}


@pytest.mark.parametrize(("chunks", "story"), PARALLEL.values(), ids=PARALLEL)
def test_parallel(chunks, story):
    machine = machine_of(*chunks)
    begun, told = {}, []
    while (instruction := machine.step()) is not None:
        machine.check()
        if isinstance(instruction, Wait):
            # The first that was begun is the first to end.
            node = next(node for node in begun if node in instruction.nodes)
            told.append(f"={begun[node].low['__id__']}")
            machine.feed(begun.pop(node), CHANGED)
            continue
        id_ = instruction.low["__id__"]
        if instruction.node.check:
            told.append(f"{id_}?")
            machine.feed(instruction, WOULD)
        elif instruction.low.get("parallel"):
            told.append(f"<{id_}")
            begun[instruction.node] = instruction
            machine.begun(instruction)
        else:
            told.append(id_)
            machine.feed(instruction, FINE)
    assert " ".join(told) == story
    assert not begun


def test_what_runs_is_awaited_when_the_run_is_stopped():
    machine = machine_of(parallel("a"), chunk("b"), chunk("c"), stop=lambda low, _entry: low["__id__"] == "b")
    begun = machine.step()
    machine.begun(begun)
    machine.feed(machine.step(), FAILED)
    assert machine.step() == Wait(frozenset({begun.node}))
    machine.feed(begun, FINE)
    assert machine.step() is None
    assert len(machine.running) == 2


def test_watch_without_mod_watch_is_require():
    compiled = compile_chunks([chunk("a", watch=[{"t": "b"}]), chunk("b")], reacts=lambda _state: False)
    story = walk(Machine(compiled.graph), outcomes={"b": CHANGED})
    assert story == [("run", "b"), ("run", "a")]


def test_failed_requisites_are_named_once_each_in_order():
    machine = machine_of(
        chunk("a", require=[{"t": "b"}, {"t": "c"}], watch=[{"t": "b"}]),
        chunk("b"),
        chunk("c"),
        chunk("d", require=["a"]),
    )
    story = walk(machine, outcomes={"b": FAILED, "c": FAILED})
    assert story[2:] == [
        ("One or more requisite failed: s.b, s.c", "a"),
        ("One or more requisite failed: s.a", "d"),
    ]


def test_failhard_stops_even_below_a_requisite():
    machine = machine_of(
        chunk("a", require=[{"t": "b"}]),
        chunk("b", failhard=True),
        chunk("c"),
        stop=lambda low, entry: bool(low.get("failhard")) and entry["result"] is False,
    )
    assert ids(walk(machine, outcomes={"b": FAILED})) == ["b"]


def test_a_ring_is_told_and_does_not_hang():
    story = walk(machine_of(chunk("a", require=["b"]), chunk("b", require=["c"]), chunk("c", require=["a"])))
    assert story[0] == ("Recursive requisite found: s.a -> s.b -> s.c -> s.a", "c")
    assert ids(story) == ["c", "b", "a"]


def test_a_state_that_requires_itself():
    assert walk(machine_of(chunk("a", require=["a"]))) == [("Recursive requisite found: s.a -> s.a", "a")]


def test_wanted_limits_the_run_to_one_state_and_what_it_needs():
    machine = machine_of(chunk("a"), chunk("b", require=["c"]), chunk("c"), wanted=lambda low: low["__id__"] == "b")
    assert ids(walk(machine)) == ["c", "b"]


def test_chunks_listed_twice_run_once():
    assert ids(walk(machine_of(chunk("a"), chunk("b"), chunk("a")))) == ["a", "b"]


def test_ten_thousand_in_a_chain():
    count = 10_000
    chunks = [chunk(str(at), require=[{"t": str(at + 1)}]) for at in range(count - 1)] + [chunk(str(count - 1))]
    begin = time.monotonic()
    assert ids(walk(machine_of(*chunks), assure=False)) == [str(at) for at in reversed(range(count))]
    assert time.monotonic() - begin < 60


def test_a_thousand_states_that_each_require_a_thousand():
    firsts = [{**chunk(f"a{at}"), "__sls__": "one"} for at in range(1000)]
    seconds = [{**chunk(f"b{at}", require=[{"sls": "one"}]), "__sls__": "two"} for at in range(1000)]
    begin = time.monotonic()
    assert len(walk(machine_of(*seconds, *firsts), assure=False)) == 2000
    assert time.monotonic() - begin < 60


@st.composite
def trees(draw):
    """Chunks whose requisites point only at later ids, listed in any order: no rings. A prereq turns the order round, so
    it gets a target that nothing else names."""
    count = draw(st.integers(1, 12))
    kinds = st.sampled_from(["require", "watch", "onfail", "onchanges", "require_any"])
    chunks = []
    for at in range(count):
        targets = st.lists(st.integers(at + 1, count - 1), max_size=3) if at + 1 < count else st.just([])
        requisites = {}
        for target in draw(targets):
            requisites.setdefault(draw(kinds), []).append({"t": str(target)})
        if draw(st.booleans()):
            chunks.append(chunk(str(at + 100)))
            requisites["prereq"] = [{"t": str(at + 100)}]
        chunks.append(chunk(str(at), **requisites))
    return draw(st.permutations(chunks))


@given(trees(), st.data())
def test_every_chunk_gets_one_entry_after_its_requisites(chunks, data):
    results = st.sampled_from([FINE, CHANGED, FAILED])
    outcomes = {low["__id__"]: data.draw(results) for low in chunks}
    checks = {low["__id__"]: data.draw(st.sampled_from([FINE, WOULD, FAILED])) for low in chunks}
    machine = machine_of(*chunks)
    story = [(what, id_) for what, id_ in walk(machine, outcomes, checks) if what != "check"]
    assert sorted(ids(story), key=int) == sorted((low["__id__"] for low in chunks), key=int)
    place = {id_: at for at, id_ in enumerate(ids(story))}
    for low in chunks:
        for kind, references in low.items():
            if kind in ("require", "watch", "onfail", "onchanges", "require_any"):
                assert all(place[reference["t"]] < place[low["__id__"]] for reference in references)
            if kind == "prereq":
                assert all(place[reference["t"]] > place[low["__id__"]] for reference in references)
