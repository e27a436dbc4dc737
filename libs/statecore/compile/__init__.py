"""The state compiler: turns SLS references or high data into ordered low chunks.

``PASSES`` lists the compiler's passes in order. Each pass is a pure function from ``Draft`` to ``Draft``. Faults
(errors with file and line) are collected, so that one compilation reports all of them. After a pass in ``HALTS`` the
compilation stops if it has faults.

Source: docs/state-system.md#stages, docs/state-system.md#compile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

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
from statecore.compile.draft import Draft, Extension, assume_mod_watch
from statecore.compile.graph import Graph
from statecore.model.errors import SlsFault
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

#: Passes after which the compilation stops if there are faults: the passes after them need valid high data.
HALTS: frozenset[Pass] = frozenset({low_chunks.number_states, requisites.apply_use, requisites.resolve})


class Compiled(NamedTuple):
    """Result of the state compiler: high data, low chunks in order of the run, requisite graph, faults.

    ``chunks`` and ``graph`` are empty if there are faults.
    """

    #: High data as ``state.show_highstate`` returns it: numbered with ``order``, extends not yet applied.
    high: High
    #: Low chunks in order of the run. The target of a prereq is in it twice: first for its check, then for its run.
    chunks: tuple[Low, ...]
    faults: tuple[SlsFault, ...]
    #: Requisites and order of the chunks, as the engine runs them.
    graph: Graph = Graph()


def gather_sls(tree: SlsTree, matches: Mapping[str, Sequence[str]], opts: Mapping[str, object]) -> Compiled:
    """Render SLS files and their includes. Return a Compiled with their high data and faults, but without low chunks.

    It also works for a state tree that does not compile. ``matches`` maps saltenv to SLS references or globs.
    """
    gathered = _through(GATHER, Draft(opts=opts, tree=tree, matches=matches))
    return Compiled(_shown(gathered), (), gathered.faults)


def compile_sls(
    tree: SlsTree,
    matches: Mapping[str, Sequence[str]],
    opts: Mapping[str, object],
    *,
    reacts: Callable[[str], bool] = assume_mod_watch,
    excludes: Sequence[object] = (),
) -> Compiled:
    """Render and compile SLS files. Errors of rendering are in the result's ``faults``; none is raised.

    ``matches`` maps saltenv to SLS references or globs. ``reacts(state)`` returns True if the state module has a
    ``mod_watch`` function. ``excludes`` are exclude entries in addition to those that the SLS files declare.
    """
    gathered = _through(GATHER, Draft(opts=opts, tree=tree, matches=matches, reacts=reacts))
    return _compiled(replace(gathered, excludes=(*gathered.excludes, *excludes)))


def compile_high(
    high: High,
    opts: Mapping[str, object],
    tree: SlsTree | None = None,
    *,
    reacts: Callable[[str], bool] = assume_mod_watch,
    excludes: Sequence[object] = (),
) -> Compiled:
    """Compile literal high data, as given to ``state.high`` or made by a reaction. Errors are in the result's
    ``faults``; none is raised.

    The high data may hold ``__extend__`` and ``__exclude__``. Short declarations are expanded. States get no automatic
    ``order``, as with Salt's ``state.high``.
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


def compile_chunks(chunks: Sequence[Low], *, reacts: Callable[[str], bool] = assume_mod_watch) -> Compiled:
    """Resolve the requisites of literal low chunks and sort the chunks. Return the Compiled run; its faults name no
    file, since low chunks come from no SLS.

    Each chunk needs ``__id__`` and ``name``.
    """
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
        # Faults of form are reported as well. References are not resolved: their targets may be in the SLS that failed.
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
