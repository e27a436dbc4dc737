"""The context of the user's module function that is running: ``salt.*`` functions without a context parameter use it.

``UserModule.bind`` sets it around each call, separately for each thread and asyncio task. Only the compatibility package
(``loader/compat``) reads it.
"""

from __future__ import annotations

from contextvars import ContextVar

from statecore.model.context import Context
from statecore.model.errors import CommandError

current: ContextVar[Context | None] = ContextVar("statecore.loader.current_context", default=None)


def context_of(what: str) -> Context:
    """Return the running function's context. Raise CommandError naming ``what`` if no module's function is running."""
    ctx = current.get()
    if ctx is None:
        raise CommandError(f"{what} works while a function of a module runs, not while it is imported")
    return ctx
