"""Pass: every requisite is followed to the chunks that it names (seed 003). A watch that nothing reacts to is a require."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from statecore.compile.draft import Draft
from statecore.compile.graph import Fault, link
from statecore.model.errors import SlsFault
from statecore.model.types import Low

#: What a watch is where the state module has no mod_watch.
_UNWATCHED: Mapping[str, str] = {"watch": "require", "watch_any": "require_any"}


def follow(draft: Draft) -> Draft:
    """The draft with its graph. Faults: requisites that name nothing."""
    chunks = tuple(_reconciled(low, draft) for low in draft.chunks)
    graph = link(chunks, {part.rendered.sls for part in draft.parts if not part.rendered.high})
    return replace(draft, chunks=chunks, graph=graph).with_faults([located(draft, fault) for fault in graph.faults])


def located(draft: Draft, fault: Fault) -> SlsFault:
    """A fault of the graph, with its place; of a ring, with the places of all its requisites."""
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
    """The chunk, with require for watch where its state cannot react."""
    idle = [kind for kind in _UNWATCHED if kind in low]
    if not idle or draft.reacts(low["state"]):
        return low
    own = {key: value for key, value in low.items() if key not in idle}
    for kind in idle:
        own[_UNWATCHED[kind]] = [*own.get(_UNWATCHED[kind], ()), *low[kind]]
    return own
