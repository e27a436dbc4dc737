"""State system: the functions of the ``state`` module that render, compile and run, or show what would run.

Each run fetches users' modules and compiles pillar first. Errors of pillar or SLS files stop the run before the host is
changed. ``ctx.scratch["retcode"]`` becomes 1 for compile errors, 2 for a failed state, 5 for pillar errors.

Source: docs/state-system.md#stages
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from statecore import engine
from statecore.compile import Compiled, compile_chunks, compile_high, compile_sls, gather_sls, shape
from statecore.compile.draft import Draft
from statecore.compile.graph import Graph
from statecore.host.content import data_files
from statecore.loader import Loader
from statecore.model import redaction
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError, SlsError
from statecore.model.ports import Files, StateSystem
from statecore.model.types import High, Low, Running, RunningEntry
from statecore.model.values import to_int
from statecore.render import SlsSource
from statecore.runtime.contexts import Contexts, RunContext
from statecore.runtime.state_runs import disabled_states, pauses, run_checks
from statecore.runtime.state_runs.run_checks import (
    STATE_FAILED,
    faults_of_chunk,
    must_have,
    not_compiled,
    nothing,
    pillar_errors,
)
from statecore.runtime.state_runs.run_result import failed

log = logging.getLogger(__name__)


class RunParts(NamedTuple):
    """A state run that has not started: its context, loader and options, for the analysis commands (check, plan,
    explain).
    """

    run: RunContext
    loader: Loader
    options: engine.EngineOptions
    #: Returns {saltenv: SLS references} of the top file and the master's tops. Raises SlsError.
    top: Callable[[], dict[str, list[str]]]
    #: Fetches users' modules of these environments from the state tree, as a run does.
    fetch_modules: Callable[[Sequence[str]], object]
    #: Runs a compiled graph, with the high data that it was compiled from, as ``state.apply`` runs it.
    run_graph: Callable[[Graph, High], Running | list[str]]


class StateRuns(StateSystem):
    """The functions of the execution module ``state``: compile and run states, or show what would run."""

    def __init__(self, contexts: Contexts) -> None:
        """Store the Contexts (options, grains, pillar, loader) of the minion whose states run."""
        self._contexts = contexts
        self._loader = contexts.loader

    def highstate(self, options: Mapping[str, object]) -> Running | list[str]:
        """Run the states of the top file and return the running dictionary, or the list of errors."""
        run = self._contexts.run_context(options)
        if (high := self._cached(run, options)) is not None:
            return pillar_errors(run, options) or self.high(high, options)
        try:
            matches = self._matches(run)
        except SlsError as error:
            if not any(fault.sls for fault in error.faults):
                # The top file renders, but its content is malformed.
                return not_compiled(run.ctx, error.lines())
            return nothing(run.ctx, f"Unable to render top file: {error}")
        if not matches:
            return nothing(run.ctx, "No Top file or master_tops data matches found. Please see master log for details.")
        return self._apply(run, _allowed(matches, options), options, empty="No states found for this minion")

    def sls(self, mods: Sequence[str], options: Mapping[str, object]) -> Running | list[str]:
        """Run these SLS references and return the running dictionary, or the list of errors.

        With the option ``only_id`` run that ID and its requisites only. Raises InvocationError if there is no such ID.
        """
        run = self._contexts.run_context(options)
        if (high := self._cached(run, options)) is not None:
            return pillar_errors(run, options) or self.high(high, options)
        return self._apply(run, {run.ctx.saltenv: list(mods)}, options)

    def template(self, path: str, options: Mapping[str, object]) -> Running | list[str]:
        """Run an SLS file of the minion's own file system, and return the running dictionary or the list of errors."""
        run = self._contexts.run_context(options)
        file = Path(path if path.endswith(".sls") else f"{path}.sls")
        try:
            text = file.read_text("utf-8")
        except (OSError, ValueError) as error:
            reason = "" if isinstance(error, FileNotFoundError) else f"\n    {error}"
            missing = f"Specified SLS {path.removesuffix('.sls')}.sls on local filesystem cannot be found.{reason}"
            return not_compiled(run.ctx, [missing])
        run.tree.add(SlsSource(str(file), run.ctx.saltenv, file.name, str(file), text, str(file)))
        return self._apply(run, {run.ctx.saltenv: [str(file)]}, options)

    def template_str(self, text: str, options: Mapping[str, object]) -> Running | list[str]:
        """Run an SLS file given as text, and return the running dictionary or the list of errors."""
        run = self._contexts.run_context(options)
        name, saltenv = run_checks.NAME, run.ctx.saltenv
        run.tree.add(SlsSource(name, saltenv, "", name, text, name))
        try:
            data = run.tree.data(name, saltenv)
            errors = run_checks.faults(data)
        except SlsError as error:
            errors = [line.replace(f"SLS {name}", f"Template {name}") for line in error.lines()]
        if errors:
            return not_compiled(run.ctx, errors)
        return self._run(run, self._compiled_high(run, run_checks.high_of(data), options), options)

    def high(self, data: Mapping[str, object], options: Mapping[str, object]) -> Running | list[str]:
        """Run literal high data, and return the running dictionary or the list of errors."""
        run = self._contexts.run_context(options)
        return self._run(run, self._compiled_high(run, dict(data), options), options)

    def low(self, data: Mapping[str, object], options: Mapping[str, object]) -> RunningEntry | list[str]:
        """Run one low chunk and return its entry of the running dictionary, or the list of error texts.

        With the option ``tagged``, return {tag: entry} instead.
        """
        run = self._contexts.run_context(options)
        if errors := faults_of_chunk(data, self._loader, run.ctx):
            return not_compiled(run.ctx, errors)
        low: Low = {"__id__": data["name"], **data}
        self._contexts.secrets.learn_for_logs(low)
        entry = engine.single(low, run.ctx, self._loader, self._engine_options(run, options))
        run.ctx.scratch["retcode"] = STATE_FAILED if entry["result"] is False else 0
        return {redaction.shown_tag(low): entry} if options.get("tagged") else entry

    def show_top(self, options: Mapping[str, object]) -> dict[str, list[str]] | list[str]:
        """Map of saltenv to this minion's SLS references; the list of errors if the top file or pillar has errors."""
        run = self._contexts.run_context(options)
        if errors := pillar_errors(run, options):
            return errors
        try:
            return self._matches(run)
        except SlsError as error:
            return error.lines()

    def show_high(self, mods: Sequence[str] | None, options: Mapping[str, object]) -> High | list[str]:
        """Return the high data of the top file (``mods`` None) or of SLS references, or the list of errors."""
        make = _verified if options.get("verify") else _gathered
        compiled = self._shown(mods, options, make)
        return compiled if isinstance(compiled, list) else compiled.high

    def show_low(self, mods: Sequence[str] | None, options: Mapping[str, object]) -> list[Low] | list[str]:
        """Return the low chunks of the top file (``mods`` None) or of SLS references in run order, or the list of error
        texts.
        """
        compiled = self._shown(mods, options, lambda run, matches: self._switched(run, self._compiled(run, matches))[0])
        return compiled if isinstance(compiled, list) else list(compiled.chunks)

    def show_usage(self, options: Mapping[str, object]) -> dict[str, dict[str, object]] | list[str]:
        """Map of saltenv to a map with its ``used`` and ``unused`` SLS references (lists), by the top file of this
        minion, and with their numbers ``count_all``, ``count_used`` and ``count_unused``. Return the list of error
        texts if the top file has errors.
        """
        run = self._contexts.run_context(options)
        try:
            return _usage(run.ctx.files, self._matches(run))
        except SlsError as error:
            return error.lines()

    def clear_cache(self) -> list[str]:
        """Delete the files of cached high data and return their names. Raises CommandError if a file cannot be deleted."""
        return HighCache(str(self._contexts.run_context({}).opts.get("cachedir") or "")).clear()

    def run_parts(self, options: Mapping[str, object]) -> RunParts:
        """Compile the pillar and return the RunParts of a state run with these options. No SLS file is rendered, and
        no state runs.
        """
        run = self._contexts.run_context(options)
        return RunParts(
            run,
            self._loader,
            self._engine_options(run, options),
            lambda: self._matches(run),
            lambda envs: self._fetch_modules(run, envs, options),
            lambda graph, high: self._run(run, Compiled(high, graph.chunks, (), graph), options),
        )

    def _shown(
        self,
        mods: Sequence[str] | None,
        options: Mapping[str, object],
        make: Callable[[RunContext, Mapping[str, Sequence[str]]], Compiled],
    ) -> Compiled | list[str]:
        run = self._contexts.run_context(options)
        if errors := pillar_errors(run, options):
            return errors
        try:
            matches = self._matches(run) if mods is None else {run.ctx.saltenv: list(mods)}
            compiled = make(run, matches)
        except SlsError as error:
            return error.lines()
        return [str(fault) for fault in compiled.faults] if compiled.faults else compiled

    def _matches(self, run: RunContext) -> dict[str, list[str]]:
        """Map of saltenv to the SLS references that the top file and master_tops assign. Raise SlsError if a top file
        has errors.
        """
        matches = {env: list(refs) for env, refs in run.tree.top().items()}
        for env, refs in run.ctx.minion.master_tops().items():
            own = matches.get(env, [])
            first, second = (refs, own) if run.opts.get("master_tops_first") else (own, refs)
            matches[env] = [*first, *(ref for ref in second if ref not in first)]
        return {env: refs for env, refs in matches.items() if refs}

    def _cached(self, run: RunContext, options: Mapping[str, object]) -> High | None:
        """Return the high data of an earlier run if the option ``cache`` is set; None if it is not set or nothing is cached."""
        return _cache(run).load(_cache_name(options)) if options.get("cache") else None

    def _compiled_high(self, run: RunContext, high: High, options: Mapping[str, object]) -> Compiled:
        return compile_high(
            high,
            run.opts,
            run.tree,
            reacts=partial(self._reacts, run.ctx),
            excludes=_excluded(options.get("exclude")),
        )

    def _apply(
        self, run: RunContext, matches: Mapping[str, Sequence[str]], options: Mapping[str, object], *, empty: str = ""
    ) -> Running | list[str]:
        """Compile and run SLS files; return the running dictionary or the list of errors.

        ``empty`` is the error if the SLS files hold no ID; "" allows that.
        """
        if errors := pillar_errors(run, options):
            return errors
        run = self._fetch_modules(run, list(matches), options)
        try:
            compiled = self._compiled(run, matches, _excluded(options.get("exclude")))
        except SlsError as error:
            return not_compiled(run.ctx, error.lines())
        if empty and not (compiled.high or compiled.faults):
            return nothing(run.ctx, empty)
        if not compiled.faults:
            _cache(run).store(_cache_name(options), compiled.high)
        return self._run(run, compiled, options)

    def _run(self, run: RunContext, compiled: Compiled, options: Mapping[str, object]) -> Running | list[str]:
        compiled, left_out = self._switched(run, compiled)
        if compiled.faults:
            return not_compiled(run.ctx, [str(fault) for fault in compiled.faults])
        self._contexts.secrets.learn_for_logs(compiled.chunks)
        if only := options.get("only_id"):
            must_have(str(only), compiled, run.ctx)
        asked = self._engine_options(run, options)
        gate = _gate(run, asked.jid)
        try:
            running = engine.run(
                compiled.graph, run.ctx, self._loader, replace(asked, may_go_on=gate.may_go_on) if gate else asked
            )
        finally:
            if gate:
                gate.end()
        for number, name in enumerate(left_out, len(running)):
            running[name] = {**left_out[name], "__run_num__": number}
        # Functions that states call may have set the exit code.
        run.ctx.scratch["retcode"] = STATE_FAILED if failed(running, compiled.high) else 0
        return redaction.shown_running(running, compiled.graph.chunks)

    def _switched(self, run: RunContext, compiled: Compiled) -> tuple[Compiled, Running]:
        """Return (compiled run without the states that ``state.disable`` disabled, {tag: failed entry} of those states)."""
        switched_off = disabled_states.rows(run.ctx.grains.get(disabled_states.GRAIN))
        if not switched_off or compiled.faults:
            return compiled, {}
        kept, left_out = disabled_states.split(compiled.chunks, switched_off)
        if not left_out:
            return compiled, {}
        return compile_chunks(kept, reacts=partial(self._reacts, run.ctx))._replace(high=compiled.high), left_out

    def _engine_options(self, run: RunContext, options: Mapping[str, object]) -> engine.EngineOptions:
        only = options.get("only_id")
        jid = self._contexts.jid()
        aggregate = run.opts.get("state_aggregate", False)
        return engine.EngineOptions(
            failhard=bool(options.get("failhard", run.opts.get("failhard", False))),
            aggregate=aggregate if isinstance(aggregate, bool | list | tuple) else False,
            max_parallel=to_int(run.opts.get("state_max_parallel") or 0),
            events=bool(jid) and bool(options.get("state_events", run.opts.get("state_events", False))),
            jid=jid,
            wanted=(lambda low: bool(low["__id__"] == only)) if only else None,
            locate=lambda low, argument: run.tree.locate(*_path(low), *([argument] if argument else [])),
            reload=lambda ctx, wanted: self._contexts.reloaded(ctx, wanted, options),
        )

    def _fetch_modules(self, run: RunContext, envs: Sequence[str], options: Mapping[str, object]) -> RunContext:
        """Fetch users' modules of these environments, and return the context of the run.

        Skipped if the state tree has no modules and none were fetched before. If grain modules changed, the run gets a
        new context with the new grains and a pillar compiled from them.
        """
        if not run.opts.get("autoload_dynamic_modules", True) or not run.opts.get("extension_modules"):
            return run
        here = self._loader.extension_dir is not None and self._loader.extension_dir.is_dir()
        if not here and not any(run.ctx.files.paths(env, "_") for env in envs):
            return run
        fetched = run.ctx.call("saltutil.sync_all", saltenv=list(envs), refresh=False)
        if not any(fetched.values()):
            return run
        self._loader.refresh()
        if not fetched["grains"]:
            return run
        self._contexts.reloaded(run.ctx, frozenset({"reload_grains"}), options)
        run.ctx.minion.refresh_pillar()
        return self._contexts.run_context(options)

    def _compiled(
        self, run: RunContext, matches: Mapping[str, Sequence[str]], excludes: Sequence[object] = ()
    ) -> Compiled:
        reacts = partial(self._reacts, run.ctx)
        return compile_sls(run.tree, matches, run.opts, reacts=reacts, excludes=excludes)

    def _reacts(self, ctx: Context, state: str) -> bool:
        return self._loader.has("states", f"{state}.mod_watch", ctx)


