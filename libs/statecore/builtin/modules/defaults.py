"""Default values from a formula's ``defaults.yaml`` or ``defaults.json``: Salt's ``defaults`` execution module."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.model.values import DELIMITER, traverse
from statecore.model.values import update as _update


def get(ctx: Context, key: str, default: object = "") -> object:
    """Return the value at a path in a formula's ``defaults.yaml``. The first part of the path is the formula.

    ``core:users:root`` is ``users:root`` in ``salt://core/defaults.yaml`` (or .json). The formula alone returns the
    whole file, None if there is no such file. Raise SlsError for a file that cannot be parsed.

    CLI Example:

        salt '*' defaults.get core:users:root
    """
    formula, _, path = key.partition(DELIMITER)
    defaults = _load(ctx, formula)
    return traverse(defaults, path, default) if path else defaults


def _load(ctx: Context, formula: str) -> object:
    for kind in ("yaml", "json"):
        address = f"{formula}/defaults.{kind}"
        found = ctx.files.fetch(address, ctx.saltenv)
        if found is not None:
            text = found.read_text("utf-8", "replace")
            return ctx.templates.data(text, kind, {}, saltenv=ctx.saltenv, source=f"salt://{address}")
    return None


def merge(
    ctx: Context, dest: object, src: object, merge_lists: bool = False, in_place: bool = True, convert_none: bool = True
) -> object:
    """Merge the map ``src`` into the map ``dest`` and return the result. Raise InvocationError if one of them is not a
    map.

    merge_lists
        True: append lists instead of replacing them
    in_place
        False: merge into a copy of ``dest``
    convert_none
        True: treat None as an empty map

    CLI Example:

        salt '*' defaults.merge '{a: b}' '{d: e}'
    """
    if src is None and convert_none:
        src = {}
    if dest is None and convert_none:
        if in_place:
            raise InvocationError("Can't perform in-place merge into NoneType")
        dest = {}
    if not isinstance(dest, Mapping) or not isinstance(src, Mapping):
        raise InvocationError("Cannot update using non-dict types")
    return _update(dest if in_place else copy.deepcopy(dest), src, lists=merge_lists)  # type: ignore[arg-type]


def deepcopy(ctx: Context, source: object) -> object:
    """Return a copy of a value in which nested maps and lists are copied too.

    CLI Example:

        salt '*' defaults.deepcopy '{a: [b]}'
    """
    return copy.deepcopy(source)


def update(
    ctx: Context,
    dest: dict[str, object] | None,
    defaults: object,
    merge_lists: bool = True,
    in_place: bool = True,
    convert_none: bool = True,
) -> object:
    """Fill each map in ``dest`` (a map of name to map) with the missing keys of ``defaults``. Return the result. Raise
    InvocationError if a value is not a map.

    CLI Example:

        salt '*' defaults.update '{host01: {index: foo}}' '{enabled: True}'
    """
    if dest is None:
        if in_place or not convert_none:
            raise InvocationError("Can't perform in-place update into NoneType")
        dest = {}
    nodes = dest if in_place else copy.deepcopy(dest)
    under = {} if defaults is None and convert_none else defaults
    for name, own in nodes.items():
        nodes[name] = merge(ctx, copy.deepcopy(under), own, merge_lists, convert_none=convert_none)
    return nodes
