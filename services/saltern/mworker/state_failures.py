"""Events about the states of a run that failed, made of the return of the run (protocol section 10.2). Pure.

``salt/job/<jid>/sub/<minion>/error/<fun>``, and before it ``<state>.<function>`` of the same data, as Salt has always had it. Only
runs whose return code is not 0, of the functions that Salt looks at: ``state.apply`` is none of them. Source: salt/utils/event.py
(fire_ret_load).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from saltwire import tags

#: Functions whose failed states are told of.
_TOLD = frozenset({"state.highstate", "state.sls"})

#: Between the parts of a state's key: state, id, name, function.
_PARTS = "_|-"


def failed_states(ret: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(tag, data) of the events that a return causes beside its own, in their order. What is no run causes none."""
    for fun, states, retcode in _runs(ret):
        if fun not in _TOLD or not retcode or not isinstance(states, Mapping):
            continue
        for key, state in states.items():
            if isinstance(state, Mapping) and state.get("result") is False:
                yield from _told(str(key), {**state, "retcode": retcode}, ret, fun)


def _told(key: str, state: dict[str, Any], ret: Mapping[str, Any], fun: str) -> Iterator[tuple[str, dict[str, Any]]]:
    parts = key.split(_PARTS)
    name = f"{parts[0]}.{parts[-1]}"
    yield name, state
    about = {"jid": ret["jid"], "id": ret["id"], "success": False, "return": f"Error: {name}", "fun": fun}
    user = {"user": ret["user"]} if "user" in ret else {}
    yield tags.job_state_error(ret["jid"], ret["id"], fun), {**state, **about, **user}


def _runs(ret: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """(function, what it returned, its return code): of a job of several functions these are lists, or maps by function."""
    fun, value, code = ret.get("fun"), ret.get("return"), ret.get("retcode")
    if isinstance(fun, str):
        yield fun, value, code
    elif isinstance(fun, Sequence):
        for at, name in enumerate(fun):
            yield str(name), _of(value, at, name), _of(code, at, name)


def _of(values: Any, at: int, name: Any) -> Any:
    if isinstance(values, Mapping):
        return values.get(name)
    return values[at] if isinstance(values, list) and at < len(values) else None
