"""Functions of Salt's ``state`` module that are not available on a minion. Their errors name an alternative."""

from __future__ import annotations

from typing import NoReturn

from statecore.model.context import Context
from statecore.model.errors import CommandError


def pkg(ctx: Context, *args: object, **kwargs: object) -> NoReturn:
    """Raise CommandError: the function applies packages of salt-ssh, which does not exist here."""
    raise CommandError(
        "state.pkg is not available: it unpacks what salt-ssh sends; use state.apply, or salt-call --local"
    )


def orchestrate(ctx: Context, *args: object, **kwargs: object) -> NoReturn:
    """Raise CommandError: orchestration runs on the master only."""
    raise CommandError("state.orchestrate is not available on a minion: it belongs to the master (salt-run)")


def event(ctx: Context, *args: object, **kwargs: object) -> NoReturn:
    """Raise CommandError: minions have no event bus."""
    raise CommandError("state.event is not available on a minion, which has no event bus: use 'salt-run state.event'")
