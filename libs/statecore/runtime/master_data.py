"""Pillar of a minion, and SLS files that master_tops modules assign to it. Runs on a master, or on a minion without
one.

Users' plugins run here: each of their faults becomes an error of the pillar or a log line.

Source: docs/protocol.md#pillar-transfer
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping, MutableMapping
from contextlib import nullcontext
from dataclasses import replace
from typing import NamedTuple

from statecore.host.host import Host
from statecore.loader import LoadedModule, Loader
from statecore.loader.arguments import unknown
from statecore.loader.find import virtual_names
from statecore.loader.tables import Table
from statecore.model.context import Context
from statecore.model.errors import NotAvailable, SlsError, StatecoreError
from statecore.model.ports import Files
from statecore.model.time_limit import ComputedTooMuch, TimeLimitExceeded, computing_limit, time_limit
from statecore.pillar import PillarFiles, PillarResult, compile_pillar, pillar_top
from statecore.pillar.external import PluginError
from statecore.pillar.git_pillar import git_pillar
from statecore.pillar.memory import PillarMemory
from statecore.render.limit import MASTER_RENDER_TIME_LIMIT, limit_message, limit_of_master

log = logging.getLogger(__name__)

#: Default of the option ``ext_pillar_timeout``: seconds for one plugin.
_TIMEOUT = 30


class MinionDataRequest(NamedTuple):
    """Request of a minion for its pillar: the minion's id, saltenv and pillarenv, and the pillar given in the call."""

    minion_id: str
    saltenv: str | None = None
    pillarenv: str | None = None
    override: Mapping[str, object] | None = None
    #: Additional external pillar, {name: arguments}; only names in the option ``on_demand_ext_pillar`` are allowed.
    on_demand: Mapping[str, object] | None = None
    #: Pillar that is merged last: nothing sees it while the pillar is compiled, and nothing in it is decrypted.
    unseen: Mapping[str, object] | None = None


def pillar_of(
    ctx: Context,
    loader: Loader,
    wanted: MinionDataRequest,
    live: MutableMapping[str, object],
    *,
    own_id: str = "",
    memory: PillarMemory | None = None,
) -> PillarResult:
    """Compile a minion's pillar from ``pillar_roots`` and the external pillars that the options of ``ctx`` name. Return
    the PillarResult with the pillar and its errors.

    The pillar of ``ctx`` is ``live``. ``live`` is filled while the pillar is compiled, so pillar files and plugins see
    what is compiled so far. ``own_id`` is the id in the plugins' ``__opts__``: that of the process that runs them.
    ``memory`` keeps parsed files between compilations, for processes that compile many pillars.
    """
    remembered = PillarMemory() if memory is None else memory
    opts = {**ctx.opts, "saltenv": wanted.saltenv or ctx.opts.get("saltenv")}
    opts["pillarenv"] = wanted.pillarenv or ctx.opts.get("pillarenv")
    renderers = Table(loader, "renderers")
    renderers.attach(ctx)
    plugins = {**opts, "id": own_id or wanted.minion_id, "minion_id": wanted.minion_id}
    return compile_pillar(
        remembered.files(
            (str(opts["saltenv"]), str(opts["pillarenv"]), str(wanted.saltenv), str(wanted.pillarenv)),
            lambda: PillarFiles(opts, wanted.saltenv, wanted.pillarenv),
        ),
        minion_id=wanted.minion_id,
        grains=ctx.grains,
        opts=opts,
        functions=ctx.functions,
        renderers=renderers,
        saltenv=wanted.saltenv,
        pillarenv=wanted.pillarenv,
        override=wanted.override,
        unseen=wanted.unseen,
        on_demand=wanted.on_demand,
        # Plugins run on this machine, even if the minion manages another root.
        external=_ExternalPillars(loader, replace(ctx, opts=plugins, host=Host("/")), remembered),
        memory=remembered.texts,
        live=live,
        decrypt=lambda text, renderer: ctx.templates.data(text, renderer, {}, saltenv=ctx.saltenv),
    )


