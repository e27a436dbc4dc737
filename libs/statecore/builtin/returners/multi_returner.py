"""Returner ``multi_returner``: passes jobs and returns to all returners that the option ``multi_returner`` lists, and reads
from all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError


def returner(ctx: Context, ret: Mapping[str, object]) -> None:
    """Pass one return of a job to each of the returners. A returner that fails does not keep it from the others.

    Raises CommandError with the errors of all returners that failed.
    """
    _each(ctx, "returner", ret)


def save_load(ctx: Context, jid: str, load: Mapping[str, object], minions: object = None) -> None:
    """Pass the load of a job to each of the returners. Raises CommandError as ``returner``."""
    _each(ctx, "save_load", jid, load)


def save_minions(ctx: Context, jid: str, minions: object, syndic_id: object = None) -> None:
    """Do nothing: the load names the minions."""


def get_load(ctx: Context, jid: str) -> dict[str, Any]:
    """Return the load of a job, merged from all returners."""
    return _merged(ctx, "get_load", jid)


def get_jid(ctx: Context, jid: str) -> dict[str, Any]:
    """Return a map of minion id to its return of a job, merged from all returners."""
    return _merged(ctx, "get_jid", jid)


def get_jids(ctx: Context) -> dict[str, Any]:
    """Return a map of JID to the listed form of the job, merged from all returners."""
    return _merged(ctx, "get_jids")


def clean_old_jobs(ctx: Context) -> None:
    """Call ``clean_old_jobs`` of each returner that has it."""
    for name in _names(ctx):
        function = f"{name}.clean_old_jobs"
        if function in ctx.tables["returners"]:
            ctx.tables["returners"][function]()


def _each(ctx: Context, function: str, *args: object) -> None:
    errors = []
    for name in _names(ctx):
        try:
            ctx.tables["returners"][f"{name}.{function}"](*args)
        except Exception as error:  # noqa: BLE001 - a user's returner may raise anything; the others still get their part
            errors.append(f"{name}: {error}")
    if errors:
        raise CommandError("; ".join(errors))


def _merged(ctx: Context, function: str, *args: object) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in _names(ctx):
        found |= ctx.tables["returners"][f"{name}.{function}"](*args) or {}
    return found


def _names(ctx: Context) -> list[str]:
    names = ctx.opts.get("multi_returner")
    if not isinstance(names, list) or not names:
        raise CommandError("the option multi_returner is not set: it is the list of the returners to use")
    return [str(name) for name in names]
