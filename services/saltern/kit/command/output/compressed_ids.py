"""``state_compress_ids``: joins the states of one ID that have the same function module, SLS and result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from saltern.kit.command.output.state_lines import StateReturn

#: Prefix of the name of a state that represents several joined states.
MARK = "state_compressed_"

#: Key in a joined state's changes; its value maps the name of each joined state to that state's changes.
CHANGES = "compressed changes"


def compressed(hosts: Mapping[str, Any]) -> dict[str, object]:
    """Return the map of host to running dictionary with the states of one ID joined.

    A joined state has the first start time, the sum of the durations, and its changes by state name. Raises KeyError, TypeError,
    AttributeError or IndexError if the value of a host is no running dictionary.
    """
    return {host: _joined(running) for host, running in hosts.items()}


def count_of(tag: str) -> int:
    """Return the number of states that were joined into the state with this tag (1 for a state that was not joined)."""
    parts = tag.split("_|-")
    if len(parts) != 4 or not parts[2].startswith(MARK) or not parts[1].endswith(")"):
        return 1
    count = parts[1].rpartition("(")[2][:-1]
    return int(count) if count.isdecimal() else 1


def _joined(running: Mapping[str, StateReturn]) -> dict[str, StateReturn]:
    counts = Counter(_alike(tag, state) for tag, state in running.items())
    joined: dict[str, StateReturn] = {}
    for tag, state in running.items():
        count = counts[_alike(tag, state)]
        if count == 1:
            joined[tag] = state
            continue
        parts = tag.split("_|-")
        parts[1] = f"{state['__id__']} ({count})"
        parts[2] = f"{MARK}{state['__sls__']}_{state['__id__']}_{state['result']}"
        name = "_|-".join(parts)
        joined[name] = _both(joined[name], state) if name in joined else state
    return joined


def _alike(tag: str, state: StateReturn) -> tuple[str, ...]:
    return (tag.split("_|-")[0], str(state["__id__"]), str(state["__sls__"]), str(state["result"]))


def _both(first: StateReturn, state: StateReturn) -> StateReturn:
    both: StateReturn = {
        **first,
        "__run_num__": min(first["__run_num__"], state["__run_num__"]),
        "duration": round(first["duration"] + state["duration"], 3),
        "start_time": min(first["start_time"], state["start_time"]),
    }
    if state.get("changes"):
        # The changes of the first name move below it as soon as there are changes of another one.
        before = first.get("changes") or {}
        named: Any = before.get(CHANGES) or ({first["name"]: before} if before else {})
        both["changes"] = {CHANGES: {**named, state["name"]: state["changes"]}}
    return both
