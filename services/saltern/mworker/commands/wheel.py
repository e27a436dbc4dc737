"""The control command ``wheel``: functions that administer the master. Users' wheel modules take precedence over
built-in ones.

Each call fires the events ``salt/wheel/<jid>/new`` and ``salt/wheel/<jid>/ret``. Source: docs/protocol.md#event-tags
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from masterstore.errors import StoreUnavailable
from saltern.kit.config.master import as_opts, public_options
from saltern.kit.links.control import ControlError
from saltern.mworker.commands import keys, minion_data, roots
from saltern.mworker.senders import Sender
from saltern.mworker.worker_context import WorkerContext
from saltwire import tags
from saltwire.jid import next_jid
from statecore.loader import Loader
from statecore.model.errors import NotAvailable
from statecore.model.nearest import close_matches
from statecore.model.redaction import shown_arguments
from statecore.runtime.runtime import local_runtime

#: A wheel function: (context, arguments...) -> its value.
WheelFunction: TypeAlias = Callable[..., object]

#: Functions whose values are left out of events -> what the values contain.
_SECRET_RESULTS: Mapping[str, str] = {
    "key.gen": "a private key",
    "key.gen_accept": "a private key",
    "minions.export_data": "pillar of minions",
}


def wheel(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> object:
    """Run one wheel function and return its value. Raises ControlError for an unknown function, or with the function's
    own error; StoreError if the audit record refuses the entry about the call, which is then not made.

    With the field ``full`` return {"tag", "data"} of the event ``salt/wheel/<jid>/ret``, as Salt's wheel client does.
    """
    fun = str(fields.get("fun", ""))
    arg, kwarg = fields.get("arg") or [], fields.get("kwarg") or {}
    if not isinstance(arg, list) or not isinstance(kwarg, Mapping):
        raise ControlError("InvocationError", "arg must be a list and kwarg a map")
    function = _function(context, fun)
    jid = next_jid(time.time(), "")
    stem = tags.wheel(jid)
    told: dict[str, object] = {
        "fun": f"wheel.{fun}",
        "jid": jid,
        "tag": stem,
        "user": str(fields.get("user") or sender.client),
    }
    told["fun_args"] = shown_arguments(told["fun"], [*arg, *([dict(kwarg)] if kwarg else [])])
    done: dict[str, object] = {"user": told["user"], "fun": fun, "jid": jid, "arg": told["fun_args"]}
    context.audit.begin("wheel", sender.client, **done)
    context.fire(f"{stem}/new", {**told, "owner": sender.owner})
    try:
        value = function(context, *arg, **kwarg)
    except ControlError as error:
        context.fire(f"{stem}/ret", {**told, "return": error.message, "success": False, "owner": sender.owner})
        raise
    except StoreUnavailable:
        # Not refused here: RequestHandler answers that Redis is unavailable.
        raise
    except Exception as error:
        message = f"Exception occurred in wheel {fun}: {type(error).__name__}: {error}"
        context.fire(f"{stem}/ret", {**told, "return": message, "success": False, "owner": sender.owner})
        context.log.info("the wheel function %s failed: %s", fun, error)
        if fields.get("full"):
            return {"tag": stem, "data": {**told, "return": message, "success": False, "_stamp": _now()}}
        raise ControlError(type(error).__name__, message) from error
    shown = f"not shown: it contains {_SECRET_RESULTS[fun]}" if fun in _SECRET_RESULTS else value
    context.fire(f"{stem}/ret", {**told, "return": shown, "success": True, "owner": sender.owner})
    if fields.get("full"):
        return {"tag": stem, "data": {**told, "return": value, "success": True, "_stamp": _now()}}
    return value


def _now() -> str:
    return datetime.now(UTC).replace(tzinfo=None).isoformat()


def _function(context: WorkerContext, fun: str) -> WheelFunction:
    function = _users(context, fun) or FUNCTIONS.get(fun)
    if function is not None:
        return function
    if fun in keys.WHEELS:
        return _key_function(fun)
    near = close_matches(fun, (*keys.WHEELS, *FUNCTIONS), n=1)
    hint = f" The nearest is '{near[0]}'." if near else ""
    known = ", ".join(sorted((*keys.WHEELS, *FUNCTIONS)))
    raise ControlError("UnknownFunction", f"'{fun}' is not available.{hint} Wheel functions: {known}")


def _key_function(fun: str) -> WheelFunction:
    """Return a wheel function that calls the function ``fun`` for minion keys.

    Its arguments go by name; only ``match`` may be positional.
    """

    def run(context: WorkerContext, *arg: object, **kwarg: object) -> object:
        if len(arg) > 1 or (arg and "match" in kwarg):
            raise ControlError("InvocationError", "arguments of wheel functions go by name, in the map kwarg")
        return keys.call(context, fun, {**kwarg, **({"match": arg[0]} if arg else {})})

    return run


def _users(context: WorkerContext, fun: str) -> WheelFunction | None:
    """Return a user's wheel function (synced from ``_wheel`` of the tree); None if there is none of this name.

    It runs in the worker's own process, as in Salt.
    """
    loader = Loader(Path(context.options.extension_modules), {})
    if fun.count(".") != 1 or not loader.known("wheel", fun.partition(".")[0]):
        return None

    def run(context: WorkerContext, *arg: object, **kwarg: object) -> object:
        runtime = local_runtime(as_opts(context.options, file_client="local", cachedir="", __role="master"), pillar={})
        try:
            served, function = loader.function("wheel", fun, runtime.context)
        except NotAvailable as missing:
            raise ControlError("UnknownFunction", str(missing)) from missing
        return served.bound(function, runtime.context)(*arg, **kwarg)

    return run


def values(context: WorkerContext) -> dict[str, object]:
    """Return all options of the master except those that hold passwords."""
    return public_options(context.options)


def unwritable(context: WorkerContext, *args: object, **kwargs: object) -> None:
    """Raise ControlError: the roles do not write their configuration, because each role may have its own."""
    raise ControlError(
        "NotSupported",
        "the roles do not write their configuration: change the file `master` (or a file of master.d) that they are started"
        " with, and restart them; no minion notices",
    )


def connected(context: WorkerContext) -> list[str]:
    """Return the sorted ids of the accepted minions that sent a message within ``presence_window`` seconds."""
    since = int((time.time() - context.options.presence_window) * 1000)
    return sorted(context.store.presence.present(since) & set(context.store.minion_keys.accepted()))


def error(context: WorkerContext, name: str | None = None, message: str = "") -> dict[str, object]:
    """Raise an error of the class ``name`` with this message; without ``name`` return {} (Salt's ``error.error``)."""
    if name is not None:
        raise ControlError(str(name), str(message))
    return {}


def documentation(context: WorkerContext) -> dict[str, str]:
    """Return the map of wheel function to its documentation."""
    described: dict[str, Callable[..., object]] = {**keys.WHEELS, **FUNCTIONS}
    return {fun: inspect.getdoc(function) or "" for fun, function in sorted(described.items())}


def _of(trees: str, function: Callable[..., object]) -> WheelFunction:
    """Return a wheel function that calls ``function`` with the directories in the option ``trees`` (file_roots or
    pillar_roots).
    """

    def run(context: WorkerContext, *arg: object, **kwarg: object) -> object:
        found: Mapping[str, Sequence[str]] = getattr(context.options, trees)
        return function(found, *arg, **kwarg)

    run.__doc__ = function.__doc__
    return run


#: Functions that are not about keys.
FUNCTIONS: Mapping[str, WheelFunction] = {
    "config.apply": unwritable,
    "config.update_config": unwritable,
    "config.values": values,
    "error.error": error,
    **{
        f"{trees}.{name}": _of(trees, function)
        for trees in ("file_roots", "pillar_roots")
        for name, function in roots.FUNCTIONS.items()
    },
    "minions.connected": connected,
    **minion_data.FUNCTIONS,
    "sys.doc": documentation,
}
