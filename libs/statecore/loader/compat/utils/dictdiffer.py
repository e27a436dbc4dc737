"""``salt.utils.dictdiffer``: what differs between two maps."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any


class DictDiffer:
    """Keys that came, went, changed or stayed."""

    def __init__(self, current_dict: Mapping[Any, Any], past_dict: Mapping[Any, Any]) -> None:
        self.current_dict, self.past_dict = current_dict, past_dict

    def added(self) -> set[Any]:
        """Keys that only the current map has."""
        return {*self.current_dict} - {*self.past_dict}

    def removed(self) -> set[Any]:
        """Keys that only the past map has."""
        return {*self.past_dict} - {*self.current_dict}

    def changed(self) -> set[Any]:
        """Keys of both whose values differ."""
        return {key for key in self._both() if self.past_dict[key] != self.current_dict[key]}

    def unchanged(self) -> set[Any]:
        """Keys of both whose values are equal."""
        return self._both() - self.changed()

    def _both(self) -> set[Any]:
        return {*self.current_dict} & {*self.past_dict}


def diff(current_dict: Mapping[Any, Any], past_dict: Mapping[Any, Any]) -> DictDiffer:
    """What differs between two maps."""
    return DictDiffer(current_dict, past_dict)


def deep_diff(old: Mapping[Any, Any], new: Mapping[Any, Any], ignore: Iterable[Any] | None = None) -> dict[str, Any]:
    """``{"old", "new"}`` with what differs, as deep as both are maps; {} where nothing does. Keys of ``ignore`` do not count."""
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
