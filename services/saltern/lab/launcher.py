"""The lab's own supervisor: a process from which the lab's roles are forked, and which starts Redis and the minions.

The roles share the memory of the modules that this process has imported. No key is read before the forks: each role reads its
own. `saltern lab up` starts this process in the lab's directory and speaks to it over a Unix socket, a line of JSON for each
question and each answer. Source: docs/decisions/0017-workers-from-one-parent.md
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import math
import os
import selectors
import shutil
import socket
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from saltern.kit.config.master import ConfigError, MasterOptions, load_master
from saltern.kit.config.state_options import StateOptions
from saltern.kit.process.logs import configure
from saltern.kit.process.prefork import Child, Parent, program
from saltern.kit.process.role_children import after_fork, before_fork, load_shared_modules, role_program
from saltern.kit.process.service import RoleProgram, Start, run_role
from saltern.lab import settings
from saltern.lab.plan import LOOPBACK, LabError, Paths, Program, programs
from saltern.lab.supervisor import prepare_socket_directory, socket_path

_LOG = logging.getLogger("saltern.lab")

#: Configuration directory of the roles, seen from the lab's directory.
_ETC = "etc"

#: Seconds between SIGTERM and SIGKILL.
_GRACE = 15.0

#: Stages in which the lab ends: minions first, then the master, then Redis.
_STAGES: Mapping[str, int] = {"store": 0, "master": 1, "minions": 2}

#: Bytes of a log file at which it is moved aside, and seconds between two looks.
_LOG_BYTES = 5_000_000
_LOG_SECONDS = 60.0

#: Bytes of a question, and seconds to send an answer.
_QUESTION = 4096
_PATIENCE = 2.0


def child_of(row: Program, paths: Paths, workers: int, options: MasterOptions | None) -> Child:
    """Return the Child (name and function to run) for one process of the lab: a role, Redis or a minion.

    ``options``: the master's; if None, each role reads them itself and reports in its own log why that fails.
    """
    where: dict[str, str] = {}
    if row.health_port:
        where = {"SALTERN_HEALTH_HOST": LOOPBACK, "SALTERN_HEALTH_PORT": str(row.health_port)}
    if row.role:
        role = role_program(row.role)
        start = None
        # Each role reports the error in its own log.
        with contextlib.suppress(ConfigError):
            start = _start(role, options, row.health_port, workers)
        run = _role(role, start, where)
    else:
        # Only for minions: salt-call reads the same options and would print its log. The roles have log_level in etc/master.
        run = program(row.words, {**where, "SALTERN_LOG_LEVEL": "info"} if row.minion else where)
    return Child(row.name, run, _STAGES[row.group], _GRACE, paths.log_of(row.name))


def _start(role: RoleProgram, options: MasterOptions | None, port: int, workers: int) -> Start | None:
    """Return the Start (options and Role) of a role, made before its fork; None without options. Raises ConfigError."""
    if options is None:
        return None
    own = dataclasses.replace(options, health_host=LOOPBACK, health_port=port, worker_processes=workers)
    return before_fork(role, Start(own, _ETC))


def _role(role: RoleProgram, start: Start | None, variables: Mapping[str, str]) -> Callable[[], int]:
    if start is not None:
        return after_fork(role, start)

    def run() -> int:
        os.environ.update(variables)
        return run_role(role, ["-c", _ETC])

    return run


@dataclass
class Control:
    """Carries out requests of `saltern lab` that arrive on a Unix socket, as a part of the parent's loop (``prefork.Attached``)."""

    server: socket.socket
    parent: Parent
    _connections: set[socket.socket] = field(default_factory=set)
    _selector: selectors.BaseSelector | None = None

    def attach(self, selector: selectors.BaseSelector) -> None:
        """Register the launcher's Unix socket with the parent's loop."""
        self._selector = selector
        selector.register(self.server, selectors.EVENT_READ, self._accept)

    def next_time(self) -> float:
        """Return infinity: the control socket has no work at a set time."""
        return math.inf

    def tick(self, now: float) -> None:
        """Do nothing: the launcher's socket has no timers."""

    def files(self) -> Iterable[socket.socket]:
        """Yield the launcher's Unix socket and its open connections, which a child process must close."""
        yield self.server
        yield from self._connections

    def _accept(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection, _ = server.accept()
            connection.settimeout(_PATIENCE)
            self._connections.add(connection)
            assert self._selector is not None, "attach comes first"
            self._selector.register(connection, selectors.EVENT_READ, self._receive)

    def _receive(self, connection: socket.socket) -> None:
        assert self._selector is not None, "attach comes first"
        # A client that closes its connection without a question needs no answer.
        with contextlib.suppress(OSError, ValueError):
            question = json.loads(connection.recv(_QUESTION))
            connection.sendall(json.dumps(self.answer(question)).encode() + b"\n")
        self._selector.unregister(connection)
        self._connections.remove(connection)
        connection.close()

    def answer(self, question: Mapping[str, str]) -> object:
        """Return {"answer": value} for a request {"do": command, "name": program}; {"error": text} if it cannot be carried out.

        Commands are pid, states, start, stop, restart and end. ``states`` answers {program: {state, pid, last_end}}.
        """
        calls: Mapping[str, Callable[[str], object]] = {
            "pid": lambda name: os.getpid(),
            "states": lambda name: {
                one.name: {"state": one.state, "pid": one.pid, "last_end": one.last_end}
                for one in self.parent.watched.values()
            },
            "start": self.parent.start,
            "stop": self.parent.stop,
            "restart": self.parent.restart,
            "end": lambda name: self.parent.end(),
        }
        what, name = question.get("do", ""), question.get("name", "")
        try:
            return {"answer": calls[what](name)}
        except KeyError:
            return {"error": f"there is nothing to do for {what!r} {name!r}".rstrip()}


@dataclass
class LogFiles:
    """Rotates log files that have grown too large; the parent's loop serves this object (``prefork.Attached``)."""

    files_of_logs: Sequence[Path]
    _next: float = 0.0

    def attach(self, selector: selectors.BaseSelector) -> None:
        """Register nothing: log files are looked at once a minute."""

    def next_time(self) -> float:
        """Return the monotonic time at which the sizes of the log files are checked next."""
        return self._next

    def tick(self, now: float) -> None:
        """Copy each log file that is too large to NAME.1, and empty it. Its process goes on appending to it."""
        if now < self._next:
            return
        self._next = now + _LOG_SECONDS
        for path in self.files_of_logs:
            with contextlib.suppress(OSError):
                if path.stat().st_size > _LOG_BYTES:
                    shutil.copyfile(path, path.with_name(f"{path.name}.1"))
                    os.truncate(path, 0)

    def files(self) -> Iterable[socket.socket]:
        """Return no sockets: log files are not served by the parent's selector."""
        return ()


def _listen(path: Path) -> socket.socket:
    prepare_socket_directory(path)
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(path))
    server.listen(16)
    return server


def main(argv: Sequence[str] | None = None) -> int:
    """Run the programs of the lab in the current directory until SIGTERM. Return the exit code."""
    configure("lab", StateOptions(log_level="info"))
    paths = Paths(Path.cwd())
    chosen = settings.load(paths.settings)
    if chosen is None:
        raise LabError(f"no {paths.settings}: `saltern lab up` writes it")
    rows = programs(chosen)
    options = None
    # Each role reports the error in its own log.
    with contextlib.suppress(ConfigError):
        options = load_master(_ETC)
    load_shared_modules()
    parent = Parent([child_of(row, paths, chosen.workers, options) for row in rows], _LOG)
    server = _listen(socket_path(paths))
    parent.attached += [Control(server, parent), LogFiles([paths.log_of(row.name) for row in rows])]
    _LOG.info("%d programs start", len(rows))
    return parent.run()


if __name__ == "__main__":
    sys.exit(main())
