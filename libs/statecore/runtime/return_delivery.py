"""Hands the return of a job to returners: built-in ones, and users' from ``_returners``.

One that fails is in the log, and not in the way of the others.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from statecore.loader import Loader
from statecore.model.context import Context
from statecore.model.errors import NotAvailable

_LOG = logging.getLogger(__name__)


def named(*lists: Any) -> list[str]:
    """Names of returners in the forms that they are written in (a list, or text with commas), each once, in order."""
    found: dict[str, None] = {}
    for one in lists:
        parts = one.split(",") if isinstance(one, str) else one if isinstance(one, list) else []
        found |= dict.fromkeys(str(part).strip() for part in parts if str(part).strip())
    return list(found)


def deliver(loader: Loader, ctx: Context, names: Iterable[str], ret: Mapping[str, Any]) -> None:
    """Calls ``returner`` of each with a copy of its own."""
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
