"""What statecore needs from outside, as protocols. The minion, salt-call and tests each bring their own.

Nothing here does I/O. Implementations that need no network live beside this file (``host.py``, ``files.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from statecore.model.named_tuple import NamedTuple

Function = Callable[..., Any]


class CommandResult(NamedTuple):
    """A finished command on the managed host."""

    retcode: int
    stdout: str
    stderr: str
    pid: int
    timed_out: bool = False


class FileHash(NamedTuple):
    """Digest of a file's bytes, hex; the wire's ``{"hash_type", "hsum"}``."""

    hash_type: str
    hsum: str


class Files(Protocol):
    """The state tree behind ``salt://``: local roots, or the master's file server through a cache."""

    def envs(self) -> list[str]:
        """Environments that exist, "base" first when present."""
        ...

    def paths(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Relative paths of all files, sorted, that start with ``prefix`` (a string prefix)."""
        ...

    def dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Relative paths of all directories, sorted; empty ones too."""
        ...

    def empty_dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Relative paths of the directories that hold nothing."""
        ...

    def symlinks(self, saltenv: str = "base", prefix: str = "") -> dict[str, str]:
        """Relative path -> link target, for links inside the tree."""
        ...

    def hash(self, path: str, saltenv: str = "base") -> FileHash | None:
        """Digest of ``path`` (no ``salt://``), None when there is no such file."""
        ...

    def mode(self, path: str, saltenv: str = "base") -> int | None:
        """Permission bits of the source file (for ``mode: keep``), None when unknown."""
        ...

    def fetch(self, path: str, saltenv: str = "base") -> Path | None:
        """A local path that holds the file's bytes right now; None when there is no such file. Never to be written to."""
        ...

    def shown(self, fetched: Path) -> str:
        """How people are told of a file that was fetched: its path, or its URL where that path is only a copy."""
        ...


class Templates(Protocol):
    """Template engines for file contents (``template: jinja``)."""

    def render(self, text: str, engine: str, context: Mapping[str, Any], *, saltenv: str, source: str = "") -> str:
        """Rendered text. ``source`` is the salt:// or local path for errors and relative imports. Raises SlsError, located."""
        ...

    def data(self, text: str, pipe: str, names: Mapping[str, Any], *, saltenv: str, source: str = "") -> Any:
        """What comes out of the renderers that the text's first line names, else of ``pipe`` ("jinja|yaml"). Raises SlsError."""
        ...


class Events(Protocol):
    """Where events go: the master's bus, or nowhere."""

    def fire(self, tag: str, data: Mapping[str, Any]) -> bool:
        """True when the event was handed over."""
        ...


class Jobs(Protocol):
    """Jobs that run on this minion now (saltutil.running and its kin)."""

    def running(self) -> list[dict[str, Any]]:
        """Loads of running jobs, each with ``jid``, ``fun``, ``pid``."""
        ...

    def signal(self, jid: str, number: int) -> str:
        """Sends the signal to the job's process; Salt's sentence about what was done."""
        ...


class MinionControl(Protocol):
    """What a function may ask of the minion that runs it. In salt-call --local each is done in this process."""

    def refresh_pillar(self) -> bool:
        """The next job sees freshly compiled pillar."""
        ...

    def refresh_modules(self) -> bool:
        """The next job sees the modules that are on disk now."""
        ...

    def refresh_grains(self) -> bool:
        """The next job sees freshly gathered grains."""
        ...

    def compile_pillar(
        self,
        saltenv: str | None,
        pillarenv: str | None,
        override: Mapping[str, Any] | None,
        on_demand: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Pillar as the master (or the local roots) gives it now. Errors come under the key ``_errors``.

        ``on_demand``: one more external pillar, ``{name: arguments}``, of those that the master grants.
        """
        ...

    def master_tops(self) -> dict[str, list[str]]:
        """saltenv -> SLS references from the master's tops interface; {} where there is none."""
        ...

    def ask_master(self, cmd: str, fields: Mapping[str, Any], *, once: bool = False, master: str | None = None) -> Any:
        """The master's answer to a command of a minion (protocol section 7.1). Raises CommandError.

        ``once``: it is not sent again while no answer comes. ``master``: of several, the one with this address.
        """
        ...

    def manage(self, area: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Changes or shows what the running minion does by itself (``area``: schedule). The answer is a map by the area's verb.

        Raises CommandError where no minion runs, or it refuses.
        """
        ...


class MinionJob(NamedTuple):
    """A job for minions, as an orchestration asks for it."""

    tgt: Any
    fun: str
    tgt_type: str = "glob"
    arg: Sequence[Any] = ()
    kwarg: Mapping[str, Any] = MappingProxyType({})
    #: Returners, with commas.
    ret: str = ""
    #: What else travels with the publication: ret_config, ret_kwargs.
    passed_on: Mapping[str, Any] = MappingProxyType({})
    #: Seconds before minions are asked whether they still work; None: the master's own.
    timeout: float | None = None
    #: So many at a time, or a share of them ("25%").
    batch: str | None = None
    #: Only so many of those that answer, drawn at random.
    subset: int | None = None
    #: A batch ends with the first failure.
    failhard: bool = False
    #: Whether minions that do not return are told.
    expected: bool = True


class MasterCall(NamedTuple):
    """A runner or a wheel function."""

    fun: str
    arg: Sequence[Any] = ()
    kwarg: Mapping[str, Any] = MappingProxyType({})


class Master(Protocol):
    """What the states of an orchestration ask of the master that runs it."""

    @property
    def jid(self) -> str:
        """The id of the orchestration."""
        ...

    def ask(self, job: MinionJob, told: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Minion -> ``ret``, ``retcode``, ``jid``, ``out`` of its return; ``failed`` for one that was expected and is silent.

        ``told``: what the event ``salt/run/<jid>/args`` says besides the arguments. Raises CommandError where the master refuses.
        """
        ...

    def publish(self, job: MinionJob) -> dict[str, Any]:
        """``jid`` and ``minions`` of a job that nobody waits for; empty where no minion is meant. Raises as ``ask``."""
        ...

    def run(self, calls: Sequence[MasterCall]) -> list[dict[str, Any]]:
        """Runs runners, all at once: ``return``, ``success`` and ``jid`` of each, in order. A refusal is a return."""
        ...

    def wheel(self, call: MasterCall) -> dict[str, Any]:
        """Runs a wheel function: ``return`` and ``success``. A refusal is a return."""
        ...

    def events(self, prefix: str, seconds: float) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Tag and data of events whose tags begin so, as they come, until the time is over."""
        ...

    def orders(self) -> dict[str, dict[str, Any]]:
        """Return the orders given to this orchestration, as ``state_runs.pauses`` reads them: id -> order. Raises CommandError."""
        ...

    def end_orders(self) -> None:
        """The orchestration is over: what it was told is forgotten."""
        ...


class Catalog(Protocol):
    """What the loader knows, for sys.* and for error hints."""

    def names(self, kind: str = "modules") -> list[str]:
        """All "module.function" names of the kind (modules, states, grains, returners); of renderers their names."""
        ...

    def doc(self, name: str, kind: str = "modules") -> str | None:
        """The docstring, dedented."""
        ...

    def argspec(self, name: str, kind: str = "modules") -> dict[str, Any] | None:
        """Salt's argspec dict: args, varargs, kwargs, defaults (ctx left out)."""
        ...

    def function(self, name: str, kind: str) -> Function:
        """The function of a module of the kind, bound to a context outside of any run. Raises NotAvailable."""
        ...


class StateSystem(Protocol):
    """Render, compile, run: the verbs behind the ``state`` execution module."""

    def highstate(self, options: Mapping[str, Any]) -> dict[str, Any] | list[str]:
        """Running dictionary of the whole top file, or the list of errors."""
        ...

    def sls(self, mods: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any] | list[str]:
        """Running dictionary of these SLS references."""
        ...

    def template(self, path: str, options: Mapping[str, Any]) -> dict[str, Any] | list[str]:
        """Running dictionary of an SLS file of the minion's own."""
        ...

    def template_str(self, text: str, options: Mapping[str, Any]) -> dict[str, Any] | list[str]:
        """Running dictionary of a template that is given as text."""
        ...

    def high(self, data: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any] | list[str]:
        """Running dictionary of literal high data."""
        ...

    def low(self, data: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any] | list[str]:
        """The running entry of one low chunk."""
        ...

    def show_top(self, options: Mapping[str, Any]) -> dict[str, list[str]] | list[str]:
        """saltenv -> SLS references for this minion."""
        ...

    def show_high(self, mods: Sequence[str] | None, options: Mapping[str, Any]) -> dict[str, Any] | list[str]:
        """High data of the top file (None) or of SLS references; with ``verify`` its faults of shape in place of it."""
        ...

    def show_low(self, mods: Sequence[str] | None, options: Mapping[str, Any]) -> list[Any]:
        """Low chunks in order of evaluation, or the list of errors (strings)."""
        ...

    def show_usage(self, options: Mapping[str, Any]) -> dict[str, Any] | list[str]:
        """saltenv -> SLS references that this minion uses, and those that it does not."""
        ...

    def clear_cache(self) -> list[str]:
        """Forgets what was kept of earlier runs; names of the files."""
        ...

    def bench(self, options: Mapping[str, Any]) -> Any:
        """The parts of a run that has not begun (``statecore.runtime.state_runs.Bench``), for who looks at them more closely."""
        ...


class ManagedHost(Protocol):
    """The system that is managed: this machine (``/``) or a root mounted somewhere. Every path is the host's own."""

    @property
    def root(self) -> Path:
        """Where the host's ``/`` is in our own name space."""
        ...

    @property
    def mounted(self) -> bool:
        """True when root is not ``/``."""
        ...

    def path(self, path: str, *, follow: bool = True) -> Path:
        """Our path for the host's absolute ``path``. Symlinks (absolute, or with ``..``) are resolved inside the root and
        never leave it; the last component is followed only if ``follow``. Raises HostError on a loop or a relative path."""
        ...

    def run(
        self,
        cmd: str | Sequence[str],
        *,
        shell: str | None = None,
        cwd: str | None = None,
        runas: str | None = None,
        group: str | None = None,
        env: Mapping[str, str] | None = None,
        clean_env: bool = False,
        stdin: str | bytes | None = None,
        umask: int | None = None,
        timeout: float | None = None,
        merge_stderr: bool = False,
    ) -> CommandResult:
        """Runs on the host: plainly for ``/``, by chroot for a mounted root. A str runs through ``shell`` (default
        /bin/sh), a sequence as argv. Raises HostError when it cannot be started, saying why (no such program in the
        root, chroot needs root, no such user)."""
        ...

    def set_variable(self, name: str, value: str | None) -> None:
        """Commands of a mounted host get this variable from now on; None: no more. Those of this machine see the variables of
        this process."""
        ...

    def mount_table(self) -> str:
        """mountinfo(5) as a program of the host reads it: its own paths. Raises HostError."""
        ...

    def which(self, program: str) -> str | None:
        """The host's absolute path of an executable on the host's usual PATH."""
        ...

    def uid(self, user: str | int) -> int:
        """Numeric id by the host's /etc/passwd; numbers pass through. Raises HostError for an unknown name."""
        ...

    def gid(self, group: str | int) -> int:
        """Numeric id by the host's /etc/group."""
        ...

    def login_group(self, user: str | int) -> int:
        """Numeric id of the group that a user has at login. Raises HostError for an unknown user."""
        ...

    def user_name(self, uid: int) -> str:
        """Name of the id by the host's /etc/passwd; the number as text when it has none."""
        ...

    def group_name(self, gid: int) -> str:
        """Name of the id by the host's /etc/group."""
        ...
