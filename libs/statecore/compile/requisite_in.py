"""Pass: ``require_in`` and its kin are turned round: the state they name gets the requisite (seed 003)."""

from __future__ import annotations

from typing import Any

from statecore.compile.draft import REQUISITES_IN, Draft, Extension, disabled, states
from statecore.compile.extend import extended
from statecore.compile.targets import dotted, targets
from statecore.model.errors import SlsFault


def turn(draft: Draft) -> Draft:
    """High data in which every ``X_in`` has become an ``X`` of its target. Faults: dots in references, unknown targets.

    All that is said of one ID or name is one extension; like Salt, only the first state module it names must be there.
    """
    off = disabled(draft.opts)
    wanted: dict[str, dict[str, Any]] = {}
    faults: list[SlsFault] = []
    for name, body in draft.high.items():
        for state, run in states(body):
            for item in run if isinstance(run, list) else ():
                key = next(iter(item), "") if isinstance(item, dict) else ""
                if key not in REQUISITES_IN or key in off:
                    continue
                for target_state, target in targets(item[key], draft.high):
                    if "." in target_state:
                        faults.append(dotted(draft, REQUISITES_IN[key], (target_state, target), name))
                        target_state = target_state.partition(".")[0]
                    own = wanted.setdefault(target, {})
                    _add(own.setdefault(target_state, []), REQUISITES_IN[key], {state: name})
                    own |= {key: body[key] for key in ("__sls__", "__env__") if key in body} | {"__from__": name}
    return extended(draft.with_faults(faults), (Extension(*each) for each in wanted.items()), strict=True)


def _add(run: list[dict[str, Any]], kind: str, reference: dict[str, str]) -> None:
    for item in run:
        if kind in item:
            item[kind].append(reference)
            return
    run.append({kind: [reference]})
