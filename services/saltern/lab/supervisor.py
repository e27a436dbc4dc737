"""supervisord: its configuration, the lab's calls to it (XML-RPC over a Unix socket), and processes that it lost.

Paths in the configuration are relative: supervisord interprets ``%``, ``;``, ``#``, quotes and spaces in values, and the path of
a checkout may contain them. supervisord is started in the lab's directory.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.client
import os
import signal
import socket
import stat
import subprocess
import tempfile
import time
import xmlrpc.client
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saltern.kit.process.process import EX_CONFIG
from saltern.lab.plan import LabError, Paths, Program

#: Environment variable of all processes of a lab, with the lab's directory as value. Child processes inherit it.
MARK = "SALTERN_LAB"

#: Exit codes after which a restart is pointless: key rejected, configuration unusable.
_HOPELESS = (77, EX_CONFIG)

#: Bytes of the longest socket path, less the suffix that supervisord adds while it binds (a dot and its pid).
_SOCKET_CHARS = 107 - 9

#: Seconds for supervisord to answer after its start.
_START_SECONDS = 30.0

#: Seconds between two checks of a condition.
_LOOK = 0.1

#: States of a program that runs, or that supervisord will start by itself.
_UNDER_WAY = frozenset({"RUNNING", "STARTING", "BACKOFF"})

_NO_ANSWER = (OSError, http.client.HTTPException, xmlrpc.client.Error)


@dataclass(frozen=True)
class State:
    """The state of one program of the lab, as supervisord names it, and a description of how the program ended."""

    name: str
    #: How the program ended last; not meaningful while it runs.
    description: str

    @property
    def under_way(self) -> bool:
        """Return whether the program runs, or will be started again by supervisord."""
        return self.name in _UNDER_WAY


def render(programs: Iterable[Program], socket_path: str, health_host: str) -> str:
    """Return the content of supervisord.conf. Only ``socket_path`` may be an absolute path."""
    parts = [
        "; Written by `saltern lab up`. Paths are relative to the lab's directory, in which supervisord is started.",
        "[supervisord]",
        "logfile=log/supervisord.log",
        "logfile_maxbytes=5MB",
        "logfile_backups=1",
        "pidfile=run/supervisord.pid",
        "childlogdir=log",
        "",
        "[unix_http_server]",
        f"file={escape(socket_path)}",
        "chmod=0700",
        "",
        "[rpcinterface:supervisor]",
        "supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface",
    ]
    groups: dict[str, list[str]] = {}
    for priority, program in enumerate(programs, 1):
        parts += ["", *_section(program, priority, health_host)]
        groups.setdefault(program.group, []).append(program.name)
    for priority, (group, names) in enumerate(groups.items(), 1):
        parts += ["", f"[group:{group}]", f"programs={','.join(names)}", f"priority={priority}"]
    return "\n".join(parts) + "\n"


def _section(program: Program, priority: int, health_host: str) -> list[str]:
    # Only for minions: salt-call reads the same options and would print its log. The roles have log_level in
    # etc/master.
    environment = {"SALTERN_LOG_LEVEL": "info"} if program.minion else {}
    if program.health_port:
        environment |= {"SALTERN_HEALTH_HOST": health_host, "SALTERN_HEALTH_PORT": str(program.health_port)}
    return [
        f"[program:{program.name}]",
        f"command={escape(' '.join(program.words))}",
        f"priority={priority}",
        "autorestart=unexpected",
        f"exitcodes={','.join(str(code) for code in _HOPELESS)}",
        "startsecs=1",
        "startretries=3",
        "stopwaitsecs=15",
        # A minion's jobs are in its process group.
        "killasgroup=true",
        "redirect_stderr=true",
        f"stdout_logfile=log/{program.name}.log",
        "stdout_logfile_maxbytes=5MB",
        "stdout_logfile_backups=1",
        *(
            ["environment=" + ",".join(f'{name}="{value}"' for name, value in environment.items())]
            if environment
            else []
        ),
    ]


def escape(value: str) -> str:
    """Return the value with ``%`` doubled, as supervisord's configuration needs it."""
    return value.replace("%", "%%")


def clean_environment(env: Mapping[str, str], root: Path, programs: Path) -> dict[str, str]:
    """Return the environment variables of the lab's processes, without those that configure other masters."""
    kept = {name: value for name, value in env.items() if not name.startswith(("SALTERN_", "SALT_", "SUPERVISOR_"))}
    path = kept.get("PATH", os.defpath)
    return kept | {MARK: str(root), "PATH": f"{programs}{os.pathsep}{path}", "PYTHONUNBUFFERED": "1"}


