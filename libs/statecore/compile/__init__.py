"""Stage two of the seeds: high data becomes ordered low chunks. Every pass is pure and has a file of its own.

Read ``PASSES`` top to bottom. Faults are collected, each with file and line; a pass that cannot go on with what it was
given is not reached (``HALTS``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from statecore.compile import (
    conflicts,
    declarations,
    exclude,
    extend,
    include,
    low,
    names,
    order,
    references,
    requisite_in,
    shape,
    sort,
    use,
)
from statecore.compile.draft import Draft, Extension
from statecore.errors import SlsFault
from statecore.render import SlsTree
from statecore.types import High, Low

Pass = Callable[[Draft], Draft]

#: From SLS references to high data.
GATHER: tuple[Pass, ...] = (
    include.include,
    conflicts.join,
    declarations.expand,
    order.number,
)

#: From high data to low chunks.
REFINE: tuple[Pass, ...] = (
    extend.extend,
    shape.check,
    requisite_in.turn,
    use.borrow,
    exclude.exclude,
    low.chunks,
    references.check,
    names.expand,
    sort.sort,
)

PASSES: tuple[Pass, ...] = (*GATHER, *REFINE)

#: After these nothing more is tried when there are faults: what follows needs sound high data.
HALTS: frozenset[Pass] = frozenset({order.number, shape.check, use.borrow})


@dataclass(frozen=True, slots=True)
class Compiled:
    """What came of it. With faults there are no chunks."""

    #: As ``state.show_highstate`` shows it: ordered, not yet extended.
    high: High
    #: In order of evaluation but for requisites, which the engine follows.
    chunks: tuple[Low, ...]
    faults: tuple[SlsFault, ...]


def gather_sls(tree: SlsTree, matches: Mapping[str, Sequence[str]], opts: Mapping[str, object]) -> Compiled:
    """The high data of SLS references and nothing further: what can be shown of a tree that does not compile."""
    gathered = _through(GATHER, Draft(opts=opts, tree=tree, matches=matches))
    return Compiled(_shown(gathered), (), gathered.faults)


def compile_sls(tree: SlsTree, matches: Mapping[str, Sequence[str]], opts: Mapping[str, object]) -> Compiled:
    """Compiles SLS references, by environment. Faults of rendering are among the faults."""
    gathered = _through(GATHER, Draft(opts=opts, tree=tree, matches=matches))
    return _compiled(gathered)


def compile_high(high: High, opts: Mapping[str, object], tree: SlsTree | None = None) -> Compiled:
    """Compiles literal high data (``state.high``, a reaction), which may hold ``__extend__`` and ``__exclude__``.

    Short declarations are expanded; IDs get no order unless they have one (Salt's ``state.high``).
    """
    data = dict(high)
    extends, excludes = data.pop("__extend__", ()), data.pop("__exclude__", ())
    draft = Draft(
        opts=opts,
        tree=tree,
        high=data,
        extends=tuple(Extension(name, body) for each in extends for name, body in each.items()),
        excludes=tuple(excludes),
    )
    return _compiled(_through((declarations.expand,), draft))


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
        return Compiled(shown, (), gathered.faults)
    refined = _through(REFINE, gathered)
    return Compiled(shown, () if refined.faults else refined.chunks, refined.faults)


def _through(passes: Sequence[Pass], draft: Draft) -> Draft:
    for step in passes:
        draft = step(draft)
        if draft.faults and step in HALTS:
            break
    return draft


__all__ = ["PASSES", "Compiled", "compile_high", "compile_sls", "gather_sls"]
