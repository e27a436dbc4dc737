"""Values of the dunder names (``__salt__``, ``__opts__`` ...) that users' modules find in their globals, for each kind
of module.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping

from statecore.loader.current_context import current
from statecore.loader.file_client import FileClient
from statecore.model.context import Context
from statecore.model.errors import CommandError, NotAvailable
from statecore.model.failed_calls import salted
from statecore.model.ports import Function, Master, MasterCall


class MissingFunction(NotAvailable, KeyError):
    """Raised by ``__salt__["no.such"]`` for a missing function. It is also a KeyError, because users' modules catch
    KeyError.
    """

    def __str__(self) -> str:
        # KeyError's own str() is the repr of the message.
        return str(self.args[0])


class _DunderModule:
    """Value of ``__salt__.cmd``: has the functions of one module as attributes."""

    def __init__(self, functions: Mapping[str, Function], name: str) -> None:
        self._functions = functions
        self._name = name

    def __getattr__(self, function: str) -> Function:
        try:
            return self._functions[f"{self._name}.{function}"]
        except KeyError as missing:
            raise AttributeError(str(missing)) from None


class SaltTable(Mapping[str, Function]):
    """Value of ``__salt__``, ``__utils__`` and similar names: lazy map of "module.function" to the function.

    A missing function raises MissingFunction, which is a KeyError. ``__salt__.cmd.run`` is the same as
    ``__salt__["cmd.run"]``. A failed call returns what Salt's function returns.
    """

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions

    def __getitem__(self, name: str) -> Function:
        try:
            function = self._functions[name]
        except NotAvailable as missing:
            raise MissingFunction(missing.name, missing.reason) from None
        # Users' modules read the function's signature and attributes, and its module's ``__context__``.
        own = functools.update_wrapper(salted(name, function), function)
        own.__module__ = __name__
        return own

    def __getattr__(self, module: str) -> _DunderModule:
        if module.startswith("_"):
            raise AttributeError(module)
        return _DunderModule(self, module)

    def missing_fun_string(self, name: str) -> str:
        """Return the error message for a missing function ``name``, with the reason if it is known."""
        try:
            self[name]
        except MissingFunction as missing:
            return str(missing)
        return f"'{name}' is not available."

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)


class ModuleOpts(dict[str, object]):
    """Value of ``__opts__``: the minion's options, copied for one module, so that the module's changes do not affect
    others.

    It also has the keys ``test``, ``grains``, ``pillar`` and ``saltenv``, as in Salt, and ``sock_dir``, which modules hand
    to ``salt.utils.event``.
    """

    def __init__(self, ctx: Context) -> None:
        super().__init__(ctx.opts)
        self.update(test=ctx.test, grains=ctx.grains, pillar=ctx.pillar, saltenv=ctx.saltenv)
        self.setdefault("sock_dir", "")
        self.ctx = ctx

    def __deepcopy__(self, memo: dict[int, object]) -> dict[str, object]:
        # A context holds locks and sockets, which cannot be copied; so a deep copy is a plain dict without ``ctx``.
        return dict(self)


class JobEvents:
    """Value of ``__jid_event__`` in users' runners: fires events about the progress of the runner's job."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def fire_event(self, data: object, tag: str) -> bool:
        """Fire an event with the tag ``salt/run/<jid>/<tag>``. Return whether the event bus accepted the event."""
        shown = data if isinstance(data, Mapping) else {"data": data}
        return self._ctx.events.fire(f"salt/run/{self._ctx.opts.get('jid', '')}/{tag}", shown)


class RunnerTable(Mapping[str, Function]):
    """Value of ``__runners__`` in engines of a master: "module.function" to a function that runs this runner and waits
    for its result. On a minion it is empty.

    The function raises CommandError with the reason if the runner fails.
    """

    def __init__(self, ctx: Context) -> None:
        self._master = ctx.master

    def __getitem__(self, name: str) -> Function:
        if self._master is None:
            raise MissingFunction(name, "there are runners on a master only")
        master = self._master

        def run(*args: object, **kwargs: object) -> object:
            return _run(master, name, *args, **kwargs)

        return run

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._master is not None and name in self._names()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def _names(self) -> list[str]:
        """Return the names of all runners, as the master's runner ``doc.runner`` lists them."""
        if self._master is None:
            return []
        found = _run(self._master, "doc.runner")
        return sorted(found) if isinstance(found, Mapping) else []


