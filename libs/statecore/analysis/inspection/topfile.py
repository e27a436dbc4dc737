"""The top files: what is wrong in them, for whichever minion, and what they give this one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from statecore.analysis.finding import Finding
from statecore.analysis.inspection.compilation import Told, rule_of
from statecore.analysis.inspection.places import told
from statecore.model.errors import SlsError, SlsFault
from statecore.render.top import INCLUDE
from statecore.runtime.state_runs import RunParts


def of_top(bench: RunParts) -> tuple[list[Finding], Mapping[str, Sequence[str]]]:
    """Findings, and saltenv -> SLS references for this minion, without those that are not there."""
    try:
        refs = bench.top()
    except SlsError as error:
        return [told(Told(_rule(fault), fault)) for fault in error.faults], {}
    tree = bench.stage.tree
    return list(_unfound(bench)), {env: [ref for ref in each if tree.find(ref, env)] for env, each in refs.items()}


def _unfound(bench: RunParts) -> Iterator[Finding]:
    """References of the top files that name no SLS."""
    tree = bench.stage.tree
    for own in tree.files.envs():
        if tree.locate("top", own) is None:
            continue
        for env, targets in tree.data("top", own).items():
            for target, rows in targets.items() if isinstance(targets, Mapping) and env != INCLUDE else ():
                listed = rows if isinstance(rows, list) else []
                options = {key for row in listed if isinstance(row, Mapping) for key in row}
                for ref in (row for row in listed if isinstance(row, str)):
                    if env in tree.files.envs() and not tree.find(ref, env) and "ignore_missing" not in options:
                        fault = SlsFault(f"No matching sls found for '{ref}' in env '{env}'", sls=ref)
                        mark = tree.locate("top", own, str(env), str(target), ref)
                        fault = fault._replace(mark=mark, hint=tree.hint(ref, env), excerpt=tree.excerpt(mark))
                        yield told(Told("missing-sls", fault))


def _rule(fault: SlsFault) -> str:
    rule = rule_of(fault)
    return rule if rule == "render" else "top"
