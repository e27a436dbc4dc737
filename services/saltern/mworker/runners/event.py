"""Runner ``event``: fires an event on the master's event bus."""

from __future__ import annotations

from collections.abc import Mapping

from saltern.mworker.runners.runner import RunnerFault, RunnerTools


def send(tools: RunnerTools, tag: str, data: Mapping[str, object] | None = None) -> bool:
    """Fire an event with exactly this tag and this data; return whether the event bus accepted it."""
    if data is not None and not isinstance(data, Mapping):
        raise RunnerFault(f"the data of an event is a map, not {type(data).__name__}")
    return tools.sender.fire(str(tag), dict(data or {}))
