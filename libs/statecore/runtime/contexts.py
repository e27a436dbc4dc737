"""Contexts of one minion's calls and state runs: ``Runtime`` and the state system build every ``Context`` here.

A context outside of a state run has the pillar in memory. A state run has a context of its own: pillar compiled anew,
options of the call, templates of the state tree.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from statecore.host.host import Host
from statecore.loader import Loader
from statecore.loader.find import DIRECTORIES
from statecore.loader.tables import Table, attached
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.lazy import LazyMap, deferred, lazy_module
from statecore.model.ports import (
    Events,
    Files,
    Jobs,
    ManagedHost,
    Master,
    MinionControl,
    StateSystem,
    Templates,
)
from statecore.model.values import merge
from statecore.runtime import grains_gathering
from statecore.runtime.masterless_ports import LocalMinion, Manager, NoEvents, NoJobs
from statecore.runtime.ports import (
    LoaderCatalog,
    LoaderStates,
    NoTemplates,
    RefreshingMinionControl,
    RunScratch,
)
from statecore.runtime.secret_pillar import HidingEvents, PillarSecrets
from statecore.sources.local_tree import LocalFiles

if TYPE_CHECKING:
    from statecore import render
    from statecore.engine import call as engine_call
    from statecore.render import yaml_cache
    from statecore.runtime import localconfig, master_data
else:
    # test.ping renders nothing and compiles no pillar: without these it takes half the time to start.
    render = lazy_module("statecore.render")
    engine_call = lazy_module("statecore.engine.call")
    yaml_cache = lazy_module("statecore.render.yaml_cache")
    localconfig = lazy_module("statecore.runtime.localconfig")
    master_data = lazy_module("statecore.runtime.master_data")

log = logging.getLogger(__name__)

#: Defaults of options that several modules read; every other option has its default where it is read.
DEFAULTS: Mapping[str, object] = {
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


class RunContext(NamedTuple):
    """Data of one state run: its Context, the state tree that it renders, and its options (those of the minion, with
    the options of the call merged over them).
    """

    ctx: Context
    tree: render.SlsTree
    opts: Mapping[str, object]


class Contexts:
    """Builds the Context objects in which the functions of one minion run. Holds the minion's options, grains, pillar
    and loader.
    """

    def __init__(
        self,
        opts: Mapping[str, object],
        make_state_system: Callable[[Contexts], StateSystem],
        *,
        files: Files,
        host: ManagedHost | None = None,
        grains: Mapping[str, object] | None = None,
        pillar: Mapping[str, object] | None = None,
        minion: MinionControl | None = None,
        events: Events | None = None,
        jobs: Jobs | None = None,
        extension_dir: Path | None = None,
        master: Master | None = None,
    ) -> None:
        """Store the services that functions use: files, host, event bus, jobs, master. A missing service is replaced
        by that of a minion without a master.

        ``make_state_system`` is called when a state function is first used. Grains and pillar that are not given are
        gathered and compiled when first read. A given pillar is not copied: it may grow while it is compiled.
        """
        self.opts: dict[str, object] = {**DEFAULTS, **opts}
        if extension_dir is None and self.opts.get("extension_modules"):
            extension_dir = Path(str(self.opts["extension_modules"]))
        if extension_dir is not None:
            self.opts["extension_modules"] = str(extension_dir)
        self.files = files
        self.host: ManagedHost = host if host is not None else host_of(self.opts)
        self.loader = Loader(extension_dir, _directories(self.opts), self.opts)
        self.catalog = LoaderCatalog(self)
        self._make_state_system = make_state_system
        self.state_system: StateSystem = deferred(lambda: make_state_system(self))
        self._minion: MinionControl = minion if minion is not None else LocalMinion()
        self._control = RefreshingMinionControl(self, self._minion)
        #: Values of pillar that nobody is shown.
        self.secrets = PillarSecrets(self.opts)
        self._events: Events = HidingEvents(events if events is not None else NoEvents(), self.secrets)
        self._jobs: Jobs = jobs if jobs is not None else NoJobs()
        self._master = master
        self._grains: Mapping[str, object] | None = dict(grains) if grains is not None else None
        self._pillar: Mapping[str, object] | None = pillar
        if pillar:
            self.secrets.learn(pillar)
        self._scratch: dict[str, object] = {}
        self._base: Context | None = None

    @property
    def grains(self) -> Mapping[str, object]:
        """Grains of the minion, gathered on first use."""
        if self._grains is None:
            self._grains = grains_gathering.gather(self.host, self.opts, self.loader, self._bare)
        return self._grains

    @property
    def pillar(self) -> Mapping[str, object]:
        """The minion's pillar in memory, compiled on first use. Errors of the compilation are listed under ``_errors``."""
        if self._pillar is None:
            self._pillar = self._compiled_pillar({})
        return self._pillar

    @property
    def known_pillar(self) -> Mapping[str, object]:
        """The minion's pillar in memory; {} while no pillar has been compiled."""
        return self._pillar or {}

    @property
    def context(self) -> Context:
        """The Context for functions that are called outside of a state run."""
        if self._base is None:
            self._base = self._with_tree(self.opts, LazyMap(lambda: self.pillar), test=bool(self.opts.get("test")))[0]
        return self._base

    def run_context(self, options: Mapping[str, object]) -> RunContext:
        """Return the context of a new state run with the options of its call (saltenv, pillar, test, localconfig, ...).

        Raises CommandError when the master does not answer, InvocationError for a ``localconfig`` file that cannot be
        used.
        """
        if (path := options.get("localconfig")) is not None:
            others = {key: value for key, value in options.items() if key != "localconfig"}
            return self._with_options(localconfig.read_localconfig(str(path))).run_context(others)
        if options.get("pillarenv", "") is None and self.opts.get("pillarenv"):
            # pillarenv=None means all environments. Pillar compilers read a missing environment so: take the option away.
            others = {key: value for key, value in options.items() if key != "pillarenv"}
            return self._with_options({"pillarenv": None}).run_context(others)
        overrides = {key: options[key] for key in ("saltenv", "state_top") if options.get(key) is not None}
        if "pillarenv" in options:
            overrides["pillarenv"] = options["pillarenv"]
        opts = {**self._opts_of_run(), **overrides}
        test = bool(options.get("test", opts.get("test", False)))
        opts["test"] = test
        if options.get("mock"):
            opts["mocked"] = True
        pillar = self._pillar_of_run(options)
        ctx, tree = self._with_tree(opts, pillar, test=test, scratch=RunScratch(self._scratch))
        return RunContext(ctx, tree, opts)

    def reloaded(self, ctx: Context, wanted: frozenset[str], options: Mapping[str, object]) -> Context:
        """Return the context of a state run with grains, pillar or modules read again.

        ``wanted`` holds the state's arguments that ask for it: "reload_grains", "reload_pillar", "reload_modules".
        ``options`` are those of the run: pillar given in the call is merged over the new pillar.
        """
        self.loader.refresh()
        if "reload_grains" in wanted:
            self._grains = None
        if "reload_pillar" in wanted:
            ctx = replace(ctx, pillar=self._compiled_pillar({"saltenv": ctx.saltenv, **options}))
        if wanted & {"reload_grains", "reload_pillar"}:
            # Templates of the run have to see the new grains and pillar too.
            other, _ = self._with_tree(ctx.opts, ctx.pillar, test=ctx.test, scratch=ctx.scratch)
            ctx = replace(ctx, grains=other.grains, templates=other.templates)
        return ctx

    def jid(self) -> str:
        """Return the JID of the job that runs in this process; "" when the process runs no job."""
        jobs = self._jobs.running()
        return next((str(job["jid"]) for job in jobs if int(job.get("pid", 0)) == os.getpid()), "")

    def forget(self, *, pillar: bool = False, grains: bool = False, modules: bool = False) -> None:
        """Drop the minion's pillar, grains or modules from memory; the next call reads them again.

        A call in progress keeps its grains and pillar.
        """
        if pillar:
            self._pillar = None
        if grains:
            self._grains = None
        if modules:
            self.loader.refresh()
        self._base = None

    def with_pillar(self, pillar: Mapping[str, object]) -> Contexts:
        """Return a new Contexts with the same options, files, host and grains, but with another pillar and without a
        master.
        """
        return Contexts(
            self.opts, self._make_state_system, files=self.files, host=self.host, grains=self.grains, pillar=pillar
        )

    def _with_options(self, opts: Mapping[str, object]) -> Contexts:
        """Return a copy of this Contexts for one state run, with ``opts`` merged over the minion's options."""
        grains = None if "grains" in opts else dict(self.grains)
        whole = {**self.opts, **opts}
        if isinstance(self._minion, LocalMinion):
            other = local_contexts(whole, self._make_state_system)
        else:
            other = Contexts(whole, self._make_state_system, files=self.files, host=self.host, minion=self._minion)
        other._grains = grains
        # The exit code and the modules' own memory belong to the call, not to the run.
        other._scratch, other._events, other._jobs = self._scratch, self._events, self._jobs
        other.secrets = self.secrets
        other._master = self._master
        return other

    def _opts_of_run(self) -> Mapping[str, object]:
        """Return the options of a state run: the minion's, with those that its master decides merged over them.

        Raises CommandError if the master does not answer, unless ``minion_pillar_cache`` is set.
        """
        if isinstance(self._minion, LocalMinion):
            return self.opts
        try:
            answer = self._minion.ask_master("_master_opts", {})
        except CommandError as error:
            if not self.opts.get("minion_pillar_cache"):
                raise
            log.warning("the state run has the minion's own options alone: %s", error)
            return self.opts
        return with_master_options(self.opts, answer)

    def _pillar_of_run(self, options: Mapping[str, object]) -> Mapping[str, object]:
        """Return the pillar of a state run, compiled anew.

        salt-call and a minion without a master use the pillar in memory, unless the call names a pillar or an environment.
        """
        asked = "pillarenv" in options or any(options.get(key) is not None for key in ("pillar", "saltenv"))
        if not asked and (self.opts.get("__cli") == "salt-call" or isinstance(self._minion, LocalMinion)):
            return self.pillar
        return self._compiled_pillar(options)

    def _compiled_pillar(self, options: Mapping[str, object]) -> dict[str, object]:
        saltenv = options.get("saltenv") or self.opts.get("saltenv")
        pillarenv = options["pillarenv"] if "pillarenv" in options else self.opts.get("pillarenv")
        if not pillarenv and "pillarenv" not in options and self.opts.get("pillarenv_from_saltenv"):
            pillarenv = saltenv
        override = options.get("pillar")
        return self._control.compile_pillar(
            str(saltenv) if saltenv is not None else None,
            str(pillarenv) if pillarenv is not None else None,
            override if isinstance(override, Mapping) else None,
        )

    def _with_tree(
        self,
        opts: Mapping[str, object],
        pillar: Mapping[str, object],
        *,
        test: bool,
        scratch: dict[str, object] | None = None,
    ) -> tuple[Context, render.SlsTree]:
        """Return (context with this pillar and these options, state tree whose templates call the context's functions).

        ``scratch`` is the map in which modules keep data during a state run (Salt's ``__context__``).
        """
        # whitelist_modules limits templates; modules may call every other module.
        named = opts.get("whitelist_modules") or ()
        only = frozenset(str(name) for name in named) if isinstance(named, Iterable) else frozenset()
        functions = Table(self.loader, "modules", only=only)
        renderers = Table(self.loader, "renderers")
        matchers = Table(self.loader, "matchers")
        tree = deferred(
            lambda: render.SlsTree(
                self.files,
                opts=opts,
                grains=self.grains,
                pillar=pillar,
                functions=functions,
                renderers=renderers,
                matchers=matchers,
                yaml_cache=yaml_cache.YamlCache(str(opts.get("cachedir") or "")),
                states=LoaderStates(self.loader, lambda: whole),
            )
        )
        templates: Templates = deferred(lambda: tree.templates)
        bare = replace(self._bare(self.grains), pillar=pillar, opts=opts, test=test, templates=templates)
        if scratch is not None:
            bare = replace(bare, scratch=scratch)
        ctx = replace(bare, saltenv=str(opts.get("saltenv") or "base"))
        whole = attached(ctx, self.loader, _finish, None if only else functions)
        functions.attach(whole)
        renderers.attach(whole)
        matchers.attach(whole)
        return whole, tree

    def _bare(self, grains: Mapping[str, object]) -> Context:
        """Return a Context without pillar and templates: enough to load modules and gather grains."""
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
            state_system=self.state_system,
            functions={},
            states={},
            scratch=self._scratch,
            master=self._master,
        )
        return attached(ctx, self.loader, _finish)


