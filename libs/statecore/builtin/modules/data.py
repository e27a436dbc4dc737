"""A small key-value store in one file of the minion's cachedir: Salt's ``data`` execution module."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

from statecore.host.content import data_files
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError


def load(ctx: Context) -> dict[object, object]:
    """Return the minion's whole ``data`` store as a map of key to value. Raise CommandError if its file is damaged.

    CLI Example:

        salt '*' data.load
    """
    found = data_files.load(_store_path(ctx))
    if found is not None and not isinstance(found, dict):
        raise CommandError(f"{_store_path(ctx)} does not contain a map; delete the file to start with an empty store")
    return found or {}


def dump(ctx: Context, new_data: object) -> bool:
    """Replace the minion's whole ``data`` store by a map, or by text that is a Python map. Return True; False for any
    other value.

    CLI Example:

        salt '*' data.dump '{"eggs": "spam"}'
    """
    if isinstance(new_data, str):
        try:
            new_data = ast.literal_eval(new_data)
        except (ValueError, SyntaxError):
            return False
    if not isinstance(new_data, Mapping):
        return False
    data_files.store(_store_path(ctx), dict(new_data))
    return True


def clear(ctx: Context) -> bool:
    """Delete the minion's whole ``data`` store, even if its file is damaged. Return True."""
    data_files.remove(_store_path(ctx))
    return True


def update(ctx: Context, key: object, value: object) -> bool:
    """Store a value under a key of the minion's ``data`` store. Return True.

    CLI Example:

        salt '*' data.update mykey myvalue
    """
    return dump(ctx, {**load(ctx), key: value})


def cas(ctx: Context, key: object, value: object, old_value: object) -> bool:
    """Replace a value in the minion's ``data`` store if its present value equals ``old_value`` (compare and swap).
    Return whether it was replaced.

    CLI Example:

        salt '*' data.cas mykey new old
    """
    now = load(ctx)
    return key in now and now[key] == old_value and dump(ctx, {**now, key: value})


def pop(ctx: Context, key: object, default: object = None) -> object:
    """Remove a key from the minion's ``data`` store. Return its value, or ``default`` if the key is missing."""
    now = load(ctx)
    value = now.pop(key, default)
    dump(ctx, now)
    return value


def get(ctx: Context, key: str | Sequence[object], default: object = None) -> object:
    """Return the value of a key in the minion's ``data`` store, or a list of values for a list of keys.

    In the list, missing keys are left out; with ``default`` they have this value.

    CLI Example:

        salt '*' data.get '["key1", "key2"]'
    """
    now = load(ctx)
    if isinstance(key, str):
        return now.get(key, default)
    if not isinstance(key, list | tuple):
        raise InvocationError(f"key must be a name or a list of names, not {key!r}")
    return [now.get(each, default) for each in key if each in now or default is not None]


def keys(ctx: Context) -> list[object]:
    """Return the list of all keys in the minion's ``data`` store."""
    return list(load(ctx))


def values(ctx: Context) -> list[object]:
    """Return the list of all values in the minion's ``data`` store."""
    return list(load(ctx).values())


def items(ctx: Context) -> dict[object, object]:
    """Return the minion's whole ``data`` store as a map of key to value, as ``data.load`` does."""
    return load(ctx)


def has_key(ctx: Context, key: object) -> bool:
    """Return whether the minion's ``data`` store has a key."""
    return key in load(ctx)


def _store_path(ctx: Context) -> Path:
    return Path(str(ctx.opts["cachedir"])) / "datastore"
