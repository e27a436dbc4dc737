"""The data that templates get, as variables and as results of functions: copies.

A template may change its data (``{% do pillar.update(...) %}``). As in Salt, the other templates of the same tree see what
one of them changes in ``opts``, ``grains`` and ``pillar``. Execution functions, the engine, other trees and the limits that
options set do not.
"""

from __future__ import annotations

import datetime
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from statecore.model.errors import StatecoreError
from statecore.model.lazy import LazyMap

#: Types of values that are no containers and cannot change.
_SCALARS = frozenset(
    {
        *(str, int, float, complex, bool, bytes, type(None)),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
    }
)


#: Methods by which a class changes what its maps or lists hold.
_OF_CONTAINERS = frozenset(("__getitem__", "__missing__", "__iter__", "get", "items", "keys", "values"))


class NoData(StatecoreError):
    """A function gave a template a table of functions."""


def data_copy(value: object) -> object:
    """Return a deep copy of nested maps, lists, tuples and sets. Maps and lists of other classes become dicts and lists, but
    for subclasses of ``dict`` and ``list`` that read their items in their own way. Other objects are not copied.

    Raise NoData for a map or list of another class that holds functions, such as ``__salt__``: it leads round the minion's
    limits.
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict or kind is OrderedDict:
        assert isinstance(value, dict)
        if _SCALARS.issuperset(map(type, value.values())):
            return value.copy()
        items = {key: each if type(each) in _SCALARS else data_copy(each) for key, each in value.items()}
        return OrderedDict(items) if kind is OrderedDict else items
    if kind is list or kind is tuple:
        assert isinstance(value, list | tuple)
        if _SCALARS.issuperset(map(type, value)):
            return value if isinstance(value, tuple) else value.copy()
        listed = [each if type(each) in _SCALARS else data_copy(each) for each in value]
        return listed if kind is list else tuple(listed)
    if isinstance(value, set):
        # A set holds what cannot change.
        return set(value) if kind is set else value
    if isinstance(value, dict | list):
        own = any(_OF_CONTAINERS & base.__dict__.keys() for base in kind.__mro__[: kind.__mro__.index(_builtin(value))])
        return value if own else data_copy({**value} if isinstance(value, dict) else [*value])
    if isinstance(value, Mapping):
        return {key: data_copy(_no_function(each)) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview | tuple | range):
        return [data_copy(_no_function(each)) for each in value]
    return value


def _builtin(value: dict[Any, Any] | list[Any]) -> type:
    return dict if isinstance(value, dict) else list


def _no_function(value: object) -> object:
    if callable(value):
        raise NoData("a table of functions is no data; templates call functions as salt['module.function']")
    return value


def plain_data(value: object) -> object:
    """Return a deep copy of nested data for the templates of a stranger: maps become dicts, lists and tuples stay, and every
    object that is no text, number, date or container becomes its text.
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if isinstance(value, Mapping):
        return {plain_data(key): plain_data(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        listed = [plain_data(each) for each in value]
        return tuple(listed) if isinstance(value, tuple) else listed
    if isinstance(value, set | frozenset):
        return {plain_data(each) for each in value}
    return str(value)


class Copied:
    """A variable whose value is copied when a template first names it. Options and pillar may be large, and few templates
    read them whole. ``ClosedContext`` gives templates the copy; they never get this object.
    """

    __slots__ = ("_made", "_original", "_plain")

    def __init__(self, original: object, *, plain: bool = False) -> None:
        """``plain``: the copy is ``plain_data``."""
        self._original = original
        self._plain = plain
        self._made: object = _NOT_YET

    def value(self) -> object:
        """Return the copy, always the same one."""
        if self._made is _NOT_YET:
            original = self._original
            # A lazy map may have to be compiled: it is copied when the template reads it.
            self._made = original.changed(self._of_map) if isinstance(original, LazyMap) else self._copy(original)
        return self._made

    def _copy(self, value: object) -> object:
        return plain_data(value) if self._plain else data_copy(value)

    def _of_map(self, value: Mapping[str, object]) -> Mapping[str, object]:
        made = self._copy({**value})
        assert isinstance(made, Mapping)
        return made


_NOT_YET = object()


class Variables:
    """The variables of the templates of one tree. The tree's own data is copied once, that of one template each time."""

    def __init__(self, names: Mapping[str, object], *, plain: bool) -> None:
        """``names`` maps the variables of every template to their values. ``plain``: templates get ``plain_data``."""
        self._plain = plain
        self._originals = {name: value for name, value in names.items() if _is_data(value)}
        self._copies = {name: Copied(value, plain=plain) for name, value in self._originals.items()}

    def seen(self, names: Mapping[str, object]) -> dict[str, object]:
        """Return a template's variables with a ``Copied`` in the place of each map and list."""
        originals = self._originals
        return {
            name: (self._copies[name] if value is originals.get(name) else Copied(value, plain=self._plain))
            if _is_data(value)
            else value
            for name, value in names.items()
        }


def _is_data(value: object) -> bool:
    kind = type(value)
    return kind is dict or kind is list or kind is OrderedDict or kind is LazyMap
