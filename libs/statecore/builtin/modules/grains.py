"""Functions that read grains, and set those of the static grains file: Salt's ``grains`` execution module.

A grain that is set during a state run is seen by all later calls of this run. The next job sees it in its grains.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.values import DELIMITER, traverse
from statecore.model.values import filter_by as _filter_by
from statecore.system import static_grains

ALIASES = {"set": "set_", "get": "get", "fetch": "get"}
OUTPUTTERS = {"items": "nested", "item": "nested", "setval": "nested"}

#: Key of ctx.scratch: grains set in this run; _ABSENT for deleted grains.
_SET = "grains.set"

_ABSENT = object()

_SANITIZERS: Mapping[str, Callable[[str], str]] = {
    "serialnumber": lambda value: value[: len(value) * 3 // 4] + "X" * (len(value) - len(value) * 3 // 4),
    "domain": lambda _: "DOMAINNAME",
    "fqdn": lambda _: "MINION.DOMAINNAME",
    "id": lambda _: "MINION.DOMAINNAME",
    "host": lambda _: "MINION",
    "localhost": lambda _: "MINION",
    "nodename": lambda _: "MINION",
}


def _current(ctx: Context) -> dict[str, object]:
    """Return the grains with the changes that this state run has made to them."""
    grains = dict(ctx.grains)
    for key, value in ctx.scratch.get(_SET, {}).items():
        if value is _ABSENT:
            grains.pop(key, None)
        else:
            grains[key] = value
    return grains


def get(ctx: Context, key: str, default: object = "", delimiter: str = DELIMITER, ordered: bool = True) -> object:
    """Return the grain at a path (``pkg:apache``), or ``default`` if it does not exist.

    CLI Example:

        salt '*' grains.get os
    """
    return traverse(_current(ctx), key, default, delimiter)


def has_value(ctx: Context, key: str) -> bool:
    """Return whether a grain exists at a path such as ``pkg:apache``."""
    return traverse(_current(ctx), key, _ABSENT) is not _ABSENT


def items(ctx: Context, sanitize: bool = False) -> dict[str, object]:
    """Return a map of all grains. With ``sanitize``, names of the host and serial numbers are replaced.

    CLI Example:

        salt '*' grains.items
    """
    return _sanitized(_current(ctx)) if sanitize else _current(ctx)


def item(
    ctx: Context, *args: str, default: object = "", delimiter: str = DELIMITER, sanitize: bool = False, **kwargs: object
) -> dict[str, object]:
    """Return a map of path to grain for the given paths. A grain that does not exist has the value ``default``.

    CLI Example:

        salt '*' grains.item os osrelease
    """
    grains = _current(ctx)
    found = {key: traverse(grains, key, default, delimiter) for key in args}
    return _sanitized(found) if sanitize else found


def _sanitized(grains: dict[str, object]) -> dict[str, object]:
    return {key: _SANITIZERS[key](str(value)) if key in _SANITIZERS else value for key, value in grains.items()}


def ls(ctx: Context) -> list[str]:
    """Return the names of all grains, sorted."""
    return sorted(_current(ctx))


def equals(ctx: Context, key: str, value: object) -> bool:
    """Return whether the text of a grain equals ``value``."""
    return str(value) == str(get(ctx, key))


def filter_by(
    ctx: Context,
    lookup_dict: Mapping[object, object],
    grain: str = "os_family",
    merge: Mapping[str, object] | None = None,
    default: str = "default",
    base: str | None = None,
) -> object:
    """Return the entry of the table ``lookup_dict`` whose key matches a grain of this minion. Return None if no key
    matches and the table has no entry ``default``.

    lookup_dict
        map whose keys are globs for the grain's value
    grain
        name of the grain to compare
    merge
        map to merge over the entry
    default
        key of the entry for minions that no other key matches
    base
        key of an entry that the found entry is merged over
    """
    return _filter_by(lookup_dict, grain, _current(ctx), merge, default, base)


def setvals(
    ctx: Context, grains: Mapping[str, object], destructive: bool = False, refresh_pillar: bool = True
) -> dict[str, object]:
    """Write grains to the static grains file. Return a map of the grains that were set.

    destructive
        True: a value of None removes the grain
    refresh_pillar
        True: refresh the minion's pillar afterwards

    Raise CommandError if the file cannot be read or written, or if no path for it is configured.
    """
    if not isinstance(grains, Mapping):
        raise InvocationError("setvals grains must be a dictionary.")
    file = static_grains.path(ctx.opts)
    if file is None:
        raise CommandError("No path for the static grains file is configured: set 'conf_file' or 'grains_file'")
    kept = static_grains.read(file)
    seen = ctx.scratch.setdefault(_SET, {})
    for key, value in grains.items():
        if value is None and destructive:
            kept.pop(key, None)
            seen[key] = _ABSENT
        else:
            kept[key] = seen[key] = value
    static_grains.write(file, kept)
    ctx.minion.refresh_grains()
    if refresh_pillar:
        ctx.minion.refresh_pillar()
    return dict(grains)


def setval(
    ctx: Context, key: str, val: object, destructive: bool = False, refresh_pillar: bool = True
) -> dict[str, object]:
    """Set one top-level grain in the static grains file. Return {name: value} of the grain that was set. The errors are
    those of ``grains.setvals``.

    CLI Example:

        salt '*' grains.setval roles "[web, db]"
    """
    return setvals(ctx, {key: val}, destructive, refresh_pillar)


def append(ctx: Context, key: str, val: object, convert: bool = False, delimiter: str = DELIMITER) -> object:
    """Append a value, or all values of a list, to a grain that is a list. The grain is created if it does not exist.

    convert
        True: turn a grain that is not a list into a list first

    Return a map of the grain that was set, or a sentence with the reason if nothing was appended.
    """
    values = copy.deepcopy(get(ctx, key, [], delimiter))
    if convert and not isinstance(values, list):
        values = [] if values is None else [values]
    if not isinstance(values, list):
        return f"The key {key} is not a valid list"
    if val in values:
        return f"The val {val} was already in the list {key}"
    values.extend(val if isinstance(val, list) else [val])
    return _set_nested(ctx, key, values, delimiter)


def remove(ctx: Context, key: str, val: object, delimiter: str = DELIMITER) -> object:
    """Remove a value from a grain that is a list. Return a map of the grain that was set, or a sentence with the reason
    if nothing was removed.
    """
    values = copy.deepcopy(get(ctx, key, [], delimiter))
    if not isinstance(values, list):
        return f"The key {key} is not a valid list"
    if val not in values:
        return f"The val {val} was not in the list {key}"
    values.remove(val)
    return _set_nested(ctx, key, values, delimiter)


def _set_nested(ctx: Context, key: str, value: object, delimiter: str) -> dict[str, object]:
    """Set the value at a path in a grain, and write the whole top-level grain. Return a map of the grain that was
    set.
    """
    while delimiter in key:
        key, last = key.rsplit(delimiter, 1)
        around = copy.deepcopy(get(ctx, key, {}, delimiter))
        value = {**around, last: value} if isinstance(around, dict) else {last: value}
    return setval(ctx, key, value)


def set_(
    ctx: Context, key: str, val: object = "", force: bool = False, destructive: bool = False, delimiter: str = DELIMITER
) -> dict[str, object]:
    """Set the grain at a path such as ``pkg:apache``. Return a map with ``comment``, ``changes`` and ``result``.

    force
        True: allow a list or map to be overwritten, or another value to be replaced by a list or map
    destructive
        True: a value of None removes the grain
    """
    existing = get(ctx, key, _ABSENT, delimiter)
    if existing is not _ABSENT and existing == val and not (val is None and destructive):
        return {"comment": "Grain is already set", "changes": {}, "result": True}
    if not force and existing is not _ABSENT and existing is not None:
        if isinstance(existing, dict | list):
            return _refused(f"The key '{key}' exists but is a dict or a list. Use 'force=True' to overwrite.")
        if isinstance(val, dict | list):
            return _refused(
                f"The key '{key}' exists and the given value is a dict or a list. Use 'force=True' to overwrite."
            )
    value: object = val
    while delimiter in key:
        key, last = key.rsplit(delimiter, 1)
        around = copy.deepcopy(get(ctx, key, {}, delimiter))
        changed = _with_key(around, last, value, force=force, drop=value is None and destructive)
        if changed is _ABSENT:
            return _refused(
                f"The key '{key}' value is '{around}', which is different from the provided key '{last}'."
                " Use 'force=True' to overwrite."
            )
        value = changed
    return {"comment": "", "changes": setval(ctx, key, value, destructive), "result": True}


def _with_key(around: object, key: str, value: object, *, force: bool, drop: bool) -> object:
    """Return the value ``around`` of a grain with its ``key`` set to ``value``, or with ``drop`` without the key.
    Return _ABSENT (a marker) if ``around`` is neither a map, a list nor the key itself, unless ``force`` is set.
    """
    if isinstance(around, dict):
        if drop:
            return {each: kept for each, kept in around.items() if each != key}
        return {**around, key: value}
    if isinstance(around, list):
        matched = [item == key or (isinstance(item, dict) and key in item) for item in around]
        replaced = [
            ({**item, key: value} if isinstance(item, dict) else {key: value}) if hit else item
            for item, hit in zip(around, matched, strict=True)
        ]
        return replaced if any(matched) else [*around, {key: value}]
    return {key: value} if around == key or force else _ABSENT


def _refused(comment: str) -> dict[str, object]:
    return {"comment": comment, "changes": {}, "result": False}


def delval(ctx: Context, key: str, destructive: bool = False, force: bool = False) -> dict[str, object]:
    """Set a grain to None, or with ``destructive`` remove it. Return a map with ``comment``, ``changes`` and
    ``result``.
    """
    return set_(ctx, key, None, destructive=destructive, force=force)


def delkey(ctx: Context, key: str, force: bool = False) -> dict[str, object]:
    """Remove a grain. Return a map with ``comment``, ``changes`` and ``result``."""
    return delval(ctx, key, destructive=True, force=force)
