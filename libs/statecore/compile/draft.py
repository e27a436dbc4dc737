"""What the passes hand to each other, and the words that high data reserves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from statecore.compile.graph import Graph
from statecore.model.errors import Mark, SlsFault
from statecore.model.named_tuple import NamedTuple
from statecore.model.types import High, Low
from statecore.render import RenderedSls, SlsTree

#: Requisites that a state declares on itself (seed 003); lists of references. ``extend`` adds to them.
REQUISITES = frozenset(
    {
        "onfail",
        "onfail_any",
        "onfail_all",
        "onfail_stop",
        "require",
        "require_any",
        "onchanges",
        "onchanges_any",
        "watch",
        "watch_any",
        "prereq",
        "prerequired",
        "listen",
    }
)

#: Requisites that a state declares on another; ``listen_in`` is resolved by the engine, after the run.
REQUISITES_IN: Mapping[str, str] = {
    "require_in": "require",
    "watch_in": "watch",
    "onfail_in": "onfail",
    "onchanges_in": "onchanges",
    "prereq_in": "prereq",
}


class Part(NamedTuple):
    """One SLS of the run."""

    rendered: RenderedSls
    #: SLS references through which it came in, nearest first; empty for one that was asked for.
    included_from: tuple[str, ...]
    #: How many were begun before it: an SLS is begun before those it includes, and counted after them.
    begun: int = 0


class Extension(NamedTuple):
    """One ID of an ``extend``, or of what a requisite_in makes."""

    id: str
    #: Like a body of high data, ``__sls__`` and ``__env__`` included.
    body: dict[str, Any]


def anything(_state: str) -> bool:
    """Every state module reacts: for who compiles without a loader."""
    return True


@dataclass(frozen=True, slots=True)
class Draft:
    """A compilation under way. Each pass gives a new one; bodies that a pass changes are copies."""

    opts: Mapping[str, Any]
    tree: SlsTree | None = None
    #: What was asked for: saltenv -> SLS references or globs.
    matches: Mapping[str, Sequence[str]] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    high: High = field(default_factory=dict)
    extends: tuple[Extension, ...] = ()
    excludes: tuple[Any, ...] = ()
    chunks: tuple[Low, ...] = ()
    graph: Graph = field(default_factory=Graph)
    #: Whether a state module has a mod_watch.
    reacts: Callable[[str], bool] = anything
    faults: tuple[SlsFault, ...] = ()

    def fault(self, message: str, origin: Mapping[str, Any], *keys: object, hint: str = "") -> SlsFault:
        """A fault of the SLS and environment in ``origin`` (``__sls__``, ``__env__``), at the line of the path of keys."""
        sls, saltenv = str(origin.get("__sls__", "")), str(origin.get("__env__", "base"))
        path = [str(key) for key in keys]
        mark: Mark | None = self.tree.locate(sls, saltenv, *path) if self.tree is not None else None
        excerpt = self.tree.excerpt(mark) if self.tree is not None and mark is not None and mark.line else ""
        return SlsFault(message, mark, sls, path[0] if path else "", excerpt, hint)

    def with_faults(self, faults: Sequence[SlsFault]) -> Draft:
        """The draft with more faults."""
        return replace(self, faults=(*self.faults, *faults)) if faults else self


def disabled(opts: Mapping[str, Any]) -> frozenset[str]:
    """Requisites that the option ``disabled_requisites`` switches off."""
    named = opts.get("disabled_requisites") or []
    return frozenset({named} if isinstance(named, str) else map(str, named))


def states(body: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """(state module, its list) of a body, without the keys that are the compiler's own."""
    return [(key, value) for key, value in body.items() if not key.startswith("__")]


def arguments(run: Any) -> list[tuple[str, Any]]:
    """(argument, value) of the list of a state, functions left out."""
    if not isinstance(run, list):
        return []
    return [pair for item in run if isinstance(item, dict) for pair in item.items()]