def _run(master: Master, name: str, /, *args: object, **kwargs: object) -> object:
    (result,) = master.run([MasterCall(name, args, kwargs)])
    if not result.get("success"):
        raise CommandError(f"runner {name}: {result.get('return')}")
    return result.get("return")


def _states(ctx: Context) -> Mapping[str, Function]:
    """Return the state functions, a map of "module.function" to the function, bound to the Context of the calling low
    chunk. The Context's own table would have no ``__low__``.
    """
    bound_to = getattr(ctx.states, "bound_to", None)
    table: Mapping[str, Function] = bound_to(ctx) if bound_to is not None else ctx.states
    return table


#: Dunder name -> function that returns its value for a context.
_VALUES: Mapping[str, Callable[[Context], object]] = {
    "__opts__": ModuleOpts,
    "__grains__": lambda ctx: ctx.grains,
    "__pillar__": lambda ctx: ctx.pillar,
    "__context__": lambda ctx: ctx.scratch,
    "__salt__": lambda ctx: SaltTable(ctx.functions),
    "__utils__": lambda ctx: SaltTable(ctx.tables["utils"]),
    "__proxy__": lambda ctx: {},
    "__file_client__": FileClient,
    "__states__": lambda ctx: SaltTable(_states(ctx)),
    "__serializers__": lambda ctx: SaltTable(ctx.tables["serializers"]),
    "__executors__": lambda ctx: SaltTable(ctx.tables["executors"]),
    "__low__": lambda ctx: ctx.low,
    "__running__": lambda ctx: ctx.running,
    "__lowstate__": lambda ctx: ctx.lowstate,
    "__env__": lambda ctx: ctx.saltenv,
    "__sls__": lambda ctx: ctx.low.get("__sls__"),
    "__instance_id__": lambda ctx: str(ctx.opts.get("jid", "")),
    "__user__": lambda ctx: ctx.opts.get("user", "root"),
    "__jid_event__": JobEvents,
    "__runners__": RunnerTable,
    "__engine_name__": lambda ctx: str(ctx.opts.get("__engine_name__", "")),
}

_COMMON = ("__opts__", "__grains__", "__pillar__", "__context__")
_COMMON_AND_CALLS = (*_COMMON, "__salt__", "__utils__", "__proxy__", "__file_client__")

#: Dunder names that belong to one other kind of modules alone.
_NOT_OF_STATES = ("__executors__", "__runners__", "__engine_name__")

#: Kind -> dunder names of its modules, as Salt packs them. Other kinds get ``_COMMON_AND_CALLS``.
_OF_KIND: Mapping[str, tuple[str, ...]] = {
    "grains": (*_COMMON, "__utils__"),
    "states": tuple(name for name in _VALUES if name not in _NOT_OF_STATES),
    "runners": (*_COMMON_AND_CALLS, "__jid_event__", "__user__"),
    "fileserver": (*_COMMON, "__utils__"),
    "engines": (*_COMMON_AND_CALLS, "__runners__", "__engine_name__"),
    "executors": (*_COMMON, "__salt__", "__proxy__", "__executors__"),
}


def __getattr__(name: str) -> object:
    """Return the value of a dunder name (``__salt__`` ...) for the user's function that is running. Raise
    AttributeError for other names, and if no function is running.

    Each function in ``__salt__`` has this module as ``__module__``. So states find the execution modules'
    ``__context__`` as ``sys.modules[__salt__["test.ping"].__module__].__context__``.
    """
    ctx = current.get()
    if ctx is None or name not in _VALUES:
        raise AttributeError(name)
    return dunder(name, ctx)


def dunder(name: str, ctx: Context) -> object:
    """Return the value of one dunder name (``__salt__`` ...) in a Context. Raise KeyError for an unknown name."""
    return _VALUES[name](ctx)


def dunders(kind: str, ctx: Context) -> dict[str, object]:
    """Map of dunder name to value, for a user's module of this kind ("modules", "states" ...) in one Context."""
    return {name: _VALUES[name](ctx) for name in _OF_KIND.get(kind, _COMMON_AND_CALLS)}
