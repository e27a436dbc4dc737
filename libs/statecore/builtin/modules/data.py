"""Values that a minion keeps for itself (Salt's ``data`` module): names and what they mean, in one file of its cachedir."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from statecore.host.content import kept_files
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError


def load(ctx: Context) -> dict[str, Any]:
    """All that is kept. Raises CommandError for a file that is damaged.

    CLI Example:

        salt '*' data.load
    """
    found = kept_files.load(_place(ctx))
    if found is not None and not isinstance(found, dict):
        raise CommandError(f"{_place(ctx)} holds no map; it may be deleted")
    return found or {}


def dump(ctx: Context, new_data: Any) -> bool:
    """Keeps a map, or text that is one, in place of all that was kept; False for what is neither.

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
    kept_files.store(_place(ctx), dict(new_data))
    return True


def clear(ctx: Context) -> bool:
    """Forgets all that was kept."""
    kept_files.remove(_place(ctx))
    return True


def update(ctx: Context, key: Any, value: Any) -> bool:
    """Keeps a value under a name.

    CLI Example:

        salt '*' data.update mykey myvalue
    """
    return dump(ctx, {**load(ctx), key: value})


def cas(ctx: Context, key: Any, value: Any, old_value: Any) -> bool:
    """Keeps a value under a name that has the old value, and says whether it had.

    CLI Example:

        salt '*' data.cas mykey new old
    """
    now = load(ctx)
    return key in now and now[key] == old_value and dump(ctx, {**now, key: value})


def pop(ctx: Context, key: Any, default: Any = None) -> Any:
    """The value of a name, which is then forgotten."""
    now = load(ctx)
    value = now.pop(key, default)
    dump(ctx, now)
    return value


def get(ctx: Context, key: str | Sequence[Any], default: Any = None) -> Any:
    """The value of a name; of a list of names, a list: of those that there are, or with ``default`` in place of the others.

    CLI Example:

        salt '*' data.get '["key1", "key2"]'
    """
    now = load(ctx)
    if isinstance(key, str):
        return now.get(key, default)
    if not isinstance(key, list | tuple):
        raise InvocationError(f"key must be a name or a list of names, not {key!r}")
    return [now.get(each, default) for each in key if each in now or default is not None]


def keys(ctx: Context) -> list[Any]:
    """The names."""
    return list(load(ctx))


def values(ctx: Context) -> list[Any]:
    """The values."""
    return list(load(ctx).values())


def items(ctx: Context) -> dict[str, Any]:
    """Names and values: as load."""
    return load(ctx)


def has_key(ctx: Context, key: Any) -> bool:
    """Whether something is kept under a name."""
    return key in load(ctx)


def _place(ctx: Context) -> Path:
    return Path(str(ctx.opts["cachedir"])) / "datastore"
