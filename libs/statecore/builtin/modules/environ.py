"""Environment variables of this process (Salt's ``environ`` module). Commands of a mounted host get those that are set here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import InvocationError


def setval(ctx: Context, key: str, val: Any, false_unsets: bool = False, permanent: Any = False) -> Any:
    """Sets a variable; False empties it, or with ``false_unsets`` removes it. Its value then, None for none, False for no text.

    CLI Example:

        salt '*' environ.setval foo bar
    """
    if permanent:
        raise InvocationError("not supported: permanent (Windows)")
    if val is False and false_unsets:
        os.environ.pop(key, None)
        ctx.host.set_variable(key, None)
        return None
    if val is not False and not isinstance(val, str):
        return False
    os.environ[key] = val or ""
    ctx.host.set_variable(key, os.environ[key])
    return os.environ[key]


def setenv(
    ctx: Context,
    environ: Mapping[str, Any],
    false_unsets: bool = False,
    clear_all: bool = False,
    update_minion: bool = False,
    permanent: Any = False,
) -> Any:
    """Sets several; ``clear_all`` empties (or removes) all others. name -> value then; False where one is no text."""
    if not isinstance(environ, Mapping) or any(
        val is not False and not isinstance(val, str) for val in environ.values()
    ):
        return False
    others = [key for key in os.environ if key not in environ] if clear_all else []
    done = {key: setval(ctx, key, False, false_unsets, permanent) for key in others}
    done |= {key: setval(ctx, key, val, false_unsets, permanent) for key, val in environ.items()}
    if update_minion:
        data = {"environ": dict(environ), "false_unsets": false_unsets, "clear_all": clear_all, "permanent": permanent}
        ctx.events.fire("environ_setenv", data)
    return done


def get(ctx: Context, key: str, default: str = "") -> Any:
    """A variable."""
    return os.environ.get(key, default) if isinstance(key, str) else False


def has_value(ctx: Context, key: str, value: str | None = None) -> bool:
    """Whether a variable is set, and to this."""
    return isinstance(key, str) and key in os.environ and value in (None, os.environ[key])


def item(ctx: Context, keys: Any, default: str = "") -> dict[str, str]:
    """name -> value of a variable, or a list of them."""
    return {key: os.environ.get(key, default) for key in (keys if isinstance(keys, list) else [keys])}


def items(ctx: Context) -> dict[str, str]:
    """All variables."""
    return dict(os.environ)