def _path(low: Low) -> tuple[str, ...]:
    """Return SLS reference, saltenv, ID and state module of a chunk: the arguments of ``SlsTree.locate``."""
    return str(low.get("__sls__", "")), str(low.get("__env__", "base")), str(low["__id__"]), str(low["state"])


def _excluded(exclude: object) -> list[object]:
    """Return the argument ``exclude`` as a list of SLS names, ``{sls: NAME}`` and ``{id: ID}``."""
    listed = exclude.split(",") if isinstance(exclude, str) else exclude
    if not isinstance(listed, list | tuple):
        return []
    return [item if isinstance(item, Mapping) else str(item).strip() for item in listed]


def _gathered(run: RunContext, matches: Mapping[str, Sequence[str]]) -> Compiled:
    return gather_sls(run.tree, matches, run.opts)


def _verified(run: RunContext, matches: Mapping[str, Sequence[str]]) -> Compiled:

    compiled = _gathered(run, matches)
    high = {name: body for name, body in compiled.high.items() if name not in ("__extend__", "__exclude__")}
    checked = shape.check(Draft(opts=run.opts, tree=run.tree, high=high))
    return compiled._replace(faults=(*compiled.faults, *checked.faults))


def _allowed(matches: Mapping[str, Sequence[str]], options: Mapping[str, object]) -> dict[str, list[str]]:
    """Return {saltenv: SLS references} limited to those that the argument ``whitelist`` names; all without a whitelist."""
    whitelist = options.get("whitelist")
    if not whitelist:
        return {env: list(refs) for env, refs in matches.items()}
    allowed = whitelist.split(",") if isinstance(whitelist, str) else whitelist
    if not isinstance(allowed, list | tuple):
        raise InvocationError(f"'whitelist' must be a list of SLS, not {whitelist!r}")
    limited = {env: [ref for ref in refs if ref in allowed] for env, refs in matches.items()}
    return {env: refs for env, refs in limited.items() if refs}


