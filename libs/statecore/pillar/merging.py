"""How two parts of a pillar become one: pillar_source_merging_strategy and pillar_merge_lists.

A pillar of many files is merged as often as there are files, so nothing is copied that is not changed: what comes out shares
its values with what went in, and nobody changes either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from statecore.pillar.errors import Errors


def _recurse(under: Mapping[Any, Any], over: Mapping[Any, Any], lists: bool) -> dict[Any, Any]:
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


def _overwrite(under: Mapping[Any, Any], over: Mapping[Any, Any], lists: bool) -> dict[Any, Any]:
    return {**under, **over}


def _list(under: Mapping[Any, Any], over: Mapping[Any, Any], lists: bool) -> dict[Any, Any]:
    return {key: [value, over[key]] if key in over else value for key, value in under.items()}


#: pillar_source_merging_strategy -> how two maps become one. The same as ``values.STRATEGIES``, which copies all it gets.
STRATEGIES: Mapping[str, Callable[[Mapping[Any, Any], Mapping[Any, Any], bool], dict[Any, Any]]] = {
    "smart": _recurse,
    "recurse": _recurse,
    "none": _recurse,
    "overwrite": _overwrite,
    # Salt joins only what its yamlex renderer marked; of plain data the later value counts.
    "aggregate": _overwrite,
    "list": _list,
}


class Merging:
    """The strategy of the options."""

    def __init__(self, opts: Mapping[str, Any], errors: Errors) -> None:
        strategy = str(opts.get("pillar_source_merging_strategy") or "smart")
        #: Whether environments are merged; else there is one only.
        self.merges = strategy != "none"
        # Without merging lists are replaced whatever the options say, as in Salt.
        self._lists = bool(opts.get("pillar_merge_lists", False)) and self.merges
        self._merge = STRATEGIES.get(strategy)
        self._unknown = f"Unknown merging strategy '{strategy}'; there are {', '.join(STRATEGIES)}"
        self._errors = errors

    def merged(self, under: dict[str, Any], over: dict[str, Any] | None) -> dict[str, Any]:
        """Both as one; neither is changed. A strategy that is none is an error, and leaves ``under``."""
        if not over:
            return under
        if self._merge is None:
            self._errors.add(f"pillar_source_merging_strategy: {self._unknown}")
            return under
        return self._merge(under, over, self._lists)
