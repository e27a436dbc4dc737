"""The inventory of reclass, by the Python package reclass (extra ``saltern-statecore[reclass]``), for the external pillar
and the tops module ``reclass``.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from reclass.adapters import salt as adapter
from reclass.errors import ReclassException

from statecore.model.errors import CommandError

#: An option of Salt's adapter: where Python finds reclass. Here it is an installed package.
_SOURCE = "reclass_source_path"


def pillar_of(
    opts: Mapping[str, Any], minion_id: str, pillar: dict[str, object], settings: Mapping[str, object]
) -> dict[str, object]:
    """Return the pillar data of a minion. ``settings``: storage_type, inventory_base_uri and reclass's others.

    Raise CommandError for a faulty inventory and for unknown settings.
    """
    found: dict[str, object] = _asked(
        adapter.ext_pillar, minion_id, copy.deepcopy(pillar), **_arguments(opts, settings)
    )
    return found


def top_of(opts: Mapping[str, Any], minion_id: str, settings: Mapping[str, object]) -> dict[str, list[str]]:
    """Map of saltenv to the SLS names (applications) of a minion. ``settings`` as for ``pillar_of``. Raise CommandError."""
    found: dict[str, list[str]] = _asked(adapter.top, minion_id, **_arguments(opts, settings))
    return found


def _arguments(opts: Mapping[str, Any], settings: Mapping[str, object]) -> dict[str, object]:
    given = {name: value for name, value in settings.items() if name != _SOURCE}
    roots = (opts.get("file_roots") or {}).get("base")
    if "inventory_base_uri" not in given and roots:
        given["inventory_base_uri"] = roots[0]
    return given


def _asked(function: Any, *args: object, **kwargs: object) -> Any:
    try:
        return function(*args, **kwargs)
    except ReclassException as error:
        raise CommandError(f"reclass: {error.message}") from error
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        raise CommandError(f"reclass does not know the setting {str(error).split()[-1]}") from error
