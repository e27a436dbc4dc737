"""Environment variables of the minion's process: Salt's ``environ`` execution module.

Commands on a mounted host get only the variables that are set here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from statecore.model.context import Context


def setval(ctx: Context, key: str, val: object, false_unsets: bool = False, permanent: object = False) -> object:
    """Set an environment variable of the minion's process. Return its new value.

    val
        text; False sets an empty value, or with ``false_unsets`` removes the variable (the result is then None)

    permanent
        accepted, without effect: it is for Windows

    Return False if ``val`` is anything else.

    CLI Example:

        salt '*' environ.setval foo bar
    """
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
    environ: Mapping[str, object],
    false_unsets: bool = False,
    clear_all: bool = False,
    update_minion: bool = False,
    permanent: object = False,
) -> object:
    """Set several environment variables of the minion's process. Return a map of name to new value, False if a value is
    not text.

    clear_all
        True: set all other variables to an empty value, or with ``false_unsets`` remove them
    update_minion
        True: also fire the event ``environ_setenv``
    """
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


def get(ctx: Context, key: str, default: str = "") -> object:
    """Return the value of an environment variable of the minion's process, ``default`` if it is not set."""
    return os.environ.get(key, default) if isinstance(key, str) else False


def has_value(ctx: Context, key: str, value: str | None = None) -> bool:
    """Return whether an environment variable of the minion's process is set, and has the value ``value`` if one is
    given.
    """
    return isinstance(key, str) and key in os.environ and value in (None, os.environ[key])


def item(ctx: Context, keys: str | list[str], default: str = "") -> dict[str, str]:
    """Return a map of name to value for one environment variable or a list of them. A variable that is not set has the
    value ``default``.
    """
    return {key: os.environ.get(key, default) for key in (keys if isinstance(keys, list) else [keys])}


def items(ctx: Context) -> dict[str, str]:
    """Return a map of name to value of all environment variables of the minion's process."""
    return dict(os.environ)
