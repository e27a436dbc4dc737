"""Imports and objects that cost nothing until they are used.

Most calls of a minion's functions need no template engine, no compiler and no state engine.
``docs/decisions/0014-import-tricks.md`` has the figures. Mypy and editors see the real types behind the stand-ins of
``lazy_module`` and ``deferred``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
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


class LazyMap(Mapping[str, object]):
    """A map that is read from ``read`` each time it is used: ``grains.get`` must not compile a pillar."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[], Mapping[str, object]]) -> None:
        self._read = read

    def __getitem__(self, key: str) -> object:
        return self._read()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def changed(self, change: Callable[[Mapping[str, object]], Mapping[str, object]]) -> LazyMap:
        """Return the map that ``change`` makes of this one when it is first used, and again after this map was replaced."""
        made: tuple[Mapping[str, object], Mapping[str, object]] | None = None

        def read() -> Mapping[str, object]:
            nonlocal made
            now = self._read()
            if made is None or made[0] is not now:
                made = now, change(now)
            return made[1]

        return LazyMap(read)
