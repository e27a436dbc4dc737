"""Format a plan (the predicted changes of a state run) as text. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from statecore.analysis.planfile import PlanData, PlannedState
from statecore.analysis.prediction import WORDS, PredictedOutcome
from statecore.model import yaml
from statecore.model.text_lines import lines_of

_SIGNS: Mapping[str, str] = {
    PredictedOutcome.CHANGE: "~",
    PredictedOutcome.UNKNOWN: "?",
    PredictedOutcome.FAIL: "!",
    PredictedOutcome.UNCHANGED: " ",
}


def plan_text(data: PlanData, *, everything: bool = False, shorten: Callable[[str], str] = str) -> str:
    """Return the plan ``data`` as text: each state with its predicted changes and diffs, then the summary line.

    With ``everything`` the text also has the states that would not change and have no warnings. ``shorten(place)``
    returns a shorter form of the position ``place`` (``file:line``).
    """
    shown = [
        each
        for each in data["states"]
        if everything or each["verdict"] != PredictedOutcome.UNCHANGED or each["warnings"]
    ]
    return "\n".join([*("\n".join(_state(each, shorten)) + "\n" for each in shown), data["summary"]])


def _state(state: PlannedState, shorten: Callable[[str], str]) -> Iterator[str]:
    at = f", {shorten(state['at'])}" if state["at"] else ""
    yield f"{_SIGNS[state['verdict']]} {state['function']} {state['name']} (ID {state['id']}{at})"
    for warning in state["warnings"]:
        first, *rest = lines_of(warning) or [""]
        yield f"    warning: {first}"
        yield from (f"      {line}" for line in rest)
    if state["verdict"] == PredictedOutcome.UNKNOWN:
        why = state["comment"].partition("\n")[0] or "the state does not say"
        yield f"    {WORDS[PredictedOutcome.UNKNOWN]}" + (":" if state["because"] else f": {why}")
    elif state["verdict"] != PredictedOutcome.CHANGE:
        yield from (f"    {line}" for line in lines_of(state["comment"]))
    for reaction in state["because"]:
        yield f"    reacts by {reaction['requisite']} to {reaction['state']}: {reaction['id']}"
    if state["verdict"] == PredictedOutcome.CHANGE:
        diffs = [file["diff"] for file in state["files"] if file["diff"]]
        rest = _not_in_diffs(
            state["changes"], [file["path"] for file in state["files"]] if diffs else [], state["steps"]
        )
        yield from (f"    {line}" for line in rest)
        yield from (f"    {line}" for diff in diffs for line in lines_of(diff))


def _not_in_diffs(changes: Mapping[str, object], diffed: Sequence[str], steps: Sequence[str]) -> list[str]:
    """Return lines for predicted changes that the file diffs do not show; the plan's steps if no change is predicted."""
    left = {
        key: value
        for key, value in changes.items()
        if key not in diffed
        and not (diffed and key in ("diff", "newfile", "new", "removed") and not isinstance(value, list))
    }
    if set(left) == {"diff"}:
        return lines_of(str(left["diff"]))
    if left:
        dumped: str = yaml.dump(left, default_flow_style=False, sort_keys=False, allow_unicode=True)
        return lines_of(dumped)
    return [] if diffed else list(steps)
