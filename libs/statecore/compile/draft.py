"""The data that the compiler's passes hand to each other, and the reserved words of high data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from statecore.compile.graph import Graph
from statecore.model.errors import Mark, SlsFault
from statecore.model.types import High, Low
from statecore.render import RenderedSls, SlsTree

#: Requisites that a state declares on itself. Each is a list of references, to which an ``extend`` appends.
#: Source: docs/state-system.md#requisites.
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

#: Requisite that a state declares on another state -> the requisite that the other state gets. ``listen_in`` is not
#: here: the engine resolves it after the run.
REQUISITES_IN: Mapping[str, str] = {
    "require_in": "require",
    "watch_in": "watch",
    "onfail_in": "onfail",
    "onchanges_in": "onchanges",
    "prereq_in": "prereq",
}


class Part(NamedTuple):
    """One rendered SLS file of a compilation, and the references of the SLS files that included it."""

    rendered: RenderedSls
    #: SLS references of its includers, nearest first. Empty for an SLS that was asked for directly.
    included_from: tuple[str, ...]
    #: Number of SLS files opened before this one. An SLS is opened before those it includes, but listed after them.
    begun: int = 0


class Extension(NamedTuple):
    """Arguments to add to the states of one ID, from an ``extend`` declaration, ``require_in`` or another requisite_in."""

    id: str
    #: Map of state module to argument list, with ``__sls__`` and ``__env__`` of the declaring SLS.
    body: dict[str, object]


def assume_mod_watch(_state: str) -> bool:
    """Return True for every state module, as if each had a ``mod_watch`` function.

    Callers that compile SLS files without a loader pass this function as ``reacts``.
    """
    return True


@dataclass(frozen=True, slots=True)
class Draft:
    """Working data of the state compiler: SLS files, high data, low chunks and faults so far.

    A draft is immutable. Each pass returns a new draft and copies the high data that it changes.
    """

    opts: Mapping[str, object]
    tree: SlsTree | None = None
    #: The SLS files to compile: saltenv -> SLS references or globs.
    matches: Mapping[str, Sequence[str]] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    high: High = field(default_factory=dict)
    extends: tuple[Extension, ...] = ()
    excludes: tuple[object, ...] = ()
    chunks: tuple[Low, ...] = ()
    graph: Graph = field(default_factory=Graph)
    #: Returns True if the named state module has a mod_watch function.
    reacts: Callable[[str], bool] = assume_mod_watch
    faults: tuple[SlsFault, ...] = ()

    def fault(self, message: str, origin: Mapping[str, object], *keys: object, hint: str = "") -> SlsFault:
        """Return an SlsFault with ``message`` and the line in the SLS file of the path ``keys`` (ID, state module,
        argument).

        ``origin`` names the SLS by its keys ``__sls__`` and ``__env__``.
        """
        sls, saltenv = str(origin.get("__sls__", "")), str(origin.get("__env__", "base"))
        path = [str(key) for key in keys]
        mark: Mark | None = self.tree.locate(sls, saltenv, *path) if self.tree is not None else None
        excerpt = self.tree.excerpt(mark) if self.tree is not None and mark is not None and mark.line else ""
        return SlsFault(message, mark, sls, path[0] if path else "", excerpt, hint)

    def with_faults(self, faults: Sequence[SlsFault]) -> Draft:
        """Return a copy of the draft with these SlsFaults added to its own."""
        return replace(self, faults=(*self.faults, *faults)) if faults else self


def disabled(opts: Mapping[str, object]) -> frozenset[str]:
    """Set of the kinds of requisites (``require``, ``watch_in``) that the option ``disabled_requisites`` disables."""
    named = opts.get("disabled_requisites") or []
    if isinstance(named, str):
        return frozenset({named})
    return frozenset(str(each) for each in named) if isinstance(named, Iterable) else frozenset()


def states(body: Mapping[str, object]) -> list[tuple[str, object]]:
    """List of (state module, argument list) of one ID, without the keys that begin with ``__``."""
    return [(key, value) for key, value in body.items() if not key.startswith("__")]


def arguments(run: object) -> list[tuple[str, object]]:
    """List of (argument, value) of a state's argument list, without the function names."""
    if not isinstance(run, list):
        return []
    return [pair for item in run if isinstance(item, dict) for pair in item.items()]
