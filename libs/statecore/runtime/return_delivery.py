"""Delivery of a job's return to returners: built-in ones, and users' own from ``_returners``.

A returner that fails is logged; the other returners are still called.

Source: docs/execution.md#returns
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Mapping

from statecore.loader import Loader
from statecore.model.context import Context
from statecore.model.errors import NotAvailable

_LOG = logging.getLogger(__name__)


def named(*lists: object) -> list[str]:
    """List of the returners' names in the given values, each once, in order.

    Each value is a list of names, a text with names separated by commas, or anything else, which has no names.
    """
    found: dict[str, None] = {}
    for one in lists:
        parts = one.split(",") if isinstance(one, str) else one if isinstance(one, list) else []
        found |= dict.fromkeys(str(part).strip() for part in parts if str(part).strip())
    return list(found)


def deliver(loader: Loader, ctx: Context, names: Iterable[str], ret: Mapping[str, object]) -> None:
    """Pass a job's return to each of these returners (each gets its own copy). A returner that fails is logged."""
    for name in names:
        try:
            served, function = loader.function("returners", f"{name}.returner", ctx)
        except NotAvailable as missing:
            _LOG.error("Returner %s.returner could not be loaded: %s", name, missing)
            continue
        try:
            served.bound(function, ctx)(copy.deepcopy(dict(ret)))
        except Exception as error:  # noqa: BLE001 - a user's returner may raise anything; the master has the return
            _LOG.error("The return failed for job %s by the returner %s: %s", ret.get("jid"), name, error)
