"""Functions of Salt's ``state`` module that have no place on a minion here, and what to use instead."""

from __future__ import annotations

from typing import Any, NoReturn

from statecore.model.context import Context
from statecore.model.errors import CommandError


def pkg(ctx: Context, *args: Any, **kwargs: Any) -> NoReturn:
    """Not available: it applies what salt-ssh packed, which there is none of. Raises CommandError."""
    raise CommandError(
        "state.pkg is not available: it unpacks what salt-ssh sends; use state.apply, or salt-call --local"
    )


def orchestrate(ctx: Context, *args: Any, **kwargs: Any) -> NoReturn:
    """Not available: orchestration is the master's. Raises CommandError."""
    raise CommandError("state.orchestrate is not available on a minion: it belongs to the master (salt-run)")


def event(ctx: Context, *args: Any, **kwargs: Any) -> NoReturn:
    """Not available: minions have no event bus. Raises CommandError."""
    raise CommandError("state.event is not available on a minion, which has no event bus: use 'salt-run state.event'")
