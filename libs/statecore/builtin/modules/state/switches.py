"""Functions of ``state`` that disable and enable the highstate, SLS files and state functions.

The grain ``state_runs_disabled`` lists what is disabled: ``highstate``, names of SLS files (``bind.*`` for all below),
and globs of state functions, which the state system leaves out of runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from statecore.builtin.modules.state import arguments
from statecore.model.context import Context
from statecore.runtime.state_runs import disabled_states


def disable(ctx: Context, states: str | Sequence[str]) -> dict[str, object]:
    """Disable the highstate, SLS files or state functions. Return a map with ``res`` (bool) and ``msg``.

    CLI Example:

        salt '*' state.disable highstate,bind.config
    """
    return _switch(ctx, states, on=False)


def enable(ctx: Context, states: str | Sequence[str]) -> dict[str, object]:
    """Enable the highstate, SLS files or state functions that were disabled. Return a map with ``res`` (bool) and
    ``msg``.

    CLI Example:

        salt '*' state.enable highstate
    """
    return _switch(ctx, states, on=True)


def list_disabled(ctx: Context) -> object:
    """Return the names of the disabled SLS files and state functions (``highstate`` for the highstate); "" if nothing
    was ever disabled.

    CLI Example:

        salt '*' state.list_disabled
    """
    return ctx.call("grains.get", disabled_states.GRAIN)


def _switch(ctx: Context, states: str | Sequence[str], *, on: bool) -> dict[str, object]:
    known = disabled_states.rows(ctx.call("grains.get", disabled_states.GRAIN))
    messages = []
    word = "enabled" if on else "disabled"
    before = list(known)
    for state in arguments.split(states, "states"):
        already = (state in known) is not on
        messages.append(f"Info: {state} state {'already ' if already else ''}{word}.")
        if not already:
            known.remove(state) if on else known.append(state)
    if known != before:
        ctx.call("grains.setval", disabled_states.GRAIN, known)
    ctx.minion.refresh_modules()
    return {"res": True, "msg": "\n".join(messages)}
