"""The Context of the user's module function that is running now.

Salt's functions (``salt.utils...``) have no context parameter, so the compatibility package (``loader/compat``) takes
the Context from here. ``UserModule.bind`` sets it around each call, separately for each thread and asyncio task.
"""

from __future__ import annotations

from contextvars import ContextVar

from statecore.model.context import Context
from statecore.model.errors import CommandError

current: ContextVar[Context | None] = ContextVar("statecore.loader.current_context", default=None)


def context_of(what: str) -> Context:
    """Return the Context of the user's module function that is running now.

    Raise CommandError if no such function is running, for example while a module is imported. ``what`` is the called
    function's name in the message.
    """
    ctx = current.get()
    if ctx is None:
        raise CommandError(
            f"{what} can be called only while a function of a module runs, not while the module is imported"
        )
    return ctx
