"""Objects and modules that cost nothing until they are used."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any


def loaded(home: str, name: str) -> Any:
    """A name of a module, which is imported now."""
    return getattr(importlib.import_module(home), name)


class _LazyModule(ModuleType):
    """Stand-in for a module that is not imported yet."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def lazy_module(name: str) -> ModuleType:
    """Return a stand-in that imports the module ``name`` when one of the module's names is first used.

    Write it beside the real import, so that mypy, editors and the tests of the architecture see the real types::

        if TYPE_CHECKING:
            from statecore.runtime import state_runs
        else:
            state_runs = lazy_module("statecore.runtime.state_runs")
    """
    return _LazyModule(name)


class Deferred:
    """Stands for an object until it is used; then it is made, once."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            self._made = self._make()
        return getattr(self._made, name)