def socket_path(paths: Paths) -> Path:
    """Return the path of supervisord's socket, in the lab's directory.

    It is in /tmp if that path is too long or has special characters.
    """
    here = paths.run / "supervisor.sock"
    # ';' and '#' begin comments and cannot be escaped; '%' can.
    if len(os.fsencode(here)) <= _SOCKET_CHARS and not any(special in str(here) for special in ";#\n"):
        return here
    digest = hashlib.sha256(os.fsencode(paths.root)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"saltern-lab-{os.geteuid()}-{digest}" / "supervisor.sock"


def prepare_socket_directory(path: Path) -> None:
    """Create the directory of supervisord's socket. Raise LabError if it belongs to another user."""
    directory = path.parent
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise LabError(
            f"{directory} is not a directory of this user alone, and supervisord's socket must not be reached by "
            "others: remove it, or put the lab elsewhere with --dir"
        )


class Supervisor:
    """The supervisord process of one lab, whether it runs or not: starts it, ends it, and asks it for the programs' states."""

    def __init__(self, paths: Paths, programs: Path) -> None:
        """Prepare a client of a lab's supervisord. ``programs``: directory of ``saltern`` and ``supervisord``."""
        self._paths = paths
        self._programs = programs
        self.socket = socket_path(paths)

    def pid(self) -> int | None:
        """Return the process id of supervisord; None if it does not run."""
        try:
            return int(self._call("getPID"))
        except _NO_ANSWER:
            return None

    def states(self) -> dict[str, State]:
        """Return the map of program name to its state. Raise LabError if supervisord does not answer."""
        try:
            found: list[dict[str, Any]] = self._call("getAllProcessInfo")
        except _NO_ANSWER as error:
            raise LabError(f"supervisord does not answer any more: {error}; see {self._log}") from error
        return {
            str(one["name"]): State(str(one["statename"]), str(one["spawnerr"] or f"exit status {one['exitstatus']}"))
            for one in found
        }

    def start(self) -> None:
        """Start supervisord with all programs of the lab. Raise LabError with its output."""
        program = self._programs / "supervisord"
        if not program.exists():
            raise LabError(f"no {program}: the package supervisor is missing; `make lab` installs what the lab needs")
        prepare_socket_directory(self.socket)
        command = [str(program), "-c", "run/supervisord.conf"]
        try:
            done = subprocess.run(
                command,
                cwd=self._paths.root,
                env=clean_environment(os.environ, self._paths.root, self._programs),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_START_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise LabError(f"supervisord did not start within {_START_SECONDS:g} s; see {self._log}") from error
        if done.returncode:
            raise LabError(f"supervisord did not start: {done.stdout.strip()}")
        if not wait_until(lambda: self.pid() is not None, _START_SECONDS):
            raise LabError(f"supervisord did not answer within {_START_SECONDS:g} s; see {self._log}")

    def start_program(self, program: Program) -> None:
        """Let supervisord start a program that does not run, without waiting. Raise LabError if supervisord refuses."""
        try:
            self._call("startProcess", f"{program.group}:{program.name}", False)
        except _NO_ANSWER as error:
            raise LabError(f"{program.name} cannot be started: {error}; see {self._log}") from error

    def forget_socket(self) -> None:
        """Remove the directory of supervisord's socket if it is outside the lab's directory. Call after supervisord has ended."""
        if self.socket.parent != self._paths.run:
            self.socket.unlink(missing_ok=True)
            with contextlib.suppress(FileNotFoundError):
                self.socket.parent.rmdir()

    def shut_down(self) -> None:
        """Ask supervisord to end all programs and itself; do not wait. Raise LabError if it refuses."""
        try:
            self._call("shutdown")
        except _NO_ANSWER as error:
            # supervisord is ending or has ended; the caller waits for its process.
            if self.pid() is not None:
                raise LabError(f"supervisord refuses to shut down: {error}; see {self._log}") from error

    @property
    def _log(self) -> Path:
        return self._paths.log / "supervisord.log"

    def _call(self, method: str, *arguments: object) -> Any:
        with xmlrpc.client.ServerProxy("http://localhost", transport=_Transport(self.socket)) as proxy:
            return getattr(proxy.supervisor, method)(*arguments)


def wait_until(done: Callable[[], bool], seconds: float) -> bool:
    """Call ``done()`` repeatedly for up to ``seconds``. Return whether it became true."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK)
    return True


class _Connection(http.client.HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class _Transport(xmlrpc.client.Transport):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def make_connection(self, host: object) -> http.client.HTTPConnection:
        return _Connection(self._path)


#: Seconds for processes to end after SIGTERM, and after SIGKILL.
_TERM_SECONDS = 15.0
_KILL_SECONDS = 5.0


def marked(paths: Paths) -> list[int]:
    """Return the ids of this user's processes that belong to the lab; a variable in their environment marks them."""
    return sorted(
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and int(entry.name) != os.getpid() and _belongs(entry, paths)
    )


def _belongs(entry: Path, paths: Paths) -> bool:
    try:
        if os.fsencode(f"{MARK}={paths.root}") in (entry / "environ").read_bytes().split(b"\0"):
            return True
        # Redis overwrites its environment with its title, so it is recognized by its working directory.
        name = (entry / "comm").read_text("utf-8", "replace").strip()
        return name.startswith("redis-") and name != "redis-cli" and (entry / "cwd").readlink() == paths.redis_data
    except OSError:
        # The process belongs to another user, or has ended.
        return False


def end_all(paths: Paths) -> list[int]:
    """End all processes that belong to the lab and return the ids of those that remain."""
    for number, seconds in ((signal.SIGTERM, _TERM_SECONDS), (signal.SIGKILL, _KILL_SECONDS)):
        signalled: set[int] = set()
        if wait_until(functools.partial(_all_gone, paths, number, signalled), seconds):
            return []
    return marked(paths)


def _all_gone(paths: Paths, number: signal.Signals, signalled: set[int]) -> bool:
    """Send a signal to each process of the lab that did not get it yet. Return whether there is no process left."""
    there = marked(paths)
    for pid in there:
        if pid not in signalled:
            signalled.add(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    return not there