def local_contexts(
    opts: Mapping[str, object],
    make_state_system: Callable[[Contexts], StateSystem],
    *,
    grains: Mapping[str, object] | None = None,
    pillar: Mapping[str, object] | None = None,
    jobs: Jobs | None = None,
    manage: Manager | None = None,
    events: Events | None = None,
    master: Master | None = None,
    files: Files | None = None,
    before_pillar: Callable[[], None] | None = None,
    refreshed: Callable[[str], bool] | None = None,
) -> Contexts:
    """Return the Contexts (it builds each Context) of a minion without a master: files and pillar come from local
    directories.

    ``files`` replaces the option ``file_roots``. ``pillar`` replaces the pillar directories. ``before_pillar`` is
    called before each compilation of pillar. ``manage`` sends requests about schedule and beacons to the minion that
    runs on this host. ``refreshed`` is called when a function asks to refresh pillar, modules or grains.
    """
    whole = {**DEFAULTS, "file_client": "local", **opts}

    def compiled_pillar(
        saltenv: str | None,
        pillarenv: str | None,
        override: Mapping[str, object] | None,
        on_demand: Mapping[str, object] | None,
    ) -> dict[str, object]:
        if pillar is not None:
            return merge(pillar, override or {})
        if before_pillar is not None:
            before_pillar()
        # Pillar files may call modules. Those see the pillar as far as it is compiled.
        live: dict[str, object] = {}
        bare = contexts.with_pillar(live)
        request = master_data.MinionDataRequest(str(whole["id"]), saltenv, pillarenv, override, on_demand)
        return master_data.as_data(master_data.pillar_of(bare.context, bare.loader, request, live))

    def tops() -> dict[str, list[str]]:
        if not whole.get("master_tops"):
            return {}
        bare = contexts.with_pillar(contexts.pillar)
        return master_data.tops_of(bare.context, bare.loader, {**whole, "grains": contexts.grains})

    extension_dir = whole.get("extension_modules") or (
        Path(str(whole["cachedir"])) / "extmods" if whole.get("cachedir") else None
    )
    contexts = Contexts(
        whole,
        make_state_system,
        files=files or LocalFiles.of(whole),
        grains=grains,
        minion=LocalMinion(compiled_pillar, tops, manage, refreshed),
        jobs=jobs,
        events=events,
        master=master,
        extension_dir=Path(str(extension_dir)) if extension_dir else None,
    )
    return contexts


