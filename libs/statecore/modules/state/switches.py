"""Forbidding runs and allowing them again. What is forbidden is in the grain ``state_runs_disabled``: ``highstate``, names of
SLS files (``bind.*`` for all below), and globs of state functions, which the state system leaves out of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from statecore.context import Context
from statecore.modules.state import arguments

_GRAIN = "state_runs_disabled"


def disable(ctx: Context, states: str | Sequence[str]) -> dict[str, Any]:
    """Forbids the highstate, SLS files or state functions.

    CLI Example:

        salt '*' state.disable highstate,bind.config
    """
    return _switch(ctx, states, on=False)


def enable(ctx: Context, states: str | Sequence[str]) -> dict[str, Any]:
    """Allows again what was forbidden.

    CLI Example:

        salt '*' state.enable highstate
    """
    return _switch(ctx, states, on=True)


def list_disabled(ctx: Context) -> Any:
    """What is forbidden; "" when nothing ever was.

    CLI Example:

        salt '*' state.list_disabled
    """
    return ctx.call("grains.get", _GRAIN)


def disabled(ctx: Context) -> list[str]:
    """What is forbidden."""
    listed = ctx.call("grains.get", _GRAIN)
    return [str(each) for each in listed] if isinstance(listed, list) else []


def refusals(ctx: Context, names: Sequence[str]) -> list[str]:
    """A sentence for each of these SLS files that is forbidden."""
    return [sentence for name in names for pattern in disabled(ctx) if (sentence := _refusal(name, pattern))]


def _refusal(name: str, pattern: str) -> str:
    if ".*" in pattern:
        if name.startswith(f"{pattern.split('.')[0]}."):
            return (
                f'The state file "{name}" is currently disabled by "{pattern}", '
                f"to re-enable, run state.enable {pattern}."
            )
    elif name == pattern:
        return f'The state file "{name}" is currently disabled, to re-enable, run state.enable {name}.'
    return ""


def _switch(ctx: Context, states: str | Sequence[str], *, on: bool) -> dict[str, Any]:
    known = disabled(ctx)
    told = []
    word = "enabled" if on else "disabled"
    before = list(known)
    for state in arguments.split(states, "states"):
        already = (state in known) is not on
        told.append(f"Info: {state} state {'already ' if already else ''}{word}.")
        if not already:
            known.remove(state) if on else known.append(state)
    if known != before:
        ctx.call("grains.setval", _GRAIN, known)
    ctx.minion.refresh_modules()
    return {"res": True, "msg": "\n".join(told)}
