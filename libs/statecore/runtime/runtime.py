"""statecore with everything wired for one minion: what a minion's jobber, salt-call and embedders use."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from statecore.host.host import Host
from statecore.loader import Loader
from statecore.loader.find import DIRECTORIES
from statecore.loader.tables import Table, attached
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.lazy import Deferred
from statecore.model.ports import (
    Events,
    Files,
    Function,
    Jobs,
    ManagedHost,
    Master,
    MinionControl,
    StateSystem,
    Templates,
)
from statecore.model.values import merge
from statecore.runtime import grains_gathering, later
from statecore.runtime.calls import FunctionCall, Returned, returned
from statecore.runtime.local import LocalMinion, Manager, NoEvents, NoJobs
from statecore.runtime.master_options import heeded
from statecore.runtime.ports import Control, LazyPillar, LoaderCatalog, NoTemplates, RunScratch
from statecore.sources.local_tree import LocalFiles

if TYPE_CHECKING:
    from statecore.render import SlsTree
    from statecore.runtime.state_runs import RunContext, RunParts, StateRuns

log = logging.getLogger(__name__)

#: Options as they are where nobody sets them; the rest have their defaults where they are read.
DEFAULTS: Mapping[str, Any] = {
    "id": "local",
    "file_roots": {"base": ["/srv/salt"]},
    "pillar_roots": {"base": ["/srv/pillar"]},
    "saltenv": None,
    "pillarenv": None,
    "renderer": "jinja|yaml",
    "state_top": "top.sls",
    "hash_type": "sha256",
    "failhard": False,
    "test": False,
}


class Runtime:
    """Modules, states, grains and pillar of one minion, ready to be called."""

    def __init__(
        self,
        opts: Mapping[str, Any],
        *,
        files: Files,
        host: ManagedHost | None = None,
        grains: Mapping[str, Any] | None = None,
        pillar: Mapping[str, Any] | None = None,
        minion: MinionControl | None = None,
        events: Events | None = None,
        jobs: Jobs | None = None,
        extension_dir: Path | None = None,
        master: Master | None = None,
    ) -> None:
        """``grains`` and ``pillar`` are gathered and compiled when first needed, unless given.

        A pillar that is given is not copied: it may still be growing.
        """
        self.opts: dict[str, Any] = {**DEFAULTS, **opts}
        if extension_dir is None and self.opts.get("extension_modules"):
            extension_dir = Path(str(self.opts["extension_modules"]))
        if extension_dir is not None:
            self.opts["extension_modules"] = str(extension_dir)
        self.files = files
        self.host: ManagedHost = host if host is not None else _host(self.opts)
        self.loader = Loader(extension_dir, _directories(self.opts), self.opts)
        self.catalog = LoaderCatalog(self)
        self._minion = minion if minion is not None else LocalMinion()
        self._control = Control(self, self._minion)
        self._events = events if events is not None else NoEvents()
        self._jobs = jobs if jobs is not None else NoJobs()
        self._master = master
        self._given_grains = dict(grains) if grains is not None else None
        self._given_pillar: Mapping[str, Any] | None = pillar
        self._runs = cast(
            "StateRuns", Deferred(lambda: later.StateRuns(self.loader, self._stage, self._reloaded, self._jid))
        )
        self._scratch: dict[str, Any] = {}
        self._base: Context | None = None

    @property
    def grains(self) -> Mapping[str, Any]:
        """Facts about the minion."""
        if self._given_grains is None:
            self._given_grains = grains_gathering.gather(self.host, self.opts, self.loader, self._bare)
        return self._given_grains

    @property
    def pillar(self) -> Mapping[str, Any]:
        """The pillar in memory; errors of its compilation under ``_errors``."""
        if self._given_pillar is None:
            self._given_pillar = self._fresh_pillar({})
        return self._given_pillar

    @property
    def functions(self) -> Mapping[str, Function]:
        """ "module.function" -> callable; what ``salt`` is in templates."""
        return self.context.functions

    @property
    def context(self) -> Context:
        """The context of a call outside of a state run."""
        if self._base is None:
            self._base = self._wired(self.opts, LazyPillar(self), test=bool(self.opts.get("test")))[0]
        return self._base

    def call(
        self,
        fun: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        job: Mapping[str, Any] | None = None,
        *,
        trusted: bool = False,
    ) -> Returned:
        """Runs an execution function as a job: whatever happens comes back as a value, with Salt's exit code and words.

        ``kwargs`` may hold the publication's ``__pub_*``, which reach only functions that take any keyword; ours, but for
        ``__pub_id``, do without. ``job`` is the publication, where there is one: it may name executors (``module_executors``,
        ``executor_opts``). ``trusted``: the minion's own wish, which ``whitelist_modules`` does not touch.
        """
        # Pillar that nobody has compiled yet is not compiled to look for a blackout.
        restraints = (self._given_pillar or {}, self.grains)
        call = FunctionCall(fun, args, kwargs or {}, job)
        return returned(call, self.context, self.loader, self.catalog, restraints, trusted=trusted)

    def deliver(self, names: Sequence[str], ret: Mapping[str, Any]) -> None:
        """Hands a return, which carries the minion's ``id``, to returners. Failures are in the log."""
        if names:
            later.deliver(self.loader, self.context, names, ret)

    def bench(self, options: Mapping[str, Any]) -> RunParts:
        """The parts of a state run, for who looks at them one by one (``statecore.analysis.inspection``)."""
        return self._runs.bench(options)

    # What follows builds contexts.

    def _stage(self, options: Mapping[str, Any]) -> RunContext:
        """The stage of a state run: fresh pillar, the options' environment, test mode, top file, ``localconfig``."""
        if (path := options.get("localconfig")) is not None:
            others = {key: value for key, value in options.items() if key != "localconfig"}
            return self._configured(later.read_localconfig(str(path)))._stage(others)
        if options.get("pillarenv", "") is None and self.opts.get("pillarenv"):
            # Of all environments: to whoever compiles pillar here, None is as if nothing was said.
            others = {key: value for key, value in options.items() if key != "pillarenv"}
            return self._configured({"pillarenv": None})._stage(others)
        overrides = {key: options[key] for key in ("saltenv", "state_top") if options.get(key) is not None}
        if "pillarenv" in options:
            overrides["pillarenv"] = options["pillarenv"]
        opts = {**self._opts_of_run(), **overrides}
        test = bool(options.get("test", opts.get("test", False)))
        opts["test"] = test
        if options.get("mock"):
            opts["mocked"] = True
        ctx, tree = self._wired(opts, self._pillar_for_run(options), test=test, scratch=RunScratch(self._scratch))
        return later.RunContext(ctx, tree, opts)

    def _opts_of_run(self) -> Mapping[str, Any]:
        """The options of a state run: where there is a master, it has a say. Raises CommandError where it does not answer."""
        if isinstance(self._minion, LocalMinion):
            return self.opts
        try:
            answer = self._minion.ask_master("_master_opts", {})
        except CommandError as error:
            if not self.opts.get("minion_pillar_cache"):
                raise
            log.warning("the state run has the minion's own options alone: %s", error)
            return self.opts
        return heeded(self.opts, answer)

    def _configured(self, opts: Mapping[str, Any]) -> Runtime:
        """This minion with other options, for one run."""
        grains = None if "grains" in opts else dict(self.grains)
        whole = {**self.opts, **opts}
        if isinstance(self._minion, LocalMinion):
            other = local_runtime(whole)
        else:
            other = Runtime(whole, files=self.files, host=self.host, minion=self._minion)
        other._given_grains = grains
        # The exit code, and what modules remember, are the call's.
        other._scratch, other._events, other._jobs = self._scratch, self._events, self._jobs
        other._master = self._master
        return other

    def _pillar_for_run(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Compiled anew for each run, but once in a process that was started to run one function (salt-call)."""
        asked = "pillarenv" in options or any(options.get(key) is not None for key in ("pillar", "saltenv"))
        if not asked and (self.opts.get("__cli") == "salt-call" or isinstance(self._minion, LocalMinion)):
            return self.pillar
        return self._fresh_pillar(options)

    def _fresh_pillar(self, options: Mapping[str, Any]) -> dict[str, Any]:
        saltenv = options.get("saltenv") or self.opts.get("saltenv")
        pillarenv = options["pillarenv"] if "pillarenv" in options else self.opts.get("pillarenv")
        if not pillarenv and "pillarenv" not in options and self.opts.get("pillarenv_from_saltenv"):
            pillarenv = saltenv
        return self._minion.compile_pillar(saltenv, pillarenv, options.get("pillar"))

    def _wired(
        self, opts: Mapping[str, Any], pillar: Mapping[str, Any], *, test: bool, scratch: dict[str, Any] | None = None
    ) -> tuple[Context, SlsTree]:
        """A context, and the tree that renders with its functions. ``scratch``: a state run's own, else the call's."""
        # Templates see what whitelist_modules names alone; modules see all.
        named = opts.get("whitelist_modules") or ()
        functions = Table(self.loader, "modules", only=frozenset(named))
        renderers = Table(self.loader, "renderers")
        matchers = Table(self.loader, "matchers")
        made = Deferred(
            lambda: later.SlsTree(
                self.files,
                opts=opts,
                grains=self.grains,
                pillar=pillar,
                functions=functions,
                renderers=renderers,
                matchers=matchers,
                kept=later.KeptYaml(str(opts.get("cachedir") or "")),
            )
        )
        templates = cast(Templates, Deferred(lambda: made.templates))
        bare = replace(self._bare(self.grains), pillar=pillar, opts=opts, test=test, templates=templates)
        if scratch is not None:
            bare = replace(bare, scratch=scratch)
        ctx = replace(bare, saltenv=opts.get("saltenv") or "base")
        whole = attached(ctx, self.loader, _finish, None if named else functions)
        functions.attach(whole)
        renderers.attach(whole)
        matchers.attach(whole)
        return whole, cast("SlsTree", made)

    def _bare(self, grains: Mapping[str, Any]) -> Context:
        """A context without pillar and templates, enough to load modules and gather grains."""
        ctx = Context(
            host=self.host,
            grains=grains,
            pillar={},
            opts=self.opts,
            files=self.files,
            templates=NoTemplates(),
            events=self._events,
            jobs=self._jobs,
            minion=self._control,
            catalog=self.catalog,
            state_system=cast(StateSystem, self._runs),
            functions={},
            states={},
            scratch=self._scratch,
            master=self._master,
        )
        return attached(ctx, self.loader, _finish)

    def _reloaded(self, ctx: Context, wanted: frozenset[str], options: Mapping[str, Any]) -> Context:
        """The context with grains, pillar or modules read anew (``reload_grains`` and its kin of a state).

        ``options``: those of the run, whose pillar stays above that of the tree.
        """
        self.loader.refresh()
        if "reload_grains" in wanted:
            self._given_grains = None
        if "reload_pillar" in wanted:
            ctx = replace(ctx, pillar=self._fresh_pillar({"saltenv": ctx.saltenv, **options}))
        if wanted & {"reload_grains", "reload_pillar"}:
            # Files are rendered with what was read, too.
            other, _ = self._wired(ctx.opts, ctx.pillar, test=ctx.test, scratch=ctx.scratch)
            ctx = replace(ctx, grains=other.grains, templates=other.templates)
        return ctx

    def _jid(self) -> str:
        """The id of the job that runs in this process, "" when it is none."""
        jobs = self._jobs.running()
        return next((str(job["jid"]) for job in jobs if int(job.get("pid", 0)) == os.getpid()), "")

    def forget(self, *, pillar: bool = False, grains: bool = False, modules: bool = False) -> None:
        """The next call sees these anew. A call in progress keeps what it has, but for modules."""
        if pillar:
            self._given_pillar = None
        if grains:
            self._given_grains = None
        if modules:
            self.loader.refresh()
        self._base = None

    def close(self) -> None:
        """Ends its use. It holds what holds it, which only a collection would notice."""
        vars(self).clear()


def _finish(ctx: Context, full: str, returned: Any, arguments: Mapping[str, Any]) -> Any:
    return later.finish(ctx, full, returned, arguments)


def _directories(opts: Mapping[str, Any]) -> dict[str, list[Path]]:
    """Kind of modules -> directories that an option names for it."""
    return {kind: [Path(str(each)) for each in opts.get(option) or ()] for kind, option in DIRECTORIES.items()}


def gather_grains(host: ManagedHost, opts: Mapping[str, Any]) -> dict[str, Any]:
    """Grains of a host: built-in facts, static grains file, the option ``grains``, users' grain modules."""
    return dict(Runtime(opts, files=LocalFiles({}), host=host, pillar={}).grains)


def local_runtime(
    opts: Mapping[str, Any],
    *,
    grains: Mapping[str, Any] | None = None,
    pillar: Mapping[str, Any] | None = None,
    jobs: Jobs | None = None,
    manage: Manager | None = None,
    events: Events | None = None,
    master: Master | None = None,
    files: Files | None = None,
    fetches: bool = False,
    refreshed: Callable[[str], bool] | None = None,
) -> Runtime:
    """A minion without a master (salt-call --local): files and pillar from local roots.

    ``grains`` and ``pillar`` stand for those of the host and of the pillar roots: some other minion's.
    ``jobs`` are those that run on this host meanwhile; None: nobody knows. ``manage`` asks the minion that runs beside.
    ``events`` and ``master``: of an orchestration, which runs where a master is. ``files``: in place of ``file_roots``.
    ``fetches``: files and pillar may come from Git repositories, which nobody else fetches here. ``refreshed``: as of
    ``LocalMinion``.
    """
    whole = {**DEFAULTS, "file_client": "local", **opts}
    host = _host(whole)
    own = later.OwnFetches(whole, load_user_backend) if fetches and _of_git(whole) else None

    def compiled(
        saltenv: str | None,
        pillarenv: str | None,
        override: Mapping[str, Any] | None,
        on_demand: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        if pillar is not None:
            return dict(merge(dict(pillar), dict(override or {})))
        if own is not None:
            own.for_pillar()
        # Pillar files may call modules, which see the pillar that there is so far.
        live: dict[str, Any] = {}
        bare = _bare_runtime(runtime, live)
        wanted = later.MinionDataRequest(str(whole["id"]), saltenv, pillarenv, override, on_demand)
        return later.as_data(later.pillar_of(bare.context, bare.loader, wanted, live))

    def tops() -> dict[str, list[str]]:
        if not whole.get("master_tops"):
            return {}
        bare = _bare_runtime(runtime, runtime.pillar)
        return later.tops_of(bare.context, bare.loader, {**whole, "grains": runtime.grains})

    extension_dir = whole.get("extension_modules") or (
        Path(str(whole["cachedir"])) / "extmods" if whole.get("cachedir") else None
    )
    runtime = Runtime(
        whole,
        files=files or (own.files() if own else LocalFiles.of(whole)),
        host=host,
        grains=grains,
        minion=LocalMinion(compiled, tops, manage, refreshed),
        jobs=jobs,
        events=events,
        master=master,
        extension_dir=Path(str(extension_dir)) if extension_dir else None,
    )
    return runtime


@dataclass(frozen=True)
class UserBackend:
    """Implements ``sources.fileserver.users.LoadedBackend`` by the loader."""

    path: Path
    functions: Mapping[str, Function]


def load_user_backend(name: str, opts: Mapping[str, Any]) -> UserBackend:
    """Load a user's fileserver backend with a context of its own. Raises NotAvailable with the reason."""
    runtime = Runtime(opts, files=LocalFiles({}), grains=opts.get("grains") or {}, pillar={})
    served = runtime.loader.serve("fileserver", name, runtime.context)
    functions = {function: served.bound(function, runtime.context) for function in served.functions}
    return UserBackend(served.source.path, functions)


def _of_git(opts: Mapping[str, Any]) -> bool:
    """Whether anything but directories is served, or an external pillar counts: what knows of it is loaded then."""
    return bool(opts.get("ext_pillar")) or list(opts.get("fileserver_backend") or ["roots"]) != ["roots"]


def _bare_runtime(runtime: Runtime, pillar: Mapping[str, Any]) -> Runtime:
    """A runtime on the same files and grains with a pillar of its own."""
    return Runtime(runtime.opts, files=runtime.files, host=runtime.host, grains=runtime.grains, pillar=pillar)


def _host(opts: Mapping[str, Any]) -> Host:
    return Host(str(opts.get("host_root") or "/"), host_pid=bool(opts.get("host_pid")))