def pillar_top_of(ctx: Context, loader: Loader, wanted: MinionDataRequest) -> dict[str, dict[str, list[object]]]:
    """Return the pillar's merged top files: {pillarenv: {target: list of SLS references and options}}. Raise SlsError
    if a top file cannot be rendered or has a wrong form.
    """
    renderers = Table(loader, "renderers")
    renderers.attach(ctx)
    return pillar_top(
        PillarFiles(ctx.opts, wanted.saltenv, wanted.pillarenv),
        minion_id=wanted.minion_id,
        grains=ctx.grains,
        opts=ctx.opts,
        functions=ctx.functions,
        renderers=renderers,
    )


def as_data(result: PillarResult) -> dict[str, object]:
    """Return a compiled pillar as the map that a minion gets: its errors are a list under ``_errors``."""
    return result.data | ({"_errors": list(result.errors)} if result.errors else {})


def tops_of(ctx: Context, loader: Loader, minion_opts: Mapping[str, object]) -> dict[str, list[str]]:
    """Map of saltenv to the SLS references that the ``master_tops`` modules assign to a minion.

    ``minion_opts`` are the minion's options with its ``id`` and ``grains``; the modules get them as ``opts``. As in
    Salt, a module that fails is logged and assigns nothing.
    """
    configured = ctx.opts.get("master_tops") or {}
    here = replace(ctx, host=Host("/"))
    found: dict[str, list[str]] = {}
    seconds = limit_of_master(ctx.opts)
    for served in _tops_modules(configured if isinstance(configured, Mapping) else {}, here, loader):
        arguments = {"opts": minion_opts, "grains": minion_opts.get("grains") or {}}
        try:
            with computing_limit(seconds, MASTER_RENDER_TIME_LIMIT) if seconds else nullcontext():
                sections = _sections(_called(served, "top", here, [], arguments))
        except PluginError as error:
            log.error("Top function %s failed with error %s for minion %s", served.name, error, minion_opts.get("id"))
            continue
        for saltenv, refs in sections.items():
            known = found.get(saltenv, [])
            found[saltenv] = [*known, *(ref for ref in refs if ref not in known)]
    return found


def _tops_modules(configured: Mapping[str, object], ctx: Context, loader: Loader) -> list[LoadedModule]:
    """List of the modules that the option ``master_tops`` names, in Salt's order: users' own modules first, by file
    name. A module that cannot be loaded is logged and left out.
    """
    found: list[LoadedModule] = []
    for name in configured:
        try:
            found.append(loader.module("tops", str(name), ctx))
        except NotAvailable as missing:
            reason = f": {missing.reason}" if missing.reason else ""
            log.error("master_tops: there is no tops module '%s'%s", name, reason)
    return sorted(found, key=lambda served: (served.native, served.source.stem))


def _sections(given: object) -> dict[str, list[str]]:
    """Return the result of a tops module as {saltenv: list of SLS references}; {} for None. Raise PluginError if the
    result has another form.
    """
    if not given:
        return {}
    if not isinstance(given, Mapping):
        raise PluginError(f"it gave {type(given).__name__}, and must give a dictionary: saltenv -> list of SLS")
    for saltenv, refs in given.items():
        if not isinstance(refs, list | tuple) or not all(isinstance(ref, str) for ref in refs):
            raise PluginError(f"for saltenv '{saltenv}' it gave {refs!r}, and must give a list of SLS")
    return {str(saltenv): list(refs) for saltenv, refs in given.items()}


