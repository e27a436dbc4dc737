"""The master of an orchestration, and the results of the ``salt`` states: success, changes and comments from minions'
returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NotRequired, TypedDict

from statecore.model.context import Context
from statecore.model.errors import StateFailure
from statecore.model.ports import Master


def master_of(ctx: Context) -> Master:
    """Return the master that runs this orchestration. Raises StateFailure outside of an orchestration."""
    if ctx.master is None:
        raise StateFailure("This state needs a master: put it into an SLS and run it with salt-run state.orchestrate")
    return ctx.master


class OrchestrationReturn(TypedDict):
    """Return of one state of an orchestration: a map with ``name``, ``result``, ``comment`` and ``changes``."""

    name: str
    result: bool | None
    comment: str
    changes: dict[str, object]
    #: JID of the job that the state ran.
    __jid__: NotRequired[object]
    warnings: NotRequired[list[str]]


def entry(
    name: str, result: bool | None, comment: str, changes: Mapping[str, object] | None = None
) -> OrchestrationReturn:
    """Return the result of an orchestration's state as a map {"name", "result", "comment", "changes"}. These states
    return no plans, because their results contain the JID of the job.
    """
    return {"name": name, "result": result, "comment": comment, "changes": dict(changes or {})}


def succeeded(running: object) -> bool:
    """Return True if a minion's return is a state run, or a map of state runs, without a failure.

    Anything else than a non-empty map is a failure.
    """
    return isinstance(running, Mapping) and bool(running) and _sound(running)


def _sound(running: Mapping[str, object]) -> bool:
    for value in running.values():
        if not isinstance(value, Mapping):
            continue
        if "result" in value:
            if value["result"] is False:
                return False
        elif not succeeded(value):
            return False
    return True


def changed(running: object) -> bool:
    """Return True if a state in the return of a state run has changes."""
    states = running.values() if isinstance(running, Mapping) else ()
    return any(isinstance(entry, Mapping) and entry.get("changes") for entry in states)


def detail(minion: str, answer: Mapping[str, object]) -> str:
    """Return one line about a minion whose return is not a state run; "" if it is one."""
    if "ret" not in answer:
        return f"Minion {minion} did not return a state result."
    ret = answer["ret"]
    if isinstance(ret, list | tuple):
        parts = [str(part) for part in ret if part]
        return (
            f"Minion {minion} returned errors: {'; '.join(parts)}"
            if parts
            else (f"Minion {minion} returned an empty error list.")
        )
    return "" if isinstance(ret, Mapping) else f"Minion {minion} returned {ret!r} instead of a state result."


def names(listed: object) -> list[str] | None:
    """Return a list of minion ids from an argument (a list, or text with commas); [] for None; None for any other type."""
    if listed is None:
        return []
    if isinstance(listed, str):
        return [name.strip() for name in listed.split(",")]
    return [str(name) for name in listed] if isinstance(listed, list) else None


def arguments(listed: object) -> dict[str, object]:
    """Return a map of keyword arguments from a map, or from a list of one-key maps."""
    if isinstance(listed, Mapping):
        return dict(listed)
    found: dict[str, object] = {}
    for item in listed if isinstance(listed, Sequence) and not isinstance(listed, str) else ():
        if isinstance(item, Mapping):
            found.update(item)
    return found


def joined(values: Iterable[str]) -> str:
    """Return minion ids in one text, separated by commas."""
    return ", ".join(values)
