"""The context whose user module runs now: what ``salt.*`` functions that are given no context work on.

Entered around each call of a user's function, per thread of control; nothing of ours asks it but the compatibility package.
"""

from __future__ import annotations

from contextvars import ContextVar

from statecore.model.context import Context
from statecore.model.errors import CommandError

current: ContextVar[Context | None] = ContextVar("statecore.loader.entered", default=None)


def context_of(what: str) -> Context:
    """The running module's context. Raises CommandError, naming ``what``, outside of a module's call."""
    ctx = current.get()
    if ctx is None:
        raise CommandError(f"{what} works while a function of a module runs, not while it is imported")
    return ctx
