"""State functions that were switched off (``state.disable test.nop``; the grain ``state_runs_disabled`` names them)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from statecore.model.types import Low, Running, tag


def patterns(grains: Mapping[str, Any]) -> list[str]:
    """Globs of "module.function", and whatever else is switched off."""
    listed = grains.get("state_runs_disabled")
    return [str(each) for each in listed] if isinstance(listed, list | tuple) else []


def split(chunks: Sequence[Low], switched_off: Sequence[str]) -> tuple[list[Low], Running]:
    """The chunks that may run, each once, and the entries of the others: failed, in Salt's words, without run numbers."""
    kept: dict[str, Low] = {}
    left_out: Running = {}
    for low in chunks:
        function = f"{low['state']}.{low['fun']}"
        pattern = next((each for each in switched_off if fnmatchcase(function, each)), None)
        if pattern is None:
            kept.setdefault(tag(low), low)
        else:
            left_out[tag(low)] = _entry(low, function, pattern)
    return list(kept.values()), left_out


def _entry(low: Low, function: str, pattern: str) -> dict[str, Any]:
    return {
        "name": low["name"],
        "changes": {},
        "result": False,
        "comment": f'The state function "{function}" is currently disabled by "{pattern}", '
        f"to re-enable, run state.enable {pattern}.",
        "__sls__": low.get("__sls__"),
        "__id__": low["__id__"],
        "__state_ran__": False,
    }
