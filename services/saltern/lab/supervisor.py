"""The lab's supervisor as `saltern lab` sees it: starts it, asks it over its Unix socket, and finds processes that it lost.

The process itself is ``launcher``. It is started in the lab's directory.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from saltern.lab.plan import LabError, Paths, Program
from statecore.host.content import private_files
from statecore.model.text_lines import lines_of

#: Environment variable of all processes of a lab, with the lab's directory as value. Child processes inherit it.
MARK = "SALTERN_LAB"

#: Bytes of the longest path of a Unix socket.
_SOCKET_CHARS = 107

#: Seconds for the supervisor to answer after its start, and to each question.
_START_SECONDS = 30.0
_ANSWER_SECONDS = 10.0

#: Bytes read at once.
_PIECE = 65536

#: Seconds between two checks of a condition.
_LOOK = 0.1

#: States of a program that runs, or that the supervisor will start by itself.
_UNDER_WAY = frozenset({"running", "ending", "waiting"})


class NoAnswer(Exception):
    """Raised when the lab's supervisor does not answer, or refuses. The message says why."""


class _ChildState(TypedDict):
    """The lab supervisor's answer about one program: its state as a word, its process id, and how its process ended last."""

    state: str
    pid: int
    last_end: str


@dataclass(frozen=True)
class State:
    """The state of one program of the lab (``supervision.Watched``), and a description of how it ended last."""

    name: str
    #: How the program ended last; not meaningful while it runs.
    description: str
    #: Process id; 0 while there is none.
    pid: int = 0

    @property
    def under_way(self) -> bool:
        """Return whether the program runs, or the supervisor will start it again without being asked."""
        return self.name in _UNDER_WAY


def clean_environment(env: Mapping[str, str], root: Path, programs: Path) -> dict[str, str]:
    """Return the environment variables of the lab's processes, without those that configure other masters."""
    kept = {name: value for name, value in env.items() if not name.startswith(("SALTERN_", "SALT_", "SUPERVISOR_"))}
    path = kept.get("PATH", os.defpath)
    return kept | {MARK: str(root), "PATH": f"{programs}{os.pathsep}{path}", "PYTHONUNBUFFERED": "1"}


def socket_path(paths: Paths) -> Path:
    """Return the path of the supervisor's socket, in the lab's directory.

    It is in /tmp if that path is too long.
    """
    here = paths.run / "supervisor.sock"
    if len(os.fsencode(here)) <= _SOCKET_CHARS:
        return here
    digest = hashlib.sha256(os.fsencode(paths.root)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"saltern-lab-{os.geteuid()}-{digest}" / "supervisor.sock"


def prepare_socket_directory(path: Path) -> None:
    """Create the directory of the supervisor's socket. Raise LabError if it belongs to another user."""
    directory = path.parent
    private_files.top(directory)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise LabError(
            f"{directory} is not a directory of this user alone, and the supervisor's socket must not be reached by "
            "others: remove it, or put the lab elsewhere with --dir"
        )


class Supervisor:
    """The supervisor of one lab, whether it runs or not: starts it, ends it, and asks it for the programs' states."""

    def __init__(self, paths: Paths, programs: Path) -> None:
        """Prepare a client of a lab's supervisor. ``programs``: directory of ``python`` and ``saltern``."""
        self._paths = paths
        self._programs = programs
        self.socket = socket_path(paths)

    def pid(self) -> int | None:
        """Return the process id of the supervisor; None if it does not run."""
        try:
            found: int = self._call("pid")
        except NoAnswer:
            return None
        return found

    def states(self) -> dict[str, State]:
        """Return the map of program name to its state. Raise LabError if the supervisor does not answer."""
        try:
            found: dict[str, _ChildState] = self._call("states")
        except NoAnswer as error:
            raise LabError(f"the lab's supervisor does not answer any more: {error}; see {self._log}") from error
        return {name: State(one["state"], one["last_end"], one["pid"]) for name, one in found.items()}

    def start(self) -> None:
        """Start the supervisor with all programs of the lab. Raise LabError with its last line of output."""
        prepare_socket_directory(self.socket)
        command = [str(self._programs / "python"), "-m", "saltern.lab.launcher"]
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=self._paths.root,
                env=clean_environment(os.environ, self._paths.root, self._programs),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if wait_until(lambda: self.pid() is not None or process.poll() is not None, _START_SECONDS):
            if process.poll() is None:
                return
            raise LabError(f"the lab's supervisor did not start: {_last_line(self._log)}; see {self._log}")
        process.kill()
        raise LabError(f"the lab's supervisor did not answer within {_START_SECONDS:g} s; see {self._log}")

    def start_program(self, program: Program) -> None:
        """Let the supervisor start a program that does not run, without waiting. Raise LabError if it refuses."""
        self._order("start", program.name)

    def stop_program(self, program: str) -> None:
        """Let the supervisor end a program, without waiting, and not start it again. Raise LabError if it refuses."""
        self._order("stop", program)

    def restart_program(self, program: str) -> None:
        """Let the supervisor replace the process of a program, without waiting. Raise LabError if it refuses."""
        self._order("restart", program)

    def _order(self, verb: str, program: str) -> None:
        try:
            self._call(verb, program)
        except NoAnswer as error:
            raise LabError(f"{verb} {program}: {error}; see {self._log}") from error

    def forget_socket(self) -> None:
        """Remove the supervisor's socket, and the socket's directory if that is not the lab's own. Call after the
        supervisor has ended.
        """
        self.socket.unlink(missing_ok=True)
        if self.socket.parent != self._paths.run:
            with contextlib.suppress(FileNotFoundError):
                self.socket.parent.rmdir()

    def shut_down(self) -> None:
        """Ask the supervisor to end all programs and itself; do not wait. Raise LabError if it refuses."""
        try:
            self._call("end")
        except NoAnswer as error:
            # The supervisor is ending or has ended; the caller waits for its process.
            if self.pid() is not None:
                raise LabError(f"the lab's supervisor refuses to shut down: {error}; see {self._log}") from error

    @property
    def _log(self) -> Path:
        return self._paths.log / "launcher.log"

    def _call(self, verb: str, name: str = "") -> Any:
        """Send a command to the lab's supervisor and return the value that it answers, None for most commands.

        Raises NoAnswer if the supervisor does not run or refuses.
        """
        received = b""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(_ANSWER_SECONDS)
                connection.connect(str(self.socket))
                connection.sendall(json.dumps({"do": verb, "name": name}).encode() + b"\n")
                while piece := connection.recv(_PIECE):
                    received += piece
            answer = json.loads(received)
        except (OSError, ValueError) as error:
            raise NoAnswer(str(error)) from error
        if "error" in answer:
            raise NoAnswer(answer["error"])
        return answer["answer"]


def _last_line(log: Path) -> str:
    lines = lines_of(log.read_text("utf-8", "replace")) if log.exists() else []
    return lines[-1] if lines else "it has written nothing"


def wait_until(done: Callable[[], bool], seconds: float) -> bool:
    """Call ``done()`` repeatedly for up to ``seconds``. Return whether it became true."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK)
    return True


#: Seconds for processes to end after SIGTERM, and after SIGKILL.
_TERM_SECONDS = 15.0
_KILL_SECONDS = 5.0


def marked(paths: Paths) -> list[int]:
    """Return the process ids of the lab's processes: those of this user that have the lab's variable in their environment."""
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
    """End all processes of the lab by SIGTERM, then by SIGKILL. Return the ids of processes that remain; [] if all ended."""
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
