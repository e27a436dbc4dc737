"""Runs that do not begin: the pillar has errors, there is nothing to do, the ID that is wanted is not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.compile import Compiled
from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.model.nearest import close_matches
from statecore.model.types import Running
from statecore.runtime.state_runs.stage import RunContext

#: Exit codes, Salt's.
COMPILE_ERROR, STATE_FAILED, PILLAR_ERROR = 1, 2, 5

#: What a highstate returns when there is nothing to apply; Salt's own tag.
_NO_STATES = "no_|-states_|-states_|-None"


def pillar_errors(stage: RunContext, options: Mapping[str, Any]) -> list[str]:
    """The errors that stop a run, [] when there are none or ``force`` says to go on."""
    errors = stage.ctx.pillar.get("_errors")
    if not errors or options.get("force"):
        return []
    stage.ctx.scratch["retcode"] = PILLAR_ERROR
    return ["Pillar failed to render with the following messages:", *errors]


def nothing(ctx: Context, comment: str) -> Running:
    """The running dictionary of a highstate that has nothing to apply, and why."""
    ctx.scratch["retcode"] = STATE_FAILED
    entry = {"result": False, "comment": comment, "name": "No States", "changes": {}, "__run_num__": 0}
    return {_NO_STATES: entry}


def must_have(state_id: str, compiled: Compiled, ctx: Context) -> None:
    """Raises InvocationError when no chunk has this ID."""
    known = {str(low["__id__"]) for low in compiled.chunks}
    if state_id not in known:
        files = ",".join(dict.fromkeys(str(low["__sls__"]) for low in compiled.chunks))
        near = close_matches(state_id, known, n=1)
        hint = f". Did you mean '{near[0]}'?" if near else ""
        raise InvocationError(
            f"No matches for ID '{state_id}' found in SLS '{files}' within saltenv '{ctx.saltenv}'{hint}"
        )
