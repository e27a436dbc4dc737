"""Looks up the URIs ``sdb://PROFILE/KEY`` in a configuration file, before the process that reads the file has a
Runtime, and so a loader.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, NotAvailable, SlsError
from statecore.runtime.runtime import Runtime
from statecore.sources.local_tree import LocalFiles
from statecore.system import sdb

#: What a lookup raises: the driver is missing or fails, or its template does.
FAILURES = (CommandError, NotAvailable, SlsError)


def resolved(values: Mapping[str, Any], opts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options ``values`` with each ``sdb://`` URI, at any depth, replaced by its value.

    ``opts`` are all options, with the profiles in ``module_settings``. A URI whose profile is unknown stays, as in
    Salt. Raise CommandError, NotAvailable or SlsError if the profile's driver fails or is unknown.
    """
    whole = {**dict(opts.get("module_settings") or {}), **opts}
    place = whole.get("extension_modules") or (f"{whole['cachedir']}/extmods" if whole.get("cachedir") else "")
    runtime = Runtime(
        {**whole, "extension_modules": place},
        files=LocalFiles({}),
        grains={},
        pillar={},
        extension_dir=Path(place) if place else None,
    )
    return {name: _looked_up(runtime.context, value) for name, value in values.items()}


def _looked_up(ctx: Context, value: object) -> object:
    if sdb.is_uri(value):
        return sdb.get(ctx, value)
    if isinstance(value, Mapping):
        return {key: _looked_up(ctx, each) for key, each in value.items()}
    if isinstance(value, list):
        return [_looked_up(ctx, each) for each in value]
    return value