def _cache(run: RunContext) -> HighCache:
    return HighCache(str(run.opts.get("cachedir") or ""))


def _cache_name(options: Mapping[str, object]) -> str:
    return str(options.get("cache_name") or "highstate")


def _gate(run: RunContext, jid: str) -> pauses.Gate | None:

    if run.ctx.master is not None:
        return pauses.Gate(pauses.MasterOrders(run.ctx.master))
    cachedir = run.opts.get("cachedir")
    return pauses.Gate(pauses.FileOrders(pauses.directory(str(cachedir)) / jid)) if jid and cachedir else None


def _usage(files: Files, matches: Mapping[str, Sequence[str]]) -> dict[str, dict[str, object]]:
    """Map of saltenv to a map with its ``used`` and ``unused`` SLS references (lists), and with their numbers
    ``count_all``, ``count_used`` and ``count_unused``. ``matches`` maps saltenv to the used SLS references.

    A file that no top file names is unused, even if another file includes it.
    """
    return {env: _usage_of_env(_references(files.paths(env)), set(matches.get(env, ()))) for env in files.envs()}


def _usage_of_env(known: Sequence[str], chosen: set[str]) -> dict[str, object]:
    used = [ref for ref in known if ref in chosen]
    unused = [ref for ref in known if ref not in chosen]
    return {
        "used": used,
        "unused": unused,
        "count_all": len(known),
        "count_used": len(used),
        "count_unused": len(unused),
    }


