"""The master behind these states, and how they end without one."""

from __future__ import annotations

from typing import Any

from statecore.model.context import Context
from statecore.model.errors import StateFailure
from statecore.model.ports import Master


def master_of(ctx: Context) -> Master:
    """The master that runs this orchestration. Raises StateFailure where none does."""
    if ctx.master is None:
        raise StateFailure(
            "This state asks a master, and none runs it: put it into an SLS for salt-run state.orchestrate"
        )
    return ctx.master


def entry(name: str, result: bool | None, comment: str, changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """What a state returns. These states do not make plans: what they did has a job's id, which belongs to the return."""
    return {"name": name, "result": result, "comment": comment, "changes": changes or {}}
