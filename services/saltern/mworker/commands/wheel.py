"""The command ``wheel``: functions that administer the master itself. One table; users' own come before it.

Each call is told on the bus as ``salt/wheel/<jid>/new`` and ``/ret`` (protocol section 10.2).
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from masterstore.errors import StoreUnavailable
from saltern.kit.config.master import as_opts
from saltern.kit.links.control import ControlError
from saltern.mworker.commands import keys, roots
from saltern.mworker.worker_context import WorkerContext
from saltwire import tags
from saltwire.jid import next_jid
from statecore.loader import Loader
from statecore.model.errors import NotAvailable
from statecore.model.nearest import close_matches
from statecore.runtime.runtime import local_runtime

#: A wheel function: (desk, arguments...) -> what it returns.
WheelFunction: TypeAlias = Callable[..., Any]

#: Options that hold passwords, or the URLs of what holds some.
_SECRET = frozenset({"redis_url", "proxy_password"})

#: Functions whose results hold private keys: they go to who asked, and not onto the bus.
_UNTOLD = frozenset({"key.gen", "key.gen_accept"})


def wheel(context: WorkerContext, client: str, fields: Mapping[str, Any]) -> Any:
    """Runs one wheel function. Refuses an unknown one by name; what it raises is the refusal's message."""
    fun = str(fields.get("fun", ""))
    arg, kwarg = fields.get("arg") or [], fields.get("kwarg") or {}
    if not isinstance(arg, list) or not isinstance(kwarg, Mapping):
        raise ControlError("InvocationError", "arg must be a list and kwarg a map")
    function = _function(context, fun)
    jid = next_jid(time.time(), "")
    stem = tags.wheel(jid)
    told: dict[str, Any] = {"fun": f"wheel.{fun}", "jid": jid, "tag": stem, "user": str(fields.get("user") or client)}
    told["fun_args"] = [*arg, *([dict(kwarg)] if kwarg else [])]
    context.fire(f"{stem}/new", told)
    try:
        value = function(context, *arg, **kwarg)
    except ControlError as error:
        context.fire(f"{stem}/ret", {**told, "return": error.message, "success": False})
        raise
    except StoreUnavailable:
        # Not refused: the request is answered once the store is back.
        raise
    except Exception as error:
        said = f"Exception occurred in wheel {fun}: {type(error).__name__}: {error}"
        context.fire(f"{stem}/ret", {**told, "return": said, "success": False})
        context.log.info("the wheel function %s failed: %s", fun, error)
        raise ControlError(type(error).__name__, said) from error
    shown = "not told: it holds a private key" if fun in _UNTOLD else value
    context.fire(f"{stem}/ret", {**told, "return": shown, "success": True})
    return value


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
    """Functions about keys take their arguments by name; the first, ``match``, may stand alone."""

    def run(context: WorkerContext, *arg: Any, **kwarg: Any) -> Any:
        if len(arg) > 1 or (arg and "match" in kwarg):
            raise ControlError("InvocationError", "arguments of wheel functions go by name, in the map kwarg")
        return keys.call(context, fun, {**kwarg, **({"match": arg[0]} if arg else {})})

    return run


def _users(context: WorkerContext, fun: str) -> WheelFunction | None:
    """The user's function (``_wheel`` of the tree, synced): it runs in the worker, as under Salt, and should be short."""
    loader = Loader(Path(context.options.extension_modules), {})
    if fun.count(".") != 1 or not loader.known("wheel", fun.partition(".")[0]):
        return None

    def run(context: WorkerContext, *arg: Any, **kwarg: Any) -> Any:
        runtime = local_runtime(as_opts(context.options, file_client="local", cachedir="", __role="master"), pillar={})
        try:
            served, function = loader.function("wheel", fun, runtime.context)
        except NotAvailable as missing:
            raise ControlError("UnknownFunction", str(missing)) from missing
        return served.bound(function, runtime.context)(*arg, **kwarg)

    return run


def values(context: WorkerContext) -> dict[str, Any]:
    """Every option of the master, but those that hold passwords."""
    return {name: value for name, value in as_opts(context.options).items() if name not in _SECRET}


def unwritable(context: WorkerContext, *args: Any, **kwargs: Any) -> None:
    """Refused: the configuration belongs to whoever starts the roles, and each may have its own."""
    raise ControlError(
        "NotSupported",
        "the roles do not write their configuration: change the file `master` (or a file of master.d) that they are started"
        " with, and restart them; no minion notices",
    )


def connected(context: WorkerContext) -> list[str]:
    """Accepted minions that the master heard of within ``presence_window``."""
    since = int((time.time() - context.options.presence_window) * 1000)
    return sorted(context.store.presence.present(since) & set(context.store.minion_keys.accepted()))


def error(context: WorkerContext, name: str | None = None, message: str = "") -> dict[str, Any]:
    """{}; with ``name`` it fails with that exception."""
    if name is not None:
        raise ControlError(str(name), str(message))
    return {}


def documentation(context: WorkerContext) -> dict[str, str]:
    """Wheel function -> its documentation."""
    described: dict[str, Callable[..., Any]] = {**keys.WHEELS, **FUNCTIONS}
    return {fun: inspect.getdoc(function) or "" for fun, function in sorted(described.items())}


def _of(trees: str, function: Callable[..., Any]) -> WheelFunction:
    """A function about the directories of an option."""

    def run(context: WorkerContext, *arg: Any, **kwarg: Any) -> Any:
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
    "sys.doc": documentation,
}
