"""Access to nested values by a path ``a:b:c``, and merging of nested values, both with Salt's rules. Functions
without I/O.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import SupportsFloat, SupportsInt

from statecore.model import yaml
from statecore.model.aggregation import aggregate
from statecore.model.errors import InvocationError

#: Default separator of the keys in a path.
DELIMITER = ":"

_MISSING = object()


def to_int(value: object) -> int:
    """Return the whole number that ``int`` makes of a value from YAML: of a number, a boolean or a text.

    Raises TypeError for any other value, ValueError for a text that is not a number.
    """
    if not isinstance(value, SupportsInt | str):
        raise TypeError(f"{value!r} is not a number")
    return int(value)


def to_float(value: object) -> float:
    """Return the number that ``float`` makes of a value from YAML: of a number, a boolean or a text.

    Raises TypeError for any other value, ValueError for a text that is not a number.
    """
    if not isinstance(value, SupportsFloat | str):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def traverse(data: object, path: str | int, default: object = None, delimiter: str = DELIMITER) -> object:
    """Return the value at ``path`` (``a:b:c``) in nested maps and lists; ``default`` when there is none.

    In a list, a number is an index, or a key of the first dict in the list that has it. Other keys are searched in the
    dicts of the list. A key that is not found as text is searched as YAML reads it (``8080`` is a number).
    """
    value = data
    for key in str(path).split(delimiter) if isinstance(path, str) else [path]:
        value = _in_list(value, key) if isinstance(value, list) else _in_mapping(value, key)
        if value is _MISSING:
            return default
    return value


def _in_mapping(value: object, key: object) -> object:
    # isinstance(value, Mapping) is slower than the lookup itself.
    if type(value) is not dict and not isinstance(value, Mapping):
        return _MISSING
    if key in value:
        return value[key]
    if not isinstance(key, str):
        return _MISSING
    try:
        return value.get(_as_yaml(key), _MISSING)
    except TypeError:
        return _MISSING


@lru_cache(maxsize=1000)
def _as_yaml(key: str) -> object:
    """Return a key of a path as YAML reads it ("8080" becomes a number). Cached, because targets repeat the same keys."""
    try:
        return yaml.load(key)
    except yaml.YamlFault:
        return _MISSING


def _in_list(value: list[object], key: str | int) -> object:
    try:
        wanted: str | int = int(key)
    except ValueError:
        wanted = key
    for item in value:
        if isinstance(item, Mapping) and wanted in item:
            return item[wanted]
    if isinstance(wanted, int):
        try:
            return value[wanted]
        except IndexError:
            return _MISSING
    return _MISSING


def update(
    base: MutableMapping[str, object], new: Mapping[str, object], *, lists: bool = False
) -> MutableMapping[str, object]:
    """Merge the dict ``new`` into the dict ``base`` and return ``base``. Nested dicts are merged recursively; lists
    are extended if ``lists``, else replaced.
    """
    for key, value in new.items():
        old = base.get(key)
        if isinstance(old, MutableMapping) and isinstance(value, Mapping):
            update(old, value, lists=lists)
        elif lists and isinstance(old, list) and isinstance(value, list):
            base[key] = [*old, *(item for item in value if item not in old)]
        else:
            base[key] = copy.deepcopy(value)
    return base


def _recurse(first: Mapping[str, object], second: Mapping[str, object], lists: bool) -> dict[str, object]:
    merged = copy.deepcopy(dict(first))
    update(merged, second, lists=lists)
    return merged


def _overwrite(first: Mapping[str, object], second: Mapping[str, object], lists: bool) -> dict[str, object]:
    return {**copy.deepcopy(dict(first)), **copy.deepcopy(dict(second))}


def _list(first: Mapping[str, object], second: Mapping[str, object], lists: bool) -> dict[str, object]:
    return {key: [value, second[key]] if key in second else value for key, value in first.items()}


_Merge = Callable[[Mapping[str, object], Mapping[str, object], bool], dict[str, object]]

#: Strategy (option pillar_source_merging_strategy, slsutil.merge) -> function that merges two dicts into a new one.
STRATEGIES: Mapping[str, _Merge] = {
    "smart": _recurse,
    "recurse": _recurse,
    "none": _recurse,
    "overwrite": _overwrite,
    # Only values that the renderer yamlex marked are joined. For plain data the later value wins.
    "aggregate": lambda first, second, lists: copy.deepcopy(aggregate(dict(first), dict(second), 1)),
    "list": _list,
}


def is_yamlex(pipe: str) -> bool:
    """Return whether a render pipe such as ``jinja|yamlex`` ends with the renderer ``yamlex``. The merge strategy
    "smart" then aggregates the data.
    """
    return pipe.split("|")[-1].strip() == "yamlex" or pipe.startswith("yamlex_")


def merge(first: object, second: object, strategy: str = "smart", *, lists: bool = False) -> dict[str, object]:
    """Return a map merged from two maps by a strategy: smart, aggregate, list, none, overwrite or recurse. Raise
    InvocationError for an unknown strategy, or if one value is not a map.
    """
    if strategy not in STRATEGIES:
        raise InvocationError(f"Unknown merging strategy '{strategy}'; there are {', '.join(STRATEGIES)}")
    if not isinstance(first, Mapping) or not isinstance(second, Mapping):
        raise InvocationError(f"only maps can be merged, not {first!r} and {second!r}")
    return STRATEGIES[strategy](first, second, lists)


def filter_by(
    table: Mapping[object, object],
    path: str,
    data: Mapping[str, object],
    override: Mapping[str, object] | None = None,
    default: str = "default",
    base: str | None = None,
) -> object:
    """Return the entry of ``table`` whose key, a glob, matches a minion's value (``grains.filter_by``).

    The value is at ``path`` ("os_family") in ``data`` (the grains). Without a match, the entry ``default`` is returned.
    The entry is merged over the table's entry ``base``, and ``override`` is merged over the result. Raises
    InvocationError for entries that are not maps.
    """
    found: object = _MISSING
    value = traverse(data, path, [])
    for each in value if isinstance(value, list) else [value]:
        found = next((entry for key, entry in table.items() if fnmatchcase(str(each), str(key))), _MISSING)
        if found is not _MISSING:
            break
    chosen: object = copy.deepcopy(table.get(default) if found is _MISSING or found is None else found)
    if base and base in table:
        under = copy.deepcopy(table[base])
        if chosen is None:
            chosen = under
        elif isinstance(under, MutableMapping):
            if not isinstance(chosen, Mapping):
                raise InvocationError("filter_by default and look-up values must both be dictionaries.")
            chosen = update(under, dict(chosen))
    if override:
        if not isinstance(override, Mapping):
            raise InvocationError("filter_by merge argument must be a dictionary.")
        if chosen is None:
            return copy.deepcopy(dict(override))
        if not isinstance(chosen, MutableMapping):
            raise InvocationError("filter_by merge argument needs a dictionary to be merged into.")
        chosen = update(chosen, override)
    return chosen


#: Text in place of a secret value (Salt 3008).
MASK = "**********"


def redacted(value: object) -> object:
    """Return a copy of the value with every scalar replaced by ``**********``. None, zero, False and empty values stay."""
    if isinstance(value, Mapping):
        return {key: redacted(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    return MASK if value else value
