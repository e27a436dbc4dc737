"""``Runtime``: the entry point to statecore for one minion. Jobbers, salt-call and embedding programs use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from statecore.model.context import Context
from statecore.model.lazy import lazy_module
from statecore.model.ports import (
    Events,
    Files,
    Function,
    Jobs,
    ManagedHost,
    Master,
    MinionControl,
    StateSystem,
)
from statecore.runtime import return_delivery
from statecore.runtime.calls import FunctionCall, Returned, returned
from statecore.runtime.contexts import DEFAULTS, Contexts, local_contexts
from statecore.runtime.masterless_ports import Manager
from statecore.sources.local_tree import LocalFiles

if TYPE_CHECKING:
    from statecore.runtime.state_runs import state_system
    from statecore.sources.fileserver import masterless
else:
    # Needed for state runs, and for minions without a master that serve Git repositories.
    state_system = lazy_module("statecore.runtime.state_runs.state_system")
    masterless = lazy_module("statecore.sources.fileserver.masterless")


class Runtime:
    """The modules, states, grains and pillar of one minion, ready to call functions and to run states."""

    def __init__(
        self,
        opts: Mapping[str, object],
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
        """Store the services that this minion uses: files, host, event bus, jobs, master. A missing service is replaced by that of
        a minion without a master.

        Grains and pillar that are not given are gathered and compiled when first read. A given pillar is not copied: it
        may grow while it is compiled.
        """
        self._use(
            Contexts(
                opts,
                _state_system,
                files=files,
                host=host,
                grains=grains,
                pillar=pillar,
                minion=minion,
                events=events,
                jobs=jobs,
                extension_dir=extension_dir,
                master=master,
            )
        )

    @classmethod
    def of(cls, contexts: Contexts) -> Runtime:
        """Return a Runtime that uses existing ``Contexts`` of a minion."""
        runtime = cls.__new__(cls)
        runtime._use(contexts)
        return runtime

    def _use(self, contexts: Contexts) -> None:
        self.contexts = contexts
        self.opts = contexts.opts
        self.files = contexts.files
        self.host = contexts.host
        self.loader = contexts.loader
        self.catalog = contexts.catalog

    @property
    def grains(self) -> Mapping[str, object]:
        """Grains of the minion, gathered on first use."""
        return self.contexts.grains

    @property
    def pillar(self) -> Mapping[str, object]:
        """The minion's pillar in memory, compiled on first use. Errors of the compilation are listed under ``_errors``."""
        return self.contexts.pillar

    @property
    def functions(self) -> Mapping[str, Function]:
        """Map of "module.function" to the callable execution function; templates have it as ``salt``."""
        return self.context.functions

    @property
    def context(self) -> Context:
        """The Context for functions that are called outside of a state run."""
        return self.contexts.context

    def call(
        self,
        fun: str,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        job: Mapping[str, object] | None = None,
        *,
        trusted: bool = False,
    ) -> Returned:
        """Run an execution function as a job and return its value, exit code and success. An error becomes the value,
        as Salt's error message; none is raised.

        ``kwargs`` may hold the publication's ``__pub_*`` arguments. They reach only functions that take any keyword;
        built-in functions get ``__pub_id`` alone. ``job`` is the publication, if there is one: it may name executors
        (``module_executors``, ``executor_opts``). ``trusted``: the minion itself calls, so ``whitelist_modules`` does
        not apply. Secret values of pillar are hidden in the value.
        """
        # A blackout is looked up in pillar that is in memory: compiling pillar for it would slow every call.
        restraints = (self.contexts.known_pillar, self.grains)
        call = FunctionCall(fun, args, kwargs or {}, job)
        self.contexts.secrets.learn_for_logs((args, call.kwargs))
        found = returned(call, self.context, self.loader, self.catalog, restraints, trusted=trusted)
        error = None if found.error is None else str(self.hidden(found.error))
        return found._replace(value=self.hidden(found.value), error=error)

    def hidden(self, value: object) -> object:
        """Return a value with ``**********`` in place of the secret values of the minion's pillar (``secret_pillar``)."""
        return self.contexts.secrets.hide(value)

    def deliver(self, names: Sequence[str], ret: Mapping[str, object]) -> None:
        """Pass a job's return to the returners ``names``. The return holds the minion's ``id``. Failures are logged."""
        if names:
            return_delivery.deliver(self.loader, self.context, names, ret)

    def run_parts(self, options: Mapping[str, object]) -> state_system.RunParts:
        """Return the ``RunParts`` of a state run with these options, for commands that analyse the run. The run itself
        is not started.
        """
        return state_system.StateRuns(self.contexts).run_parts(options)

    def forget(self, *, pillar: bool = False, grains: bool = False, modules: bool = False) -> None:
        """Drop the minion's pillar, grains or modules from memory; the next call reads them again.

        A call in progress keeps its grains and pillar.
        """
        self.contexts.forget(pillar=pillar, grains=grains, modules=modules)

    def close(self) -> None:
        """Free the memory of this Runtime at once. Without this call only the garbage collector would free it, later."""
        self.contexts.secrets.close()
        vars(self.contexts).clear()
        vars(self).clear()


