"""The verbs behind the ``state`` module: render, compile, run, or show what would be (port ``StateSystem``).

A run begins with what it needs anew: users' modules are fetched, pillar is compiled. Errors of the pillar and of the tree
stop it before anything is touched. Sets ``ctx.scratch["retcode"]``: 1 compile errors, 2 a failed state, 5 pillar errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from statecore import engine
from statecore.compile import Compiled, compile_high, compile_sls, gather_sls
from statecore.context import Context
from statecore.errors import NotAvailable, SlsError
from statecore.loader import Loader
from statecore.render import SlsTree
from statecore.types import Low, Running, tag

_COMPILE_ERROR, _STATE_FAILED, _PILLAR_ERROR = 1, 2, 5

#: What a highstate returns when there is nothing to apply; Salt's own tag.
_NO_STATES = "no_|-states_|-states_|-None"


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything one run stands on."""

    ctx: Context
    tree: SlsTree
    opts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Bench:
    """The parts of a run that has not begun, for who looks at them one by one (``statecore.inspection``)."""

    stage: Stage
    loader: Loader
    options: engine.Options
    #: saltenv -> SLS references of the top file and the master's tops. Raises SlsError.
    top: Callable[[], dict[str, list[str]]]
    #: Fetches users' modules of these environments, as a run does.
    fetch_modules: Callable[[Sequence[str]], None]


