"""SDB driver ``json``: values of JSON files of the host. Its settings are those of the driver ``yaml``."""

from __future__ import annotations

import json
from collections.abc import Mapping

from statecore.model.context import Context
from statecore.system.sdb_files import value_of


def get(ctx: Context, key: str, profile: Mapping[str, object] | None = None) -> object:
    """Return the value at a path (``db:password``) of the profile's JSON files, merged in their order; None if there is
    none.

    A missing file is logged and left out. Raise CommandError for a file that is not JSON.
    """
    return value_of(ctx, key, profile or {}, json.loads)
