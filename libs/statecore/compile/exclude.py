"""Compiler pass: remove excluded IDs, and all IDs of excluded SLS references or globs.

Source: docs/state-system.md#exclude.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from statecore.compile.draft import Draft
from statecore.compile.extend import excluded_slses


def well_formed(entry: object) -> bool:
    """Return True if an entry of an exclude list is an SLS reference, ``sls: SLS`` or ``id: ID``."""
    if isinstance(entry, Mapping) and len(entry) == 1:
        key, value = next(iter(entry.items()))
        return key in ("sls", "id") and isinstance(value, str)
    return isinstance(entry, str)


def exclude(draft: Draft) -> Draft:
    """Compiler pass: remove the IDs that ``exclude`` declarations name. Return the new draft."""
    if not draft.excludes:
        return draft
    slses = excluded_slses(draft.excludes)
    ids = {str(each["id"]) for each in draft.excludes if isinstance(each, Mapping) and "id" in each}
    high = {
        name: body
        for name, body in draft.high.items()
        if name not in ids and not any(fnmatchcase(str(body.get("__sls__", "")), sls) for sls in slses)
    }
    return replace(draft, high=high, excludes=())
