"""Imports and objects that cost nothing until they are used.

Most calls of a minion's functions need no template engine, no compiler and no state engine.
``docs/decisions/0014-import-tricks.md`` has the figures. Mypy and editors see the real types behind the stand-ins of
``lazy_module`` and ``deferred``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import TypeVar, cast

_T = TypeVar("_T")


class _LazyModule(ModuleType):
    """Stand-in for a Python module: the module is imported when one of its names is first used."""

    def __getattr__(self, name: str) -> object:
        return getattr(importlib.import_module(self.__name__), name)


def lazy_module(name: str) -> ModuleType:
    """Return a stand-in that imports the module ``name`` when one of the module's names is first used.

    Write it beside the real import. Mypy, editors and the tests of the architecture read the real import::

        if TYPE_CHECKING:
            from statecore import engine
        else:
            engine = lazy_module("statecore.engine")
    """
    return _LazyModule(name)


def deferred(make: Callable[[], _T]) -> _T:
    """Return a stand-in for the object that ``make`` returns. ``make`` is called once, when an attribute is first used.

    The stand-in passes on attributes and methods only: it cannot be called, indexed or compared as the object.
    """
    return cast("_T", _Deferred(make))


class _Deferred:
    """Stand-in for an object: the object is created when one of its attributes is first used."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make
        self._made: object = None

    def __getattr__(self, name: str) -> object:
        if self._made is None:
            self._made = self._make()
        return getattr(self._made, name)
