"""``salt.utils.dictdiffer`` for users' modules: differences between two maps."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any


class DictDiffer:
    """The keys that differ between a current and a past version of a map: added, removed, changed, unchanged."""

    def __init__(self, current_dict: Mapping[object, object], past_dict: Mapping[object, object]) -> None:
        self.current_dict, self.past_dict = current_dict, past_dict

    def added(self) -> set[object]:
        """Set of the keys that only the current map has."""
        return {*self.current_dict} - {*self.past_dict}

    def removed(self) -> set[object]:
        """Set of the keys that only the past map has."""
        return {*self.past_dict} - {*self.current_dict}

    def changed(self) -> set[object]:
        """Set of the keys that both maps have with different values."""
        return {key for key in self._both() if self.past_dict[key] != self.current_dict[key]}

    def unchanged(self) -> set[object]:
        """Set of the keys that both maps have with equal values."""
        return self._both() - self.changed()

    def _both(self) -> set[object]:
        return {*self.current_dict} & {*self.past_dict}


def diff(current_dict: Mapping[object, object], past_dict: Mapping[object, object]) -> DictDiffer:
    """Return the DictDiffer of a current and a past map."""
    return DictDiffer(current_dict, past_dict)


def deep_diff(
    old: Mapping[object, object], new: Mapping[object, object], ignore: Iterable[object] | None = None
) -> dict[str, object]:
    """Return the differing parts of two nested maps as {"old": ..., "new": ...}; a side without differences is left
    out.

    Keys in ``ignore`` are not compared, at any level.
    """
    ignored = frozenset(ignore or ())
    left, right = copy.deepcopy(dict(old)), copy.deepcopy(dict(new))
    _drop_equal(left, right, ignored)
    return {side: found for side, found in (("old", left), ("new", right)) if found}


def _drop_equal(left: dict[object, object], right: dict[object, object], ignored: frozenset[object]) -> None:
    for key in {*left, *right}:
        if key in left and key in right and left[key] == right[key]:
            del left[key], right[key]
        elif key in ignored:
            left.pop(key, None)
            right.pop(key, None)
        else:
            before, after = left.get(key), right.get(key)
            if isinstance(before, dict) and isinstance(after, dict):
                _drop_equal(before, after, ignored)
                if not before and not after:
                    del left[key], right[key]


class RecursiveDictDiffer(DictDiffer):
    """The differences between two nested maps. Keys of inner maps are joined by dots."""

    NONE_VALUE = "<_null_>"

    def __init__(
        self,
        past_dict: Mapping[Any, Any],
        current_dict: Mapping[Any, Any],
        ignore_missing_keys: bool = True,
        list_dict_matchers: Sequence[str] = (),
    ) -> None:
        """Compare a past and a current map.

        ``ignore_missing_keys``: keys that only the past map has are no differences. ``list_dict_matchers``: names of keys
        by which maps in lists are compared with each other.
        """
        super().__init__(current_dict, past_dict)
        self.ignore_unset_values = True
        self._diffs = _differences(current_dict, past_dict, ignore_missing_keys, list_dict_matchers or ())

    @property
    def diffs(self) -> dict[Any, Any]:
        """Map of each differing key to {"new": value, "old": value}, or to such a map for inner maps."""
        return self._diffs

    @property
    def new_values(self) -> dict[Any, Any]:
        """Nested map of the differing keys to their new values."""
        return _side(self._diffs, "new")

    @property
    def old_values(self) -> dict[Any, Any]:
        """Nested map of the differing keys to their old values."""
        return _side(self._diffs, "old")

    @property
    def changes_str(self) -> str:
        """The differences as lines ``key from 'old' to 'new'``; inner keys are indented."""
        return "\n".join(_lines(self._diffs))

    def added(self, include_nested: bool = False, separator: str = ".") -> list[str]:  # type: ignore[override]
        """Sorted list of the keys that only the current map has; ``include_nested`` adds the keys of added maps."""
        return sorted(self._only("old", "new", include_nested, separator))

    def removed(self, include_nested: bool = False, separator: str = ".") -> list[str]:  # type: ignore[override]
        """Sorted list of the keys that only the past map has; ``include_nested`` adds the keys of removed maps."""
        return sorted(self._only("new", "old", include_nested, separator))

    def changed(self, separator: str = ".") -> list[str]:  # type: ignore[override]
        """Sorted list of the keys that both maps have with different values.

        If ``ignore_unset_values`` is False, added and removed keys are in it.
        """
        found = []
        for name, pair in _pairs(self._diffs, "", separator):
            if not self.ignore_unset_values or self.NONE_VALUE not in (_text(pair["old"]), _text(pair["new"])):
                found.append(name)
        return sorted(found)

    def unchanged(self, separator: str = ".") -> list[str]:  # type: ignore[override]
        """Sorted list of the keys of the current map that are no differences."""
        return sorted(_same(self.current_dict, self._diffs, "", separator))

    def _only(self, missing: str, there: str, include_nested: bool, separator: str) -> Iterator[str]:
        for name, pair in _pairs(self._diffs, "", separator):
            if _text(pair[missing]) == self.NONE_VALUE:
                yield name
                if include_nested and isinstance(pair[there], dict):
                    yield from _keys(pair[there], f"{name}{separator}", separator)
            elif isinstance(pair[there], dict) and not isinstance(pair[missing], dict):
                yield from _keys(pair[there], f"{name}{separator}", separator)


def recursive_diff(
    past_dict: Mapping[Any, Any],
    current_dict: Mapping[Any, Any],
    ignore_missing_keys: bool = True,
    list_dict_matchers: Sequence[str] | None = None,
) -> RecursiveDictDiffer:
    """Return the RecursiveDictDiffer of a past and a current nested map."""
    return RecursiveDictDiffer(past_dict, current_dict, ignore_missing_keys, list_dict_matchers or ())


def _text(value: object) -> object:
    return value if isinstance(value, str) else None


def _differences(
    current: Mapping[Any, Any], past: Mapping[Any, Any], ignore_missing: bool, matchers: Sequence[str]
) -> dict[Any, Any]:
    none = RecursiveDictDiffer.NONE_VALUE
    found: dict[Any, Any] = {}
    for key in current:
        if key not in past:
            found[key] = {"new": current[key], "old": none}
        elif current[key] != past[key]:
            if isinstance(current[key], dict) and isinstance(past[key], dict):
                if inner := _differences(current[key], past[key], ignore_missing, matchers):
                    found[key] = inner
            elif (matched := _matched(current[key], past[key], ignore_missing, matchers)) is not None:
                if matched:
                    found[key] = matched
            else:
                found[key] = {"new": current[key], "old": past[key]}
    if not ignore_missing:
        found |= {key: {"new": none, "old": past[key]} for key in past if key not in current}
    return found


def _matched(current: Any, past: Any, ignore_missing: bool, matchers: Sequence[str]) -> dict[Any, Any] | None:
    """Return the differences between two lists of maps: a map of identifying value to the differences of the two maps
    that have it.

    The identifying value is that of the first key in ``matchers`` that all the maps have. None if there is no such key,
    or if one value is not a list of maps.
    """
    lists = isinstance(current, list) and isinstance(past, list) and current and past
    if not lists or not all(isinstance(each, dict) for each in (*current, *past)):
        return None
    key = next((name for name in matchers if all(name in each for each in (*current, *past))), None)
    if key is None:
        return None
    before = {each[key]: each for each in past}
    pairs = ((each[key], each, before[each[key]]) for each in current if each[key] in before)
    compared = {name: _differences(new, old, ignore_missing, matchers) for name, new, old in pairs}
    return {name: inner for name, inner in compared.items() if inner}


def _is_pair(value: object) -> bool:
    return isinstance(value, dict) and set(value) == {"new", "old"}


def _pairs(diffs: Mapping[Any, Any], prefix: str, separator: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key, value in diffs.items():
        if _is_pair(value):
            yield f"{prefix}{key}", value
        else:
            yield from _pairs(value, f"{prefix}{key}{separator}", separator)


def _keys(data: Mapping[Any, Any], prefix: str, separator: str) -> Iterator[str]:
    for key, value in data.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{key}{separator}", separator)


def _same(current: Mapping[Any, Any], diffs: Mapping[Any, Any], prefix: str, separator: str) -> Iterator[str]:
    for key, value in current.items():
        if key not in diffs:
            yield f"{prefix}{key}"
        elif not _is_pair(diffs[key]) and isinstance(value, dict):
            yield from _same(value, diffs[key], f"{prefix}{key}{separator}", separator)


def _side(diffs: Mapping[Any, Any], side: str) -> dict[Any, Any]:
    return {key: value[side] if _is_pair(value) else _side(value, side) for key, value in diffs.items()}


def _lines(diffs: Mapping[Any, Any]) -> list[str]:
    lines: list[str] = []
    for key in sorted(diffs):
        value = diffs[key]
        if _is_pair(value):
            lines.append(f"{key} from {_shown(value['old'])} to {_shown(value['new'])}")
        elif inner := _lines(value):
            lines += [f"{key}:", *(f"  {line}" for line in inner)]
    return lines


def _shown(value: object) -> object:
    if _text(value) == RecursiveDictDiffer.NONE_VALUE:
        return "nothing"
    if isinstance(value, list):
        return f"'{', '.join(map(str, value))}'"
    return f"'{value}'" if isinstance(value, str) else value