class StateRuns:
    """Implements the port ``StateSystem`` over a way to set the stage."""

    def __init__(
        self,
        loader: Loader,
        stage: Callable[[Mapping[str, Any]], Stage],
        reload: Callable[[Context, frozenset[str]], Context],
        jid: Callable[[], str],
    ) -> None:
        """``stage(options)`` compiles pillar and wires a context; ``jid()`` names the job that runs."""
        self._loader = loader
        self._stage = stage
        self._reload = reload
        self._jid = jid

    def highstate(self, options: Mapping[str, Any]) -> dict[str, Any] | list[str]:
        """Running dictionary of the whole top file, or the list of errors."""
        stage = self._stage(options)
        try:
            matches = self._matches(stage, options)
        except SlsError as error:
            return _nothing(stage.ctx, f"Unable to render top file: {error}")
        if not matches:
            return _nothing(
                stage.ctx, "No Top file or master_tops data matches found. Please see master log for details."
            )
        return self._apply(stage, matches, options, empty="No states found for this minion")

    def sls(self, mods: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any] | list[str]:
        """Running dictionary of these SLS references; with ``only_id`` of that ID and what it needs."""
        stage = self._stage(options)
        return self._apply(stage, {stage.ctx.saltenv: list(mods)}, options)

    def high(self, data: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any] | list[str]:
        """Running dictionary of literal high data."""
        stage = self._stage(options)
        if errors := _pillar_errors(stage, options):
            return errors
        excludes = _excluded(options.get("exclude"))
        compiled = compile_high(
            dict(data), stage.opts, stage.tree, reacts=partial(self._reacts, stage.ctx), excludes=excludes
        )
        return self._run(stage, compiled, options)

    def low(self, data: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any] | list[str]:
        """The running entry of one low chunk; with ``tagged`` under its tag."""
        stage = self._stage(options)
        if errors := _pillar_errors(stage, options) or self._unusable(stage.ctx, data):
            stage.ctx.scratch["retcode"] = stage.ctx.scratch.get("retcode") or _COMPILE_ERROR
            return errors
        low: Low = {"__id__": data["name"], **data}
        entry = engine.single(low, stage.ctx, self._loader, self._engine_options(stage, options))
        if entry["result"] is False:
            stage.ctx.scratch["retcode"] = _STATE_FAILED
        return {tag(low): entry} if options.get("tagged") else entry

    def show_top(self, options: Mapping[str, Any]) -> dict[str, list[str]] | list[str]:
        """saltenv -> SLS references for this minion, or the errors of the top file."""
        try:
            return self._matches(self._stage(options), options)
        except SlsError as error:
            return error.lines()

    def show_high(self, mods: Sequence[str] | None, options: Mapping[str, Any]) -> dict[str, Any] | list[str]:
        """High data of the top file (None) or of SLS references."""
        compiled = self._shown(mods, options, lambda stage, matches: gather_sls(stage.tree, matches, stage.opts))
        return compiled if isinstance(compiled, list) else compiled.high

    def show_low(self, mods: Sequence[str] | None, options: Mapping[str, Any]) -> list[Any]:
        """Low chunks in order of evaluation, or the list of errors (strings)."""
        compiled = self._shown(mods, options, self._compiled)
        return compiled if isinstance(compiled, list) else list(compiled.chunks)

    def bench(self, options: Mapping[str, Any]) -> Bench:
        """The parts of a run with these options; pillar is compiled, nothing else is done."""
        stage = self._stage(options)
        return Bench(
            stage,
            self._loader,
            self._engine_options(stage, options),
            lambda: self._matches(stage, options),
            lambda envs: self._fetch_modules(stage, envs),
        )

    def _shown(
        self,
        mods: Sequence[str] | None,
        options: Mapping[str, Any],
        make: Callable[[Stage, Mapping[str, Sequence[str]]], Compiled],
    ) -> Compiled | list[str]:
        stage = self._stage(options)
        if errors := _pillar_errors(stage, options):
            return errors
        try:
            matches = self._matches(stage, options) if mods is None else {stage.ctx.saltenv: list(mods)}
            compiled = make(stage, matches)
        except SlsError as error:
            return error.lines()
        return [str(fault) for fault in compiled.faults] if compiled.faults else compiled

    def _matches(self, stage: Stage, options: Mapping[str, Any]) -> dict[str, list[str]]:
        """What the top file and the master's tops give this minion, limited by ``whitelist``. Raises SlsError."""
        matches = {env: list(refs) for env, refs in stage.tree.top().items()}
        for env, refs in stage.ctx.minion.master_tops().items():
            own = matches.get(env, [])
            first, second = (refs, own) if stage.opts.get("master_tops_first") else (own, refs)
            matches[env] = [*first, *(ref for ref in second if ref not in first)]
        whitelist = options.get("whitelist")
        if whitelist:
            allowed = whitelist.split(",") if isinstance(whitelist, str) else list(whitelist)
            matches = {env: [ref for ref in refs if ref in allowed] for env, refs in matches.items()}
        return {env: refs for env, refs in matches.items() if refs}

    def _apply(
        self, stage: Stage, matches: Mapping[str, Sequence[str]], options: Mapping[str, Any], *, empty: str = ""
    ) -> dict[str, Any] | list[str]:
        """``empty`` is the failure that a tree without any ID is; one whose IDs are all excluded is none."""
        if errors := _pillar_errors(stage, options):
            return errors
        self._fetch_modules(stage, list(matches))
        try:
            compiled = self._compiled(stage, matches, _excluded(options.get("exclude")))
        except SlsError as error:
            stage.ctx.scratch["retcode"] = _COMPILE_ERROR
            return error.lines()
        if empty and not (compiled.high or compiled.faults):
            return _nothing(stage.ctx, empty)
        return self._run(stage, compiled, options)

    def _run(self, stage: Stage, compiled: Compiled, options: Mapping[str, Any]) -> dict[str, Any] | list[str]:
        if compiled.faults:
            stage.ctx.scratch["retcode"] = _COMPILE_ERROR
            return [str(fault) for fault in compiled.faults]
        running = engine.run(compiled.graph, stage.ctx, self._loader, self._engine_options(stage, options))
        if any(entry["result"] is False for entry in running.values()):
            stage.ctx.scratch["retcode"] = _STATE_FAILED
        return running

    def _engine_options(self, stage: Stage, options: Mapping[str, Any]) -> engine.Options:
        only = options.get("only_id")
        jid = self._jid()
        return engine.Options(
            failhard=bool(options.get("failhard", stage.opts.get("failhard", False))),
            aggregate=stage.opts.get("state_aggregate", False),
            max_parallel=int(stage.opts.get("state_max_parallel") or 0),
            events=bool(jid) and bool(options.get("state_events", stage.opts.get("state_events", False))),
            jid=jid,
            wanted=(lambda low: bool(low["__id__"] == only)) if only else None,
            locate=lambda low, argument: stage.tree.locate(*_path(low), *([argument] if argument else [])),
            reload=self._reload,
        )

    def _fetch_modules(self, stage: Stage, envs: Sequence[str]) -> None:
        """Users' modules are distributed with a state run (seed 002); free where the tree has none and none are here."""
        if not stage.opts.get("autoload_dynamic_modules", True) or not stage.opts.get("extension_modules"):
            return
        here = self._loader.extension_dir is not None and self._loader.extension_dir.is_dir()
        if not here and not any(stage.ctx.files.paths(env, "_") for env in envs):
            return
        fetched = stage.ctx.call("saltutil.sync_all", saltenv=list(envs), refresh=False)
        if any(fetched.values()):
            self._loader.refresh()

    def _compiled(self, stage: Stage, matches: Mapping[str, Sequence[str]], excludes: Sequence[Any] = ()) -> Compiled:
        reacts = partial(self._reacts, stage.ctx)
        return compile_sls(stage.tree, matches, stage.opts, reacts=reacts, excludes=excludes)

    def _reacts(self, ctx: Context, state: str) -> bool:
        return self._loader.has("states", f"{state}.mod_watch", ctx)

    def _unusable(self, ctx: Context, data: Mapping[str, Any]) -> list[str]:
        """What keeps a literal chunk from being called at all, in Salt's words."""
        missing = [f'Missing "{key}" data' for key in ("state", "fun", "name") if key not in data]
        if missing:
            return missing
        full = f"{data['state']}.{data['fun']}"
        try:
            self._loader.function("states", full, ctx)
        except NotAvailable as error:
            reason = [f"Reason: {error.reason}"] if error.reason else []
            return [f"Specified state '{full}' was not found", *reason]
        return []


def _path(low: Low) -> tuple[str, ...]:
    """What ``SlsTree.locate`` asks for: SLS, environment, ID, state module."""
    return str(low.get("__sls__", "")), str(low.get("__env__", "base")), str(low["__id__"]), str(low["state"])


def _pillar_errors(stage: Stage, options: Mapping[str, Any]) -> list[str]:
    """The errors that stop a run, [] when there are none or ``force`` says to go on."""
    errors = stage.ctx.pillar.get("_errors")
    if not errors or options.get("force"):
        return []
    stage.ctx.scratch["retcode"] = _PILLAR_ERROR
    return ["Pillar failed to render with the following messages:", *errors]


def _nothing(ctx: Context, comment: str) -> Running:
    ctx.scratch["retcode"] = _STATE_FAILED
    entry = {"result": False, "comment": comment, "name": "No States", "changes": {}, "__run_num__": 0}
    return {_NO_STATES: entry}


def _excluded(exclude: Any) -> list[Any]:
    """What the argument ``exclude`` names, as SLS files do: names of SLS as text, ``{sls: x}``, ``{id: y}``."""
    listed = exclude.split(",") if isinstance(exclude, str) else exclude or []
    return [item if isinstance(item, Mapping) else str(item).strip() for item in listed]
