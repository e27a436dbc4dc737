"""The orchestration states ``salt.runner``, ``salt.wheel``, ``salt.parallel_runners`` and ``salt.wait_for_event``: call
functions of the master and wait for its events.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from fnmatch import fnmatchcase

from statecore.builtin.states.saltmod.results import OrchestrationReturn, arguments, entry, master_of
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.ports import MasterCall

#: Runner functions that are orchestrations: they get this orchestration's JID.
_ORCHESTRATIONS = ("state.orchestrate", "state.orch", "state.sls")


def runner(ctx: Context, name: str, **kwargs: object) -> OrchestrationReturn:
    """Run a runner function of the master; the state fails if it fails. All arguments except ``name`` are passed to the
    function, also those in ``arg`` and ``kwarg``.

    Salt: salt/states/saltmod.py, runner.
    """
    if ctx.test:
        return entry(name, None, f"Runner function '{name}' would be executed.")
    return _result("Runner", name, master_of(ctx).run([_call(ctx, name, kwargs)])[0])


def wheel(ctx: Context, name: str, **kwargs: object) -> OrchestrationReturn:
    """Run a wheel function of the master, such as ``key.accept``; the state fails if it fails. All arguments except
    ``name`` are passed to the function.

    Salt: salt/states/saltmod.py, wheel.
    """
    if ctx.test:
        return entry(name, None, f"Wheel function '{name}' would be executed.")
    return _result("Wheel", name, master_of(ctx).wheel(_call(ctx, name, kwargs)))


def parallel_runners(ctx: Context, name: str, runners: object, **kwargs: object) -> OrchestrationReturn:
    """Run several runner functions of the master at the same time; the state fails if one of them fails.

    runners
        map of ID to a map with ``name`` (the runner function; default: the ID) and ``kwarg`` (its arguments)

    All other arguments are ignored, as in Salt. Salt: salt/states/saltmod.py, parallel_runners.
    """
    if isinstance(runners, str):
        runners = {runners: {"name": runners}}
    if not isinstance(runners, Mapping):
        return entry(name, False, "The runners parameter must be a string or dict.")
    calls = {}
    for each, given in runners.items():
        own = arguments(given)
        calls[str(each)] = _call(ctx, str(own.get("name", each)), {"kwarg": own.get("kwarg") or {}})
    if ctx.test:
        return entry(
            name, None, f"Runner functions {', '.join(call.fun for call in calls.values())} would be executed."
        )
    try:
        answers = dict(zip(calls, master_of(ctx).run(list(calls.values())), strict=True))
    except CommandError as error:
        return entry(name, False, f"One of the runners raised an exception: {error}")
    values = {each: answer.get("return") for each, answer in answers.items()}
    failed = [each for each, answer in answers.items() if _failed(answer)]
    if all(_is_state_run(value) for value in values.values()):
        found = {each: _changes(arguments(value)["data"]) for each, value in values.items()}
        changes: dict[str, object] = {each: change for each, change in found.items() if change}
    else:
        changes = {"ret": values}
    return entry(name, not failed, _comment(failed, values), changes)


def wait_for_event(
    ctx: Context, name: str, id_list: list[object], event_id: str = "id", timeout: float = 300, node: str = "master"
) -> OrchestrationReturn:
    """Wait until events of the master whose tags match the glob ``name`` have contained every value of ``id_list``. The
    state fails after ``timeout`` seconds.

    event_id
        key of the event data, or of its ``data``, that contains the value or a list of values
    timeout
        seconds to wait
    node
        only ``master`` is supported: an orchestration receives events of the master

    Salt: salt/states/saltmod.py, wait_for_event.
    """
    if node != "master":
        return entry(
            name,
            False,
            f"not supported: node={node}. An orchestration only receives events of its master",
        )
    if not isinstance(id_list, list):
        return entry(name, False, f"id_list must be a list of the awaited values, not {type(id_list).__name__}")
    if ctx.test:
        return entry(name, None, f"Orchestration would wait for event '{name}'")
    left = list(id_list)
    seen: list[object] = []
    began = time.monotonic()
    for tag, data in master_of(ctx).events(_prefix(name), timeout):
        if not fnmatchcase(tag, name):
            continue
        for value in _named(data, event_id):
            if value in left:
                left.remove(value)
                seen.append(value)
        if not left:
            break
    changes = {"minions_seen": seen} if seen else {}
    if left:
        return entry(name, False, f"Timeout value reached. Not seen: {', '.join(map(str, left))}", changes)
    return entry(name, True, f"All events seen in {time.monotonic() - began} seconds.", changes)


def _call(ctx: Context, name: str, kwargs: Mapping[str, object]) -> MasterCall:
    own = dict(kwargs)
    arg, kwarg = own.pop("arg", None), own.pop("kwarg", None)
    named = {**arguments(kwarg), **own}
    if name in _ORCHESTRATIONS:
        named.setdefault("saltenv", ctx.saltenv)
        named["orchestration_jid"] = master_of(ctx).jid
    positional = tuple(arg) if isinstance(arg, list | tuple) else () if arg is None else (arg,)
    return MasterCall(name, positional, named)


def _result(kind: str, name: str, answer: Mapping[str, object]) -> OrchestrationReturn:
    value = answer.get("return")
    good = bool(answer.get("success", True)) and not (isinstance(value, Mapping) and "Error" in value)
    result = entry(name, good, f"{kind} function '{name}' {'executed' if good else 'failed'}.", {"return": value})
    if answer.get("jid"):
        result["__jid__"] = answer["jid"]
    return result


def _failed(answer: Mapping[str, object]) -> bool:
    value = answer.get("return")
    result = value if isinstance(value, Mapping) else {}
    data = result.get("data")
    codes = (result.get("exit_code"), result.get("retcode"), data.get("retcode") if isinstance(data, Mapping) else None)
    return not answer.get("success", True) or any(codes)


def _comment(failed: list[str], values: Mapping[str, object]) -> str:
    if not failed:
        return "All runner functions executed successfully."
    reasons = [f"{each}: {values[each]}" for each in failed if isinstance(values[each], str)]
    many = f"Runner {failed[0]} failed." if len(failed) == 1 else f"Runners {', '.join(failed)} failed."
    return "\n".join([many, *reasons])


def _is_state_run(value: object) -> bool:
    return isinstance(value, Mapping) and value.get("outputter") == "highstate" and "data" in value


def _changes(found: object) -> object:
    """Return the changes inside the return ``found`` of a runner function. Each nested map with the key ``changes`` is
    replaced by the value of that key, everything else is left out.

    {} if ``found`` contains no changes.
    """
    if not isinstance(found, Mapping):
        return {}
    if "changes" in found:
        own = found["changes"]
        inner = isinstance(own, Mapping) and own.get("out") == "highstate" and "ret" in own
        return own["ret"] if inner else own
    below = {key: _changes(value) for key, value in found.items()}
    return {key: value for key, value in below.items() if value}


def _prefix(glob: str) -> str:
    return glob[: min((at for at in map(glob.find, "*?[") if at >= 0), default=len(glob))]


def _named(data: Mapping[str, object], key: str) -> list[object]:
    value, inner = data.get(key), data.get("data")
    if value is None and isinstance(inner, Mapping):
        value = inner.get(key)
    return [] if value is None else value if isinstance(value, list) else [value]
