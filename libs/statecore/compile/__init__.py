"""Stage two of the seeds: high data becomes ordered low chunks. Every pass is pure and has a file of its own.

Read ``PASSES`` top to bottom. Faults are collected, each with file and line; a pass that cannot go on with what it was
given is not reached (``HALTS``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from statecore.compile import (
    conflicts,
    declarations,
    exclude,
    extend,
    include,
    low_chunks,
    requisites,
    shape,
    sort,
)
from statecore.compile.draft import Draft, Extension, anything
from statecore.compile.graph import Graph
from statecore.model.errors import SlsFault
from statecore.model.named_tuple import NamedTuple
from statecore.model.types import High, Low
from statecore.render import SlsTree

Pass = Callable[[Draft], Draft]

#: From SLS references to high data.
GATHER: tuple[Pass, ...] = (
    include.include,
    conflicts.join,
    declarations.expand,
    low_chunks.number_states,
)

#: From high data to low chunks.
REFINE: tuple[Pass, ...] = (
    extend.extend,
    shape.check,
    requisites.invert_requisite_in,
    requisites.apply_use,
    exclude.exclude,
    low_chunks.make_chunks,
    low_chunks.expand_names,
    requisites.resolve,
    sort.sort,
)

PASSES: tuple[Pass, ...] = (*GATHER, *REFINE)

#: After these nothing more is tried when there are faults: what follows needs sound high data.
HALTS: frozenset[Pass] = frozenset({low_chunks.number_states, requisites.apply_use, requisites.resolve})


class Compiled(NamedTuple):
    """What came of it. With faults there are no chunks."""

    #: As ``state.show_highstate`` shows it: ordered, not yet extended.
    high: High
    #: In order of the run; the target of a prereq twice, first for its check.
    chunks: tuple[Low, ...]
    faults: tuple[SlsFault, ...]
    #: What the engine runs.
    graph: Graph = Graph()


def gather_sls(tree: SlsTree, matches: Mapping[str, Sequence[str]], opts: Mapping[str, object]) -> Compiled:
    """The high data of SLS references and nothing further: what can be shown of a tree that does not compile."""
    gathered = _through(GATHER, Draft(opts=opts, tree=tree, matches=matches))
    return Compiled(_shown(gathered), (), gathered.faults)


def compile_sls(
    tree: SlsTree,
    matches: Mapping[str, Sequence[str]],
    opts: Mapping[str, object],
    *,
    reacts: Callable[[str], bool] = anything,
    excludes: Sequence[Any] = (),
) -> Compiled:
    """Compiles SLS references, by environment. Faults of rendering are among the faults.

    ``reacts(state)`` says whether a state module has a mod_watch; ``excludes`` are left out besides what the SLS exclude.
    """
    gathered = _through(GATHER, Draft(opts=opts, tree=tree, matches=matches, reacts=reacts))
    return _compiled(replace(gathered, excludes=(*gathered.excludes, *excludes)))


def compile_high(
    high: High,
    opts: Mapping[str, object],
    tree: SlsTree | None = None,
    *,
    reacts: Callable[[str], bool] = anything,
    excludes: Sequence[Any] = (),
) -> Compiled:
    """Compiles literal high data (``state.high``, a reaction), which may hold ``__extend__`` and ``__exclude__``.

    Short declarations are expanded; IDs get no order unless they have one (Salt's ``state.high``).
    """
    data = dict(high)
    extends, own = data.pop("__extend__", ()), data.pop("__exclude__", ())
    draft = Draft(
        opts=opts,
        tree=tree,
        high=data,
        extends=tuple(Extension(name, body) for each in extends for name, body in each.items()),
        excludes=(*own, *excludes),
        reacts=reacts,
    )
    return _compiled(_through((declarations.expand,), draft))


def compile_chunks(chunks: Sequence[Low], *, reacts: Callable[[str], bool] = anything) -> Compiled:
    """Orders literal low chunks, each with ``__id__`` and ``name``. Faults have no place."""
    refined = _through((requisites.resolve, sort.sort), Draft(opts={}, chunks=tuple(chunks), reacts=reacts))
    return Compiled({}, () if refined.faults else refined.chunks, refined.faults, refined.graph)


def _shown(gathered: Draft) -> High:
    shown: High = dict(gathered.high)
    if gathered.extends:
        shown["__extend__"] = [{each.id: each.body} for each in gathered.extends]
    if gathered.excludes:
        shown["__exclude__"] = list(gathered.excludes)
    return shown


def _compiled(gathered: Draft) -> Compiled:
    shown = _shown(gathered)
    if gathered.faults:
        # What else is wrong with the form is told too; what refers to something may only miss what could not be gathered.
        return Compiled(shown, (), shape.check(gathered).faults)
    refined = _through(REFINE, gathered)
    if refined.faults:
        return Compiled(shown, (), refined.faults)
    return Compiled(shown, refined.chunks, (), refined.graph)


def _through(passes: Sequence[Pass], draft: Draft) -> Draft:
    for step in passes:
        draft = step(draft)
        if draft.faults and step in HALTS:
            break
    return draft


__all__ = ["PASSES", "Compiled", "compile_chunks", "compile_high", "compile_sls", "gather_sls"]
