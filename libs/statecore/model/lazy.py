"""Objects and modules that cost nothing until they are used."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def loaded(home: str, name: str) -> Any:
    """A name of a module, which is imported now."""
    return getattr(importlib.import_module(home), name)


class Deferred:
    """Stands for an object until it is used; then it is made, once."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            self._made = self._make()
        return getattr(self._made, name)
