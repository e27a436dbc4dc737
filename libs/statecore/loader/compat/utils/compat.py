"""``salt.utils.compat`` for users' modules: ``cmp`` and ``reload``, which Python 3 no longer has as built-in functions."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


def cmp(x: Any, y: Any) -> int:
    """Return -1, 0 or 1: whether x is less than, equal to or greater than y. Unordered values count as 0 if they are
    equal, else as 1.
    """
    if isinstance(x, dict) and isinstance(y, dict):
        return 0 if x == y else -1
    return bool(x > y) - bool(x < y)


def reload(mod: ModuleType) -> ModuleType:
    """Import a loaded module again, as importlib.reload does, and return it."""
    return importlib.reload(mod)
