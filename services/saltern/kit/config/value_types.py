"""Types of option values: whether a YAML value has the type of its option, and its reading as that type where Salt reads it so."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

#: Texts that YAML would read as true or false if they were not quoted.
_TRUE = frozenset(("true", "yes", "on", "1"))
_FALSE = frozenset(("false", "no", "off", "0"))

_PLAIN = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    type(None): "empty",
    Any: "anything",
}


def fits(value: object, hint: Any) -> bool:
    """Return whether a value has the type of a type hint: int, float, str, bool, list, dict, object, a TypedDict (which
    may have further fields), unions of these, Any.
    """
    origin = typing.get_origin(hint)
    if hint is Any:
        return True
    if origin in (types.UnionType, typing.Union):
        return any(fits(value, arm) for arm in typing.get_args(hint))
    if origin is list:
        (item,) = typing.get_args(hint)
        return isinstance(value, list) and all(fits(entry, item) for entry in value)
    if origin is dict:
        key, item = typing.get_args(hint)
        return isinstance(value, dict) and all(fits(k, key) and fits(v, item) for k, v in value.items())
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if typing.is_typeddict(hint):
        required, fields = _fields(hint)
        return (
            isinstance(value, dict)
            and required <= value.keys()
            and all(fits(value[name], kind) for name, kind in fields.items() if name in value)
        )
    return isinstance(value, hint)


@lru_cache
def _fields(hint: Any) -> tuple[frozenset[str], Mapping[str, Any]]:
    """Return (required fields, {field: its type}) of a TypedDict."""
    # __required_keys__ does not know NotRequired in annotations that are text.
    given = typing.get_type_hints(hint, include_extras=True)
    required = frozenset(name for name, kind in given.items() if typing.get_origin(kind) is not typing.NotRequired)
    return required, typing.get_type_hints(hint)


def coerced(value: object, hint: Any) -> object:
    """Return a value converted to the type of a type hint: '4506' to 4506, 5.5 to 5, one text to a list.

    Raise ValueError if the value cannot be read as that type.
    """
    if fits(value, hint):
        return value
    for arm in _arms(hint):
        try:
            return _as(value, arm)
        except ValueError:
            continue
    raise ValueError(f"not {named(hint)}")


def takes_none(hint: Any) -> bool:
    """Return whether the type hint of an option allows null (None)."""
    return fits(None, hint)


def named(hint: Any) -> str:
    """Return a type hint in words, for messages and docs/config.md: "a list (of text)"."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if typing.is_typeddict(hint):
        return "a map with " + ", ".join(sorted(_fields(hint)[0]))
    if hint is object:
        return _PLAIN[Any]
    arms = [named(arm) for arm in typing.get_args(hint)]
    if typing.get_origin(hint) is list:
        return f"a list (of {arms[0]})"
    if typing.get_origin(hint) is dict:
        return f"a map ({arms[0]}: {arms[1]})"
    return " or ".join(arms)


def _arms(hint: Any) -> Iterator[Any]:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        yield from typing.get_args(hint)
    else:
        yield hint


def _as(value: object, hint: Any) -> object:
    origin = typing.get_origin(hint)
    if origin is list:
        return _as_list(value, *typing.get_args(hint))
    if origin is dict:
        return _as_map(value, *typing.get_args(hint))
    if hint is bool:
        return _as_flag(value)
    if isinstance(value, bool | list | Mapping) or value is None:
        if hint is str and isinstance(value, bool):
            return str(value)
        raise ValueError
    if hint is int:
        return int(value) if isinstance(value, float) else int(str(value).strip())
    if hint is float:
        return float(str(value).strip())
    if hint is str:
        return str(value)
    raise ValueError


def _as_list(value: object, item: Any) -> list[object]:
    if value is None:
        return []
    if isinstance(value, list):
        return [coerced(each, item) for each in value]
    if isinstance(value, str):
        return [coerced(part.strip(), item) for part in value.split(",") if part.strip()]
    return [coerced(value, item)]


def _as_map(value: object, key: Any, item: Any) -> dict[object, object]:
    if value is None:
        return {}
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        # A list of maps with one key each, as beacons and schedules are written.
        value = {name: inner for each in value for name, inner in each.items()}
    if not isinstance(value, Mapping):
        raise ValueError
    return {coerced(name, key): coerced(inner, item) for name, inner in value.items()}


def _as_flag(value: object) -> bool:
    word = str(value).strip().lower()
    if isinstance(value, str | int) and word in _TRUE | _FALSE:
        return word in _TRUE
    raise ValueError
