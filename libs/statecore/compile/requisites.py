"""Compiler passes: invert requisite_in, apply ``use``, resolve every requisite to the chunks it names.

Source: docs/state-system.md#requisites, docs/state-system.md#requisite-in, docs/state-system.md#use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from statecore.compile.draft import REQUISITES_IN, Draft, Extension, arguments, disabled, states
from statecore.compile.extend import extended
from statecore.compile.graph import Fault, link
from statecore.compile.targets import dotted_reference_fault, ids_with_state, targets
from statecore.model.errors import SlsFault
from statecore.model.types import Low


def invert_requisite_in(draft: Draft) -> Draft:
    """Compiler pass: turn every ``require_in``, ``watch_in`` etc. into a requisite of the state it names. Return the
    new draft.

    All requisite_in that name one ID become one extension. As in Salt, only the first state module that they name must
    exist in that ID. Faults: a reference with a dot, an unknown target.
    """
    off = disabled(draft.opts)
    # Target ID -> state module -> requisites to add, one map for each kind of requisite.
    wanted: dict[str, dict[str, list[dict[str, list[dict[str, str]]]]]] = {}
    # Target ID -> origin of the state that declared the last of them.
    origins: dict[str, dict[str, object]] = {}
    faults: list[SlsFault] = []
    for name, body in draft.high.items():
        for state, run in states(body):
            for item in run if isinstance(run, list) else ():
                key = next(iter(item), "") if isinstance(item, dict) else ""
                if key not in REQUISITES_IN or key in off:
                    continue
                for target_state, target in targets(item[key], draft.high):
                    if "." in target_state:
                        faults.append(dotted_reference_fault(draft, REQUISITES_IN[key], (target_state, target), name))
                        target_state = target_state.partition(".")[0]
                    run_of_target = wanted.setdefault(target, {}).setdefault(target_state, [])
                    _add(run_of_target, REQUISITES_IN[key], {state: name})
                    origin = {key: body[key] for key in ("__sls__", "__env__") if key in body}
                    origins[target] = origins.get(target, {}) | origin | {"__from__": name}
    extensions = (Extension(target, {**runs, **origins[target]}) for target, runs in wanted.items())
    return extended(draft.with_faults(faults), extensions, strict=True)


def _add(run: list[dict[str, list[dict[str, str]]]], kind: str, reference: dict[str, str]) -> None:
    for item in run:
        if kind in item:
            item[kind].append(reference)
            return
    run.append({kind: [reference]})


#: Arguments that ``use`` never copies. Salt copies the other requisites (``listen``, ``require_any`` ...), so Saltern
#: does.
_OWN = frozenset(REQUISITES_IN) | {
    *("require", "watch", "prereq", "onfail", "onfail_stop", "onchanges"),
    *("use", "use_in", "name", "names"),
}


def apply_use(draft: Draft) -> Draft:
    """Compiler pass: give every state with ``use`` the arguments that it lacks from the state it names. Return the new
    draft.

    If two named states have the same argument, the later state's value is used. A reference with a dot is a fault.
    """
    faults: list[SlsFault] = []
    loans = list(_loans(draft, faults))
    return extended(draft.with_faults(faults), loans, strict=True)


def _loans(draft: Draft, faults: list[SlsFault]) -> Iterator[Extension]:
    off = disabled(draft.opts)
    for name, body in draft.high.items():
        for state, run in states(body):
            for key, references in arguments(run):
                if key not in ("use", "use_in") or key in off or isinstance(references, str):
                    continue
                for target in targets(references, draft.high):
                    if "." in target[0]:
                        faults.append(dotted_reference_fault(draft, "use", target, name))
                        continue
                    for other in ids_with_state(draft.high, target[1], target[0]):
                        pair = (name, state), (other, target[0])
                        yield from _loan(draft, *(pair if key == "use_in" else reversed(pair)))


def _loan(draft: Draft, lender: tuple[str, str], borrower: tuple[str, str]) -> Iterator[Extension]:
    own = {key for key, _ in arguments(draft.high[borrower[0]][borrower[1]])}
    lent: list[object] = [
        {key: value} for key, value in arguments(draft.high[lender[0]][lender[1]]) if key not in own | _OWN
    ]
    if lent:
        yield Extension(borrower[0], {borrower[1]: lent})


#: Requisite that replaces a watch if the state module has no mod_watch.
_UNWATCHED: Mapping[str, str] = {"watch": "require", "watch_any": "require_any"}


def resolve(draft: Draft) -> Draft:
    """Compiler pass: resolve the requisites of the low chunks to the chunks they name. Return the draft with the graph.

    A requisite that names no chunk is a fault. Source: docs/state-system.md#reconciliation.
    """
    chunks = tuple(_reconciled(low, draft) for low in draft.chunks)
    graph = link(chunks, {part.rendered.sls for part in draft.parts if not part.rendered.high})
    return replace(draft, chunks=chunks, graph=graph).with_faults(
        [located_fault(draft, fault) for fault in graph.faults]
    )


def located_fault(draft: Draft, fault: Fault) -> SlsFault:
    """Return a faulty requisite (a Fault of the graph) as an SlsFault with file and line.

    For a cycle, its hint lists the positions of all requisites in it.
    """
    low = fault.low
    hint = fault.hint
    if fault.ring:
        places = [_place(draft, each, kind) for each, kind in (*fault.ring, fault.ring[0])]
        hint = " -> ".join(places)
    return draft.fault(fault.message, low, str(low["__id__"]), low["state"], fault.kind, hint=hint)


def _place(draft: Draft, low: Low, kind: str) -> str:
    mark = draft.fault("", low, str(low["__id__"]), low["state"], kind).mark
    return str(mark) if mark is not None else str(low["__id__"])


def _reconciled(low: Low, draft: Draft) -> Low:
    """Return the low chunk with its ``watch`` requisites turned into ``require`` if its state module has no mod_watch."""
    idle = [kind for kind in _UNWATCHED if kind in low]
    if not idle or draft.reacts(low["state"]):
        return low
    own = {key: value for key, value in low.items() if key not in idle}
    for kind in idle:
        own[_UNWATCHED[kind]] = [*own.get(_UNWATCHED[kind], ()), *low[kind]]
    return own