class _ExternalPillars:
    """External pillar plugins of one process. Implements ``pillar.ExternalPillars``."""

    def __init__(self, loader: Loader, ctx: Context, memory: PillarMemory) -> None:
        self._loader = loader
        self._ctx = ctx
        self._memory = memory

    def call(
        self, name: str, minion_id: str, pillar: dict[str, object], args: list[object], kwargs: Mapping[str, object]
    ) -> object:
        """Call an external pillar plugin and return its data, which should be a map. Raise NotAvailable for an unknown
        plugin, PluginError for a plugin that fails.
        """
        if name == "git" and not kwargs:
            return self._of_git(minion_id, args)
        served = self._loader.module("pillar", name, self._ctx)
        return _called(served, "ext_pillar", self._ctx, [minion_id, pillar, *args], kwargs)

    def names(self) -> list[str]:
        """Sorted names of the plugins. None is loaded: some need libraries that are not installed."""
        sources = self._loader.sources("pillar")
        return sorted({"git", *(name for source in sources for name in virtual_names(source.path) or {source.stem})})

    def _of_git(self, minion_id: str, repositories: list[object]) -> dict[str, object]:
        """Return the pillar of Git repositories (``git_pillar``). Each repository is compiled as a pillar tree of its
        own.
        """
        renderers = Table(self._loader, "renderers")
        renderers.attach(self._ctx)

        def compiled(files: Files, saltenv: str) -> PillarResult:
            return compile_pillar(
                files,
                minion_id=minion_id,
                grains=self._ctx.grains,
                opts=self._ctx.opts,
                functions=self._ctx.functions,
                renderers=renderers,
                saltenv=saltenv,
                memory=self._memory.texts,
            )

        try:
            return git_pillar(repositories, self._ctx.opts, compiled, self._memory)
        except StatecoreError as error:
            raise PluginError(str(error)) from error


def _called(
    served: LoadedModule, function: str, ctx: Context, args: list[object], kwargs: Mapping[str, object]
) -> object:
    """Call a plugin's function and return a copy of its result.

    Raises PluginError, with the plugin's file and line, if the function is missing, fails or exceeds its time limit.
    """
    if function not in served.functions:
        raise PluginError(f"{served.source.path} has no function {function}()")
    if wrong := unknown(served.parameters(function), kwargs):
        takes = list(served.signature(function).parameters)[2:]
        raise PluginError(f"it does not take {', '.join(wrong)}; it takes {', '.join(takes)}")
    if fault := served.misfit(function, function, args, kwargs):
        raise PluginError(fault)
    seconds = float(ctx.opts.get("ext_pillar_timeout") or _TIMEOUT)
    try:
        # Commands of the plugin time out a second earlier: their error says which command was slow.
        with time_limit(seconds + 1):
            return _plain(served.bound(function, ctx)(*args, **kwargs))
    except ComputedTooMuch as error:
        raise PluginError(f"{limit_message(error)}{_place(error, served)}") from error
    except TimeLimitExceeded as error:
        text = f"it takes longer than {seconds:g} seconds (ext_pillar_timeout){_place(error, served)}"
        raise PluginError(text) from error
    except SlsError as error:
        faults = "; ".join(f"{fault.message} ({fault.mark})" for fault in error.faults)
        raise PluginError(f"{faults}{_place(error, served)}") from error
    except StatecoreError as error:
        raise PluginError(f"{error}{_place(error, served)}") from error
    except RecursionError as error:
        raise PluginError(f"its result contains itself{_place(error, served)}") from error
    # SystemExit: a plugin that calls sys.exit would end this process.
    except (Exception, SystemExit) as error:
        log.exception("%s in %s failed", function, served.source.path)
        raise PluginError(f"{str(error) or type(error).__name__}{_place(error, served)}") from error


def _plain(value: object) -> object:
    """Return a deep copy made of maps, lists and scalars.

    A plugin may return an object that it keeps, or the pillar that is still being compiled.
    """
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    return value


def _place(error: BaseException, served: LoadedModule) -> str:
    """Return " (file:line)" of the last traceback entry in a user's plugin; "" for a built-in plugin."""
    if served.native:
        return ""
    own = str(served.source.path)
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == own]
    return f" ({own}:{lines[-1]})" if lines else f" ({own})"
