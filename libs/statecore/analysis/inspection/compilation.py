"""Run the compiler pass by pass and assign each fault to a rule of ``analysis.rules``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from statecore.analysis.rules import RULES
from statecore.compile import HALTS, PASSES, Pass, conflicts, declarations, extend, include, requisites, shape, sort
from statecore.compile.draft import Draft, assume_mod_watch
from statecore.model.errors import SlsFault
from statecore.render import SlsTree

#: (pattern of a fault's message, rule). The first match decides; without a match ``_BY_PASS`` does.
_BY_WORDS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(words), rule)
    for words, rule in (
        (r"conflicting ID", "duplicate-id"),
        (r"contains multiple state declarations of the same type", "duplicate-id"),
        (r"^Rendering SLS|does not render|is not UTF-8", "render"),
        (r"^No matching sls found|is not available on the salt master", "missing-sls"),
        (r"^Cannot extend", "extend"),
        (r"^Referenced state does not exist", "requisite-to-nothing"),
        (r"^Recursive requisite", "cycle"),
        (r"[Rr]equisite|statement in state", "requisite"),
    )
)

#: Pass -> the rule that its faults break. Faults of other passes break the rule "compile".
_BY_PASS: Mapping[Pass, str] = {
    include.include: "include",
    conflicts.join: "duplicate-id",
    declarations.expand: "shape",
    shape.check: "shape",
    extend.extend: "extend",
    requisites.invert_requisite_in: "requisite",
    requisites.resolve: "requisite-to-nothing",
    sort.sort: "cycle",
}


class RuledFault(NamedTuple):
    """An error of the state compiler, with the name of the rule (of ``statecore check``) under which it is reported."""

    rule: str
    fault: SlsFault


class Compilation(NamedTuple):
    """Result of a compilation that may have stopped early: the draft after the last pass, and all faults."""

    draft: Draft
    faults: tuple[RuledFault, ...]


def compiled(
    tree: SlsTree,
    matches: Mapping[str, Sequence[str]],
    opts: Mapping[str, object],
    reacts: Callable[[str], bool] = assume_mod_watch,
) -> Compilation:
    """Compile SLS files, given as {saltenv: SLS references}. Return the draft after the last compiler pass, and all
    errors.

    The draft's run list is valid only if there are no errors. ``reacts(state)`` returns True if the state module has
    mod_watch. Without it, no watch is turned into a require.
    """
    draft = Draft(opts=opts, tree=tree, matches=matches, reacts=reacts)
    faults: list[RuledFault] = []
    for step in PASSES:
        before = len(draft.faults)
        draft = step(draft)
        faults += [RuledFault(rule_of(fault, step), fault) for fault in draft.faults[before:]]
        if draft.faults and step in HALTS:
            break
    return Compilation(draft, tuple(faults))


def rule_of(fault: SlsFault, step: Pass | None = None) -> str:
    """Return the name of the ``statecore check`` rule that an error of the compiler breaks.

    ``step`` is the compiler pass that reported the error.
    """
    named = next((rule for words, rule in _BY_WORDS if words.search(fault.message)), None)
    rule = named or (_BY_PASS.get(step) if step is not None else None) or "compile"
    assert rule in RULES
    return rule
