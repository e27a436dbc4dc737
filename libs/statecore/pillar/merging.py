"""Merge two parts of a pillar by the options ``pillar_source_merging_strategy`` and ``pillar_merge_lists``.

A pillar of many files is merged as often as there are files. So only changed maps and lists are copied: the result
shares the other values with its inputs, and no caller may change either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from statecore.model.aggregation import aggregate
from statecore.model.values import is_yamlex
from statecore.pillar.errors import Errors


def _recurse(under: Mapping[str, object], over: Mapping[str, object], lists: bool) -> dict[str, object]:
    found = dict(under)
    for key, value in over.items():
        old = found.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            found[key] = _recurse(old, value, lists)
        elif lists and isinstance(old, list) and isinstance(value, list):
            found[key] = [*old, *(item for item in value if item not in old)]
        else:
            found[key] = value
    return found


def _overwrite(under: Mapping[str, object], over: Mapping[str, object], lists: bool) -> dict[str, object]:
    return {**under, **over}


def _list(under: Mapping[str, object], over: Mapping[str, object], lists: bool) -> dict[str, object]:
    return {key: [value, over[key]] if key in over else value for key, value in under.items()}


#: Value of ``pillar_source_merging_strategy`` -> function that merges two maps. Like ``values.STRATEGIES``, but these
#: functions do not copy unchanged values.
STRATEGIES: Mapping[str, Callable[[Mapping[str, object], Mapping[str, object], bool], dict[str, object]]] = {
    "smart": _recurse,
    "recurse": _recurse,
    "none": _recurse,
    "overwrite": _overwrite,
    # Only values that the renderer yamlex marked are joined. For plain data the later value is used.
    "aggregate": lambda under, over, lists: dict(aggregate(dict(under), dict(over), 1)),
    "list": _list,
}


class Merging:
    """Merges parts of a pillar by the strategy that the option ``pillar_source_merging_strategy`` names."""

    def __init__(self, opts: Mapping[str, object], errors: Errors) -> None:
        strategy = str(opts.get("pillar_source_merging_strategy") or "smart")
        if strategy == "smart" and is_yamlex(str(opts.get("renderer") or "")):
            strategy = "aggregate"
        #: True if several pillarenvs are merged. With the strategy "none" there is only one.
        self.merges = strategy != "none"
        # As in Salt, the strategy "none" replaces lists even if pillar_merge_lists is set.
        self._lists = bool(opts.get("pillar_merge_lists", False)) and self.merges
        self._merge = STRATEGIES.get(strategy)
        self._unknown = f"Unknown merging strategy '{strategy}'; there are {', '.join(STRATEGIES)}"
        self._errors = errors

    def merged(self, under: dict[str, object], over: dict[str, object] | None) -> dict[str, object]:
        """Return the two parts of a pillar merged, ``over`` over ``under``. Neither map is changed.

        For an unknown strategy, add an error and return ``under``.
        """
        if not over:
            return under
        if self._merge is None:
            self._errors.add(f"pillar_source_merging_strategy: {self._unknown}")
            return under
        return self._merge(under, over, self._lists)
