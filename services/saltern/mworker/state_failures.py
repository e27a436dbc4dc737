"""Events about failed states, made from the return of a state run. No I/O.

Each failed state causes two events: first ``<state>.<function>``, Salt's old tag, then
``salt/job/<jid>/sub/<minion>/error/<fun>``. As in Salt, only runs of ``state.highstate`` and ``state.sls`` with a
return code other than 0 cause them; ``state.apply`` does not.

The keys of a return come from the minion. A first part and a last part that are no name of a state function cause no
event of the first kind, so a minion cannot choose a tag of Salt's or of the operator's. An ``id`` in a state is replaced
by the minion's.

Source: docs/protocol.md#event-tags. Salt: salt/utils/event.py, fire_ret_load
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from saltwire import tags

#: Functions whose failed states cause events.
_REPORTED = frozenset({"state.highstate", "state.sls"})

#: Most failed states of one return that cause events.
MOST = 1000

#: Separator of the parts of a state's tag: state, id, name, function.
_PARTS = "_|-"


def failed_states(ret: Mapping[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield (tag, data) of the events about the first MOST failed states in a return, in order. Other returns yield
    nothing.
    """
    left = MOST
    for fun, states, retcode in _runs(ret):
        if fun not in _REPORTED or not retcode or not isinstance(states, Mapping):
            continue
        for key, state in states.items():
            if isinstance(state, Mapping) and state.get("result") is False:
                left -= 1
                if left < 0:
                    return
                yield from _events(str(key), {**state, "retcode": retcode}, ret, fun)


def _events(
    key: str, state: dict[str, object], ret: Mapping[str, object], fun: str
) -> Iterator[tuple[str, dict[str, object]]]:
    parts = key.split(_PARTS)
    name = f"{parts[0]}.{parts[-1]}"
    if tags.is_state_function(name):
        yield name, state | ({"id": ret["id"]} if "id" in state else {})
    about = {"jid": ret["jid"], "id": ret["id"], "success": False, "return": f"Error: {name}", "fun": fun}
    user = {"user": ret["user"]} if "user" in ret else {}
    yield tags.job_state_error(str(ret["jid"]), str(ret["id"]), fun), {**state, **about, **user}


def _runs(ret: Mapping[str, object]) -> Iterator[tuple[str, object, object]]:
    """Yield (function, return value, return code) of a job. A job of several functions returns lists, or maps by
    function.
    """
    fun, value, code = ret.get("fun"), ret.get("return"), ret.get("retcode")
    if isinstance(fun, str):
        yield fun, value, code
    elif isinstance(fun, Sequence):
        for at, name in enumerate(fun):
            yield str(name), _of(value, at, name), _of(code, at, name)


def _of(values: object, at: int, name: object) -> object:
    if isinstance(values, Mapping):
        return values.get(name)
    return values[at] if isinstance(values, list) and at < len(values) else None