def _references(paths: Sequence[str]) -> list[str]:
    stems = {path.removesuffix(".sls") for path in paths if path.endswith(".sls")}
    return sorted({stem.removesuffix("/init").replace("/", ".") for stem in stems})


#: Ending of the files of cached high data, as in Salt.
_SUFFIX = ".cache.p"


class HighCache:
    """Cache of one minion's high data, in files ``<cachedir>/NAME.cache.p`` (argument ``cache=True`` of
    ``state.apply``).

    Without a ``cachedir`` it stores nothing.
    """

    def __init__(self, cachedir: str) -> None:
        self._directory = Path(cachedir) if cachedir else None

    def load(self, name: str) -> High | None:
        """Return the cached high data of an earlier state run; None if there is none under this name.

        Raises CommandError for a damaged file, InvocationError for a malformed name.
        """
        found = None if self._directory is None else data_files.load(self._place(self._directory, name))
        return found if isinstance(found, dict) else None

    def store(self, name: str, high: Mapping[str, object]) -> None:
        """Cache the high data of a state run under this name. A write error is only logged.

        Raises InvocationError for a malformed name.
        """
        if self._directory is None:
            return
        place = self._place(self._directory, name)
        try:
            data_files.store(place, high)
        except CommandError as error:
            log.info("The high data of this run is not cached: %s", error)

    def clear(self) -> list[str]:
        """Delete all cached high data and return the file names. Raises CommandError if a file cannot be deleted."""
        if self._directory is None:
            return []
        return [place.name for place in sorted(self._directory.glob(f"*{_SUFFIX}")) if data_files.remove(place)]

    def _place(self, directory: Path, name: str) -> Path:
        if not data_files.is_plain(name):
            raise InvocationError(f"cache_name must be a plain name of letters, digits, '.', '_' and '-', not '{name}'")
        return directory / f"{name}{_SUFFIX}"
