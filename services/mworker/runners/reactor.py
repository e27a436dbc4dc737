"""Reactions as they stand in the running reactor: shown, added, taken away. Changes last until the reactor ends, as in Salt."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from saltwire import tags
from services.mworker.runners.runner import RunnerFault, RunnerTools

#: Seconds that the reactor has to answer; it may be rendering.
_PATIENCE = 15.0

#: Seconds that the bus has to confirm the subscription to the answer.
_BUS_PATIENCE = 5.0


def list_(tools: RunnerTools, saltenv: str = "base", test: Any = None) -> list[dict[str, Any]]:
    """The reactions that are configured: [{tag glob: files}].

    CLI Example:

        salt-run reactor.list
    """
    rows: list[dict[str, Any]] = _ask(tools, "list", {}, "list-results")["reactors"]
    return rows


def add(
    tools: RunnerTools, event: str, reactors: str | Sequence[str], saltenv: str = "base", test: Any = None
) -> dict[str, Any]:
    """Adds reactor SLS for a tag glob: {"status": whether it was added, "comment": ...}. A glob that has some is left alone.

    CLI Example:

        salt-run reactor.add 'site/*/down' reactors='/srv/reactor/down/*.sls'
    """
    files = [reactors] if isinstance(reactors, str) else list(reactors)
    result: dict[str, Any] = _ask(tools, "add", {"event": event, "reactors": files}, "add-complete")["result"]
    return result


def delete(tools: RunnerTools, event: str, saltenv: str = "base", test: Any = None) -> dict[str, Any]:
    """Takes the reactions of a tag glob away: {"status": whether there were any, "comment": ...}.

    CLI Example:

        salt-run reactor.delete 'site/*/down'
    """
    result: dict[str, Any] = _ask(tools, "delete", {"event": event}, "delete-complete")["result"]
    return result


def is_leader(tools: RunnerTools) -> bool:
    """Whether the reactor reacts to events."""
    return bool(_ask(tools, "is_leader", {}, "leader/value")["result"])


def set_leader(tools: RunnerTools, value: bool = True) -> bool:
    """Has the reactor react to events, or not; what it does now."""
    if not isinstance(value, bool):
        raise RunnerFault(f"value is True or False, not {value!r}")
    return bool(_ask(tools, "set_leader", {"id": tools.options.id, "value": value}, "leader/value")["result"])


def _ask(tools: RunnerTools, order: str, data: dict[str, Any], answer: str) -> dict[str, Any]:
    wanted = tags.REACTOR_ORDERS + answer
    tools.events.subscribe(wanted)
    if not tools.events.ready(_BUS_PATIENCE):
        raise RunnerFault("the reactor cannot be asked: the event publisher does not answer")
    tools.sender.fire(tags.REACTOR_ORDERS + order, data)
    deadline = time.monotonic() + _PATIENCE
    while (left := deadline - time.monotonic()) > 0:
        event = tools.events.next(left)
        if event is not None and event[0] == wanted:
            return event[1]
    raise RunnerFault(f"Reactor system is not running: no answer within {_PATIENCE:g} s; is the role reactor up?")
