"""``salt.utils.dictdiffer`` for users' modules: differences between two maps."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping


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