def host_of(opts: Mapping[str, object]) -> Host:
    """Return the managed host that the options ``host_root``, ``host_pid`` and ``host_capabilities`` describe."""
    keeps = opts.get("host_capabilities")
    return Host(
        str(opts.get("host_root") or "/"),
        host_pid=bool(opts.get("host_pid")),
        keeps=[str(name) for name in keeps] if isinstance(keeps, list) else (),
    )


def _finish(ctx: Context, full: str, returned: object, arguments: Mapping[str, object]) -> object:
    return engine_call.finish(ctx, full, returned, arguments)


def _directories(opts: Mapping[str, object]) -> dict[str, list[Path]]:
    """Map of each kind of modules ("modules", "states" ...) to the directories of users' modules that an option such as
    ``module_dirs`` names.
    """
    named = {kind: opts.get(option) or () for kind, option in DIRECTORIES.items()}
    return {kind: [Path(str(each)) for each in paths] for kind, paths in named.items() if isinstance(paths, Iterable)}


#: Options of a state run for which the master's value replaces the minion's.
_MASTERS = (
    *("default_top", "env_order", "failhard", "jinja_env", "jinja_lstrip_blocks", "jinja_sls_env", "jinja_trim_blocks"),
    *("nodegroups", "renderer", "state_auto_order", "state_top", "state_top_saltenv", "top_file_merging_strategy"),
)

#: Options of a state run that are on if the minion or the master has them on.
_EITHERS = ("state_aggregate", "state_events")


def with_master_options(opts: Mapping[str, object], answer: object) -> dict[str, object]:
    """Return the minion's options for a state run, with the master's reply to the command ``_master_opts`` merged over them.

    A reply that is not a map changes nothing. Salt: salt/state.py, BaseHighState.__gen_opts

    Source: docs/protocol.md#master-options
    """
    if not isinstance(answer, Mapping):
        return dict(opts)
    given = {name: answer[name] for name in _MASTERS if name in answer}
    if isinstance(given.get("state_top"), str):
        given["state_top"] = given["state_top"].removeprefix("salt://").removeprefix("/")
    either = {name: opts.get(name) or answer.get(name) or False for name in _EITHERS}
    return {**opts, **given, **either}
