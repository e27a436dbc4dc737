"""Conversion of a native state's Plan into Salt's state return: steps are applied, or only described in test mode."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from statecore.model.errors import StatecoreError, StateFailure, place_in_module
from statecore.model.types import Outcome, Plan, Step

log = logging.getLogger(__name__)


def settle(plan: Plan, name: object, *, test: bool, shown: Callable[[str], str] = str) -> dict[str, object]:
    """Apply a native state's plan, or describe it in test mode; return the state return.

    The state return has ``name``, ``changes``, ``result`` and ``comment``. The keys ``warnings``, ``skip_req`` and
    ``data`` are added if the plan has them. In test mode no step runs, and the result of a plan with steps is None. A
    step that fails ends the plan with result False.

    ``shown`` returns the name of a step as the log may contain it; a function other than ``str`` hides tracebacks too.
    """
    more: dict[str, object] = {"warnings": list(plan.warnings)} if plan.warnings else {}
    if plan.skip_req:
        more["skip_req"] = True
    return _settled(plan, name, test=test, shown=shown) | more


def _settled(plan: Plan, name: object, *, test: bool, shown: Callable[[str], str]) -> dict[str, object]:
    if not plan.steps:
        comment = (test and plan.in_test) or plan.comment
        return _entry(name, plan.changes, plan.result, [*plan.notes, comment])
    if test:
        return _entry(name, plan.changes, None, [*plan.notes, plan.comment])
    comments = list(plan.notes)
    changes: dict[str, object] = {}
    found: dict[str, object] = {}
    result = plan.result
    for step in plan.steps:
        outcome = _run(step, shown)
        comments.append(outcome.comment)
        changes.update(outcome.changes)
        if outcome.data is not None:
            found["data"] = outcome.data
        if not outcome.ok:
            result = False
            break
    return _entry(name, changes, result, comments) | found


def _run(step: Step, shown: Callable[[str], str]) -> Outcome:
    log.debug("step: %s", shown(step.what))
    try:
        return step.run()
    except StateFailure as failure:
        return Outcome(comment=failure.comment, changes=failure.changes, ok=False)
    except StatecoreError as error:
        return Outcome(comment=f"Failed to {step.what}: {error}", ok=False)
    except OSError as error:
        # Disk full, read-only, not permitted: faults of the host, not of the state. No traceback.
        where = f"{error.filename}: " if error.filename is not None else ""
        return Outcome(comment=f"Failed to {step.what}: {where}{error.strerror or error}", ok=False)
    except Exception as error:
        # The traceback of a hidden state may quote its arguments.
        log.error("Unexpected exception in the step: %s", shown(step.what), exc_info=shown is str)
        brief = f"{type(error).__name__}: {error}{place_in_module(error)}"
        return Outcome(comment=f"Failed to {step.what}: {brief}", ok=False)


def _entry(name: object, changes: Mapping[str, object], result: bool | None, comments: list[str]) -> dict[str, object]:
    return {
        "name": name,
        "changes": dict(changes),
        "result": result,
        "comment": "\n".join(comment for comment in comments if comment),
    }
