"""How two parts of a pillar become one: pillar_source_merging_strategy and pillar_merge_lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore import values
from statecore.errors import InvocationError
from statecore.pillar.errors import Errors


class Merging:
    """The strategy of the options."""

    def __init__(self, opts: Mapping[str, Any], errors: Errors) -> None:
        strategy = str(opts.get("pillar_source_merging_strategy") or "smart")
        self._strategy = strategy
        #: Whether environments are merged; else there is one only.
        self.merges = strategy != "none"
        # Without merging lists are replaced whatever the options say, as in Salt.
        self._lists = bool(opts.get("pillar_merge_lists", False)) and self.merges
        self._errors = errors

    def merged(self, under: dict[str, Any], over: dict[str, Any] | None) -> dict[str, Any]:
        """Both as one; neither is changed. A strategy that is none is an error, and leaves ``under``."""
        if not over:
            return under
        try:
            data: dict[str, Any] = values.merge(under, over, self._strategy, lists=self._lists)
        except InvocationError as error:
            self._errors.add(f"pillar_source_merging_strategy: {error}")
            return under
        return data