def _state_system(contexts: Contexts) -> StateSystem:
    return state_system.StateRuns(contexts)


def gather_grains(host: ManagedHost, opts: Mapping[str, object]) -> dict[str, object]:
    """Return the grains of a host: built-in grains, users' grain modules, the static grains file, the option
    ``grains``.
    """
    return dict(Runtime(opts, files=LocalFiles({}), host=host, pillar={}).grains)


def local_runtime(
    opts: Mapping[str, object],
    *,
    grains: Mapping[str, object] | None = None,
    pillar: Mapping[str, object] | None = None,
    jobs: Jobs | None = None,
    manage: Manager | None = None,
    events: Events | None = None,
    master: Master | None = None,
    files: Files | None = None,
    fetches: bool = False,
    refreshed: Callable[[str], bool] | None = None,
) -> Runtime:
    """Return the Runtime of a minion without a master (salt-call --local): files and pillar come from local
    directories.

    ``grains`` and ``pillar`` replace those of the host and of ``pillar_roots``: those of another minion, for example.
    ``jobs`` lists the jobs that run on this host; None: no job is known. ``manage`` sends requests about schedule and
    beacons to the minion that runs on this host. ``events`` and ``master`` are those of an orchestration, which a
    master runs. ``files`` replaces ``file_roots``. ``fetches``: this process itself fetches Git repositories for files
    and pillar. ``refreshed`` is called with "pillar", "modules" or "grains" when a function asks to refresh it.
    """
    whole = {**DEFAULTS, "file_client": "local", **opts}
    own = masterless.MasterlessRepositories(whole, load_user_backend) if fetches and _needs_fetches(whole) else None
    contexts = local_contexts(
        whole,
        _state_system,
        grains=grains,
        pillar=pillar,
        jobs=jobs,
        manage=manage,
        events=events,
        master=master,
        files=files or (own.files() if own else None),
        before_pillar=own.for_pillar if own else None,
        refreshed=refreshed,
    )
    return Runtime.of(contexts)


def _needs_fetches(opts: Mapping[str, object]) -> bool:
    """Return True if the options may need Git: an external pillar, or a fileserver backend other than ``roots``."""
    backends = opts.get("fileserver_backend") or ["roots"]
    return bool(opts.get("ext_pillar")) or backends not in (["roots"], ("roots",))


@dataclass(frozen=True)
class UserBackend:
    """A user's own fileserver backend (``_fileserver``), loaded: the path of its module, and its functions by name."""

    path: Path
    functions: Mapping[str, Function]


def load_user_backend(name: str, opts: Mapping[str, object]) -> UserBackend:
    """Load a user's fileserver backend, with a Context of its own, and return it as a UserBackend. Raises NotAvailable
    with the reason if it cannot be loaded.
    """
    grains = opts.get("grains")
    runtime = Runtime(opts, files=LocalFiles({}), grains=grains if isinstance(grains, Mapping) else {}, pillar={})
    served = runtime.loader.module("fileserver", name, runtime.context)
    functions = {function: served.bound(function, runtime.context) for function in served.functions}
    return UserBackend(served.source.path, functions)
