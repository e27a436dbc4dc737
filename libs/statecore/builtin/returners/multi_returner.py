"""Returner ``multi_returner``: passes jobs and returns to all returners that the option ``multi_returner`` lists, and reads
from all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError


def returner(ctx: Context, ret: Mapping[str, object]) -> None:
    """Pass one minion's return of a job to each returner in the option ``multi_returner``. A returner that fails does
    not keep the return from the others.

    Raises CommandError with the errors of all returners that failed.
    """
    _each(ctx, "returner", ret)


def save_load(ctx: Context, jid: str, load: Mapping[str, object], minions: object = None) -> None:
    """Pass the load of a job to each returner in the option ``multi_returner``. Raises CommandError with the errors of
    all returners that failed.
    """
    _each(ctx, "save_load", jid, load)


def save_minions(ctx: Context, jid: str, minions: object, syndic_id: object = None) -> None:
    """Do nothing: the load that ``save_load`` passes to the returners names the job's minions."""


def get_load(ctx: Context, jid: str) -> dict[str, Any]:
    """Return the load of a job, merged from the loads that all returners in the option ``multi_returner`` have."""
    return _merged(ctx, "get_load", jid)


def get_jid(ctx: Context, jid: str) -> dict[str, Any]:
    """Return {minion id: return} of a job, merged from all returners in the option ``multi_returner``."""
    return _merged(ctx, "get_jid", jid)


def get_jids(ctx: Context) -> dict[str, Any]:
    """Return {JID: job} of all jobs, merged from all returners in the option ``multi_returner``. A job is a map with
    Function, Arguments, Target, Target-type, User and StartTime.
    """
    return _merged(ctx, "get_jids")


def clean_old_jobs(ctx: Context) -> None:
    """Let each returner in the option ``multi_returner`` that has a function ``clean_old_jobs`` delete its old jobs."""
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
