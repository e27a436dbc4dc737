"""``salt.utils.dictdiffer``: differences between two maps."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any


class DictDiffer:
    """The keys that were added, removed, changed or left unchanged between two maps."""

    def __init__(self, current_dict: Mapping[Any, Any], past_dict: Mapping[Any, Any]) -> None:
        self.current_dict, self.past_dict = current_dict, past_dict

    def added(self) -> set[Any]:
        """Keys that are only in the current map."""
        return {*self.current_dict} - {*self.past_dict}

    def removed(self) -> set[Any]:
        """Keys that are only in the past map."""
        return {*self.past_dict} - {*self.current_dict}

    def changed(self) -> set[Any]:
        """Keys of both maps whose values differ."""
        return {key for key in self._both() if self.past_dict[key] != self.current_dict[key]}

    def unchanged(self) -> set[Any]:
        """Keys of both maps whose values are equal."""
        return self._both() - self.changed()

    def _both(self) -> set[Any]:
        return {*self.current_dict} & {*self.past_dict}


def diff(current_dict: Mapping[Any, Any], past_dict: Mapping[Any, Any]) -> DictDiffer:
    """Return the DictDiffer of two maps."""
    return DictDiffer(current_dict, past_dict)


def deep_diff(old: Mapping[Any, Any], new: Mapping[Any, Any], ignore: Iterable[Any] | None = None) -> dict[str, Any]:
    """Return the differences of two nested maps as ``{"old": ..., "new": ...}``, without keys in ``ignore``."""
    ignored = frozenset(ignore or ())
    left, right = copy.deepcopy(dict(old)), copy.deepcopy(dict(new))
    _drop_equal(left, right, ignored)
    return {side: found for side, found in (("old", left), ("new", right)) if found}


def _drop_equal(left: dict[Any, Any], right: dict[Any, Any], ignored: frozenset[Any]) -> None:
    for key in {*left, *right}:
        if key in left and key in right and left[key] == right[key]:
            del left[key], right[key]
        elif key in ignored:
            left.pop(key, None)
            right.pop(key, None)
        elif isinstance(left.get(key), dict) and isinstance(right.get(key), dict):
            _drop_equal(left[key], right[key], ignored)
            if not left[key] and not right[key]:
                del left[key], right[key]
