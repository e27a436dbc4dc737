"""Interfaces (typing.Protocol) of the services that statecore needs: files, templates, events, jobs, minion, master,
loader, host.

The minion, ``salt-call`` and the tests each bring their own implementations. This module does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from statecore.model.types import High, Low, Running, RunningEntry

Function = Callable[..., Any]


class CommandResult(NamedTuple):
    """Exit code and output of a command that ran on the managed host."""

    retcode: int
    stdout: str
    stderr: str
    pid: int
    timed_out: bool = False


class FileHash(NamedTuple):
    """Hexadecimal digest of a file's content; Salt's map ``{"hash_type", "hsum"}``."""

    hash_type: str
    hsum: str


class Files(Protocol):
    """Interface of the state tree behind ``salt://``: local directories, or a cache of the master's fileserver."""

    def envs(self) -> list[str]:
        """List of the names of the saltenvs (environments of the state tree); "base" is first if it exists."""
        ...

    def paths(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Sorted relative paths of all files whose path starts with the text ``prefix``."""
        ...

    def dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Sorted relative paths of all directories that start with the text ``prefix``, including empty directories."""
        ...

    def empty_dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Sorted relative paths of a saltenv's directories without files that start with the text ``prefix``."""
        ...

    def symlinks(self, saltenv: str = "base", prefix: str = "") -> dict[str, str]:
        """Map of each symbolic link in the state tree to its target; both are paths relative to the tree's root."""
        ...

    def hash(self, path: str, saltenv: str = "base") -> FileHash | None:
        """Digest of the file ``path`` (relative, without ``salt://``); None when there is no such file."""
        ...

    def mode(self, path: str, saltenv: str = "base") -> int | None:
        """Permission bits of a file of the state tree (for ``mode: keep``); None when they are unknown."""
        ...

    def fetch(self, path: str, saltenv: str = "base") -> Path | None:
        """Return a local path that has the current content of a file of the state tree; None if there is no such file.

        The caller must not write to that path.
        """
        ...

    def shown(self, fetched: Path) -> str:
        """Return the name of a fetched file for messages: its path, or its ``salt://`` URL if the path is a cached
        copy.
        """
        ...


class Templates(Protocol):
    """Template engines for the content of files (``template: jinja``)."""

    def render(self, text: str, engine: str, context: Mapping[str, object], *, saltenv: str, source: str = "") -> str:
        """Return the text that a template engine ("jinja", "mako", ...) makes of a template.

        ``source`` is the template's ``salt://`` URL or path, for messages and relative imports. Raise SlsError with
        file and line if the template cannot be rendered.
        """
        ...

    def data(self, text: str, pipe: str, names: Mapping[str, object], *, saltenv: str, source: str = "") -> Any:
        """Return the data (usually a map) that Salt's renderers make of an SLS text.

        The renderers are those of the text's ``#!`` line, else those of ``pipe`` ("jinja|yaml"). Raise SlsError with
        file and line if the text cannot be rendered.
        """
        ...


class Events(Protocol):
    """Interface of an event bus: the master's, or ``NoEvents``, which drops all events."""

    def fire(self, tag: str, data: Mapping[str, object]) -> bool:
        """Send an event with this tag and data to the event bus. Return True if the bus accepted it."""
        ...


class Jobs(Protocol):
    """The jobs that run on this minion now; ``saltutil.running``, ``find_job`` and ``signal_job`` use them."""

    def running(self) -> list[dict[str, Any]]:
        """List of the jobs that run on this minion: each is the job's load with its ``jid``, ``fun`` and ``pid``."""
        ...

    def signal(self, jid: str, number: int) -> str:
        """Send the signal ``number`` to the process of the job ``jid``.

        Return Salt's sentence, such as "Signal 15 sent to job ... at pid ...", or the reason why it was not sent; "" if no such
        job runs.
        """
        ...


class MinionControl(Protocol):
    """Interface of the services of the minion's main process that an execution function may use.

    They refresh pillar, modules or grains, send requests to the master, and change the schedule and the beacons.
    ``salt-call --local`` has no such process and implements them itself.
    """

    def refresh_pillar(self) -> bool:
        """Make the minion fetch its pillar again before its next job. Return True if the request was accepted."""
        ...

    def refresh_modules(self) -> bool:
        """Make the minion load its modules from the disk again before its next job. Return True if the request was
        accepted.
        """
        ...

    def refresh_grains(self) -> bool:
        """Make the minion gather its grains again before its next job. Return True if the request was accepted."""
        ...

    def compile_pillar(
        self,
        saltenv: str | None,
        pillarenv: str | None,
        override: Mapping[str, object] | None,
        on_demand: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """Return pillar as the master (or the local pillar roots) compiles it now. Errors are a list under the key
        ``_errors``.

        ``on_demand`` is one more external pillar as ``{name: arguments}``; the master's option ``on_demand_ext_pillar``
        must allow it.
        """
        ...

    def master_tops(self) -> dict[str, list[str]]:
        """Map of saltenv to SLS references, from the master's option ``master_tops``; {} without the option."""
        ...

    def ask_master(
        self, cmd: str, fields: Mapping[str, object], *, once: bool = False, master: str | None = None
    ) -> object:
        """Send a command of a minion to the master and return the reply, whose form depends on the command. Raise
        CommandError if the master does not reply, or if there is no master.

        ``once``: the request is not repeated when no reply arrives. ``master``: the address of one master of several.

        Source: docs/protocol.md#command-table
        """
        ...

    def manage(self, area: str, request: Mapping[str, object]) -> dict[str, Any]:
        """Change or show the schedule or the beacons (``area``) of the running minion. Return the minion's reply, a map
        whose keys depend on the area.

        Raises CommandError when no minion runs, or when the minion refuses the request.
        """
        ...


class MinionJob(NamedTuple):
    """A job that an orchestration publishes to minions: its target, its function with arguments, and the wait for returns."""

    tgt: Any
    fun: str
    tgt_type: str = "glob"
    arg: Sequence[Any] = ()
    kwarg: Mapping[str, Any] = MappingProxyType({})
    #: Names of returners, separated by commas.
    ret: str = ""
    #: Further keys of the publication: ret_config, ret_kwargs.
    passed_on: Mapping[str, Any] = MappingProxyType({})
    #: Seconds until minions are asked whether the job still runs; None: the master's option ``timeout``.
    timeout: float | None = None
    #: Number of minions that run the job at the same time, or a percentage ("25%"); None: all.
    batch: str | None = None
    #: Number of randomly chosen minions, of those that answer a ping; None: all.
    subset: int | None = None
    #: True: a batch ends at the first failure.
    failhard: bool = False
    #: False: minions that do not return are not reported.
    expected: bool = True


class MasterCall(NamedTuple):
    """A call of a runner function or of a wheel function: the function's name and its arguments."""

    fun: str
    arg: Sequence[Any] = ()
    kwarg: Mapping[str, Any] = MappingProxyType({})


class Master(Protocol):
    """The master's services for the states of an orchestration: publish jobs, call runners and wheel functions, read
    events.
    """

    @property
    def jid(self) -> str:
        """JID of the orchestration."""
        ...

    def ask(self, job: MinionJob, event_data: Mapping[str, object]) -> dict[str, dict[str, object]]:
        """Publish a job and wait. Return a map of minion id to ``ret``, ``retcode``, ``jid`` and ``out`` of its
        return.

        A minion that did not return has the key ``failed``. ``event_data`` is further data of the event
        ``salt/run/<jid>/args``. Raises CommandError when the master refuses the job.
        """
        ...

    def publish(self, job: MinionJob) -> dict[str, object]:
        """Publish a job without waiting. Return a map with its ``jid`` and its ``minions`` (list of ids); {} when no
        minion matches. Raise CommandError when the master refuses the job.
        """
        ...

    def follow(
        self, jid: str, minions: Sequence[str], timeout: float | None
    ) -> Iterator[tuple[str, dict[str, Any]] | None]:
        """Yield (minion id, map with ``ret``, ``retcode``, ``jid`` and ``out``) for each return of a published job, when it
        arrives.

        A minion that does not return within ``timeout`` seconds (None: the master's option) has the key ``failed``. None is
        yielded whenever nothing has arrived for a moment. Raises CommandError when the master does not answer.
        """
        ...

    def start(self, call: MasterCall) -> dict[str, str]:
        """Start a runner function without waiting. Return a map with its ``jid`` and the ``tag`` of its events. Raises
        CommandError when the master refuses the call.
        """
        ...

    def run(self, calls: Sequence[MasterCall]) -> list[dict[str, Any]]:
        """Call several runner functions in parallel and wait for all of them.

        Return one map for each call, in order, with the keys ``return``, ``success`` and ``jid``. A call that the
        master refuses gives such a map too.
        """
        ...

    def wheel(self, call: MasterCall) -> dict[str, Any]:
        """Call a wheel function of the master and return a map with the keys ``return`` and ``success``.

        A call that the master refuses gives such a map too.
        """
        ...

    def events(self, prefix: str, seconds: float) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield (tag, data) of the master's events whose tag starts with ``prefix``, as they arrive, for ``seconds``
        seconds.
        """
        ...

    def orders(self) -> dict[str, dict[str, object]]:
        """Map of state ID to the operator's order before that state of this orchestration; {} without orders.

        ``{"kill": True}`` ends the run, ``{"duration": seconds}`` pauses it so long, ``{}`` pauses it until it is resumed.
        Raises CommandError if the master does not answer.
        """
        ...

    def end_orders(self) -> None:
        """Delete the operators' orders (pause, resume, kill) to this orchestration. Call it when the orchestration has
        ended.
        """
        ...


class Catalog(Protocol):
    """Names, docstrings and signatures of the modules that the loader finds, for ``sys.*`` and for hints in messages."""

    def names(self, kind: str = "modules", module: str = "") -> list[str]:
        """List of all function names "module.function" of one kind of modules (modules, states, grains, returners), or
        of one ``module`` of this kind: then no other module is imported.

        For the kind "renderers": the names of the renderers.
        """
        ...

    def doc(self, name: str, kind: str = "modules") -> str | None:
        """Docstring of a function without indentation; None when it has no docstring or does not exist."""
        ...

    def argspec(self, name: str, kind: str = "modules") -> dict[str, Any] | None:
        """Salt's argspec map of a function: args, varargs, kwargs and defaults, without ``ctx``. None for an unknown
        function.
        """
        ...

    def function(self, name: str, kind: str) -> Function:
        """Return a function such as ``pkg.install`` of a module of this ``kind``, bound to a Context outside of any
        run. Raise NotAvailable if there is no such function.
        """
        ...


class StateSystem(Protocol):
    """The operations behind the execution module ``state``: render, compile and run states."""

    def highstate(self, options: Mapping[str, object]) -> Running | list[str]:
        """Run the states of the top file. Return the running dictionary, or the list of errors."""
        ...

    def sls(self, mods: Sequence[str], options: Mapping[str, object]) -> Running | list[str]:
        """Run the given SLS references. Return the running dictionary, or the list of errors."""
        ...

    def template(self, path: str, options: Mapping[str, object]) -> Running | list[str]:
        """Run one SLS file of the minion's own disk. Return the running dictionary, or the list of errors."""
        ...

    def template_str(self, text: str, options: Mapping[str, object]) -> Running | list[str]:
        """Run SLS content that is given as text. Return the running dictionary, or the list of errors."""
        ...

    def high(self, data: Mapping[str, object], options: Mapping[str, object]) -> Running | list[str]:
        """Run the given high data. Return the running dictionary, or the list of errors."""
        ...

    def low(self, data: Mapping[str, object], options: Mapping[str, object]) -> RunningEntry | list[str]:
        """Run one low chunk. Return its entry of the running dictionary, or the list of errors."""
        ...

    def show_top(self, options: Mapping[str, object]) -> dict[str, list[str]] | list[str]:
        """Map of saltenv to the SLS references that the top file assigns to this minion, or the list of errors."""
        ...

    def show_high(self, mods: Sequence[str] | None, options: Mapping[str, object]) -> High | list[str]:
        """Return the high data of the top file (``mods`` is None) or of the SLS references ``mods``, or the list of
        errors.

        With the option ``verify``, errors in the form of the high data count too.
        """
        ...

    def show_low(self, mods: Sequence[str] | None, options: Mapping[str, object]) -> list[Low] | list[str]:
        """List of low chunks in the order of their run, or the list of errors (texts)."""
        ...

    def show_usage(self, options: Mapping[str, object]) -> dict[str, dict[str, object]] | list[str]:
        """Map of saltenv to a map with its ``used`` and ``unused`` SLS references (lists), by the top file of this
        minion, and with their numbers ``count_all``, ``count_used`` and ``count_unused``. Return the list of error
        texts if the top file has errors.
        """
        ...

    def clear_cache(self) -> list[str]:
        """Delete cached data of earlier runs. Return the names of the deleted files."""
        ...

    def run_parts(self, options: Mapping[str, object]) -> Any:
        """Return the ``RunParts`` (context, loader, engine options) of a state run with these options, for commands
        that analyse the run. The run itself is not started.
        """
        ...


class ManagedHost(Protocol):
    """The managed host: this machine (root ``/``), or a system mounted in a directory. Its paths are the host's own
    paths.
    """

    @property
    def root(self) -> Path:
        """Path of the host's ``/`` in this process's own file system view."""
        ...

    @property
    def mounted(self) -> bool:
        """True if the managed host is a system mounted in a directory: its root is not ``/`` of this machine."""
        ...

    def path(self, path: str, *, follow: bool = True) -> Path:
        """Convert the host's absolute ``path`` to a path for this process.

        Symbolic links are resolved inside the host's root and cannot leave it. The last component is resolved only if
        ``follow``. Raises HostError for a relative path and for links in a loop.
        """
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
        quiet: bool = False,
    ) -> CommandResult:
        """Run a command on the host, wait for its end, and return its exit code and output. For a mounted host, the
        command runs in a chroot. ``quiet``: the command does not appear in the log.

        A text runs through ``shell`` (default /bin/sh); a list is an argv. ``timeout`` is in seconds. Raises HostError
        when the command cannot be started: no such program, no such user, or chroot without root.
        """
        ...

    def lines(self, cmd: Sequence[str]) -> Generator[bytes, None, int]:
        """Run a program on the host and yield each line of its output and errors as it is printed; the generator returns the
        exit code. Raises HostError when the program cannot be started.
        """
        ...

    def set_variable(self, name: str, value: str | None) -> None:
        """Set an environment variable for later commands of a mounted host; None removes it.

        On this machine commands inherit the environment variables of this process instead.
        """
        ...

    def mount_table(self) -> str:
        """Mount table in the format of proc(5) mountinfo, with the host's own paths. Raise HostError if the kernel's
        table cannot be read.
        """
        ...

    def which(self, program: str) -> str | None:
        """The host's absolute path of a program in the host's usual PATH; None when there is none."""
        ...

    def uid(self, user: str | int) -> int:
        """Numeric id of a user in the host's /etc/passwd; a number is returned unchanged. Raises HostError for an
        unknown name.
        """
        ...

    def gid(self, group: str | int) -> int:
        """Numeric id of a group in the host's /etc/group; a number is returned unchanged. Raises HostError for an
        unknown name.
        """
        ...

    def login_group(self, user: str | int) -> int:
        """Numeric id of a user's primary group. Raises HostError for an unknown user."""
        ...

    def user_name(self, uid: int) -> str:
        """User name of a numeric id in the host's /etc/passwd; the number as text when there is none."""
        ...

    def group_name(self, gid: int) -> str:
        """Group name of a numeric id in the host's /etc/group; the number as text when there is none."""
        ...
