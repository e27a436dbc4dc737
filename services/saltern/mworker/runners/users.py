"""Users' runners: files in ``runner_dirs``, and those that ``saltutil.sync_runners`` brought from ``salt://_runners``.

They run as under Salt: ``__salt__`` are the runners, ``__opts__`` the master's options, ``salt.client.LocalClient``
publishes jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from saltern.kit.config.master import MasterOptions
from saltern.mworker.runners.calling import misuse
from saltern.mworker.runners.runner import Runner, RunnerFault, RunnerTools
from saltern.mworker.runners.state import runtime_of
from statecore.loader import Loader
from statecore.model.context import Context
from statecore.model.errors import NotAvailable


def find(fun: str, options: MasterOptions, own: Mapping[str, Runner]) -> Runner | None:
    """Return the user's runner with the name ``fun``; None if no file can contain it.

    No file is executed before the runner is called. A file that cannot be loaded, or that lacks the function, gives its error
    as the runner's result. ``own``: the built-in runners.
    """
    loader = loader_of(options)
    known = fun.count(".") == 1 and loader.known("runners", fun.partition(".")[0])
    return partial(_run, fun, own) if known else None


def loader_of(options: MasterOptions) -> Loader:
    """Return the Loader that finds users' runners and utils in ``runner_dirs``, ``utils_dirs`` and ``extension_modules``."""
    directories = {"runners": [Path(each) for each in options.runner_dirs]}
    return Loader(
        Path(options.extension_modules), {**directories, "utils": [Path(each) for each in options.utils_dirs]}
    )


def all_of(tools: RunnerTools, own: Mapping[str, Runner]) -> dict[str, Runner]:
    """Return {name: function} of the users' runners that can be loaded, for their documentation."""
    loader = loader_of(tools.options)
    ctx = runtime_of(tools).context
    found: dict[str, Runner] = {}
    for name in loader.names("runners", ctx):
        try:
            served, function = loader.function("runners", name, ctx)
            found[name] = served.functions[function]
        except NotAvailable:
            continue
    return found


def _run(fun: str, own: Mapping[str, Runner], tools: RunnerTools, *args: object, **kwargs: object) -> object:
    loader = loader_of(tools.options)
    try:
        function = _bound(fun, own, tools, loader)
        if wrong := misuse(fun, function, args, kwargs):
            raise RunnerFault(wrong)
        return function(*args, **kwargs)
    except NotAvailable as missing:
        if missing.name == fun and fun in own:
            # A file mentions the runner's name, but is not this runner.
            return own[fun](tools, *args, **kwargs)
        if missing.name == fun:
            raise RunnerFault(str(missing)) from missing
        raise


def _bound(fun: str, own: Mapping[str, Runner], tools: RunnerTools, loader: Loader) -> Callable[..., object]:
    """Return a user's runner function; its module has ``__salt__``, ``__opts__`` and the like. Raises NotAvailable."""
    runtime = runtime_of(tools)
    functions = _Runners(own, tools, loader)
    opts = {**runtime.context.opts, "jid": tools.jid, "user": tools.user}
    ctx = replace(runtime.context, functions=functions, opts=opts, scratch=tools.scratch)
    functions.ctx = ctx
    served, function = loader.function("runners", fun, ctx)
    return served.bound(function, ctx)


class _Runners(Mapping[str, Callable[..., object]]):
    """``__salt__`` of a runner: users' runners, and built-in runners with their RunnerTools filled in."""

    ctx: Context

    def __init__(self, own: Mapping[str, Runner], tools: RunnerTools, loader: Loader) -> None:
        self._own = own
        self._tools = tools
        self._loader = loader

    def __getitem__(self, name: str) -> Callable[..., object]:
        try:
            served, function = self._loader.function("runners", name, self.ctx)
        except NotAvailable:
            own = self._own.get(name)
            if own is None:
                raise
            return partial(own, self._tools)
        return served.bound(function, self.ctx)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._own or self._loader.has("runners", name, self.ctx))

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._own, *self._loader.names("runners", self.ctx)}))

    def __len__(self) -> int:
        return sum(1 for _ in self)
