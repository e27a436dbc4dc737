"""``salt.utils.dictupdate``."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from statecore.values import merge as _merge
from statecore.values import update as _update


def update(
    dest: MutableMapping[str, Any], upd: Mapping[str, Any], recursive_update: bool = True, merge_lists: bool = False
) -> MutableMapping[str, Any]:
    """``upd`` merged into ``dest``, which is changed and returned."""
    if recursive_update:
        return _update(dest, upd, lists=merge_lists)
    dest.update(upd)
    return dest


def merge(obj_a: Any, obj_b: Any, strategy: str = "smart", renderer: str = "yaml", merge_lists: bool = False) -> Any:
    """Two dicts as one."""
    return _merge(obj_a, obj_b, strategy, lists=merge_lists)
