"""The zygote: the process from which jobbers are forked. It holds the state engine, grains and pillar.

It has one thread, and no socket except the one to the main process, so that a fork of it is safe. Modules of the engine are
imported as jobs need them. The messages are described in saltern.minion.ipc.messages.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import logging
import os
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgpack

from saltern.kit.config.engine_rows import EngineRow, engine_rows
from saltern.kit.config.minion_options import MinionOptions
from saltern.kit.process.tracing import Tracing
from saltern.minion.engine.backends import Backend, MasterBackend
from saltern.minion.engine.forked_call import ForkedCalls, ForkEnded
from saltern.minion.engine.preload import Preload, share
from saltern.minion.ipc.framed_socket import FramedSocket
from saltern.minion.ipc.messages import (
    BEACONS_ENDED,
    JOB_DIED,
    OWN_JOB_ENDED,
    READY,
    CredentialFields,
    JobLoad,
    Targeting,
    ZygoteRequest,
)
from saltern.minion.jobs import jobber
from saltern.minion.jobs.journal import JobSteps
from saltern.minion.jobs.spool import Spool
from saltern.minion.master.channel import ChannelError
from saltern.minion.master.identity import Identity
from saltern.minion.master.masters import Masters
from saltern.minion.master.other_masters import OtherMasters
from saltwire.handshake import Credentials
from statecore.model.lazy import lazy_module
from statecore.runtime.runtime import Runtime
from statecore.runtime.state_runs.running_jobs import ProcDirectory

if TYPE_CHECKING:
    from saltern.kit.process import engines
    from statecore.runtime import engine_runs
else:
    # Few minions have engines.
    engines = lazy_module("saltern.kit.process.engines")
    engine_runs = lazy_module("statecore.runtime.engine_runs")

_LOG = logging.getLogger("saltern.minion")

Result = TypeVar("Result")

#: Module that runs beacons, imported when the first beacon is configured.
_WATCH = "saltern.minion.duties.beacon_watch"

#: Functions that inspect or end jobs: they do not count for process_count_max, so that they never wait for those jobs.
_NEVER_WAIT = frozenset(
    f"saltutil.{name}" for name in ("find_job", "running", "is_running", "signal_job", "term_job", "kill_job")
)

#: Kinds of modules that nearly each job looks up.
_INDEXED = ("modules", "states")

#: Seconds between two attempts to obtain grains or pillar.
_RETRY = 5.0


#: Seconds that a zygote has to end after its socket was closed.
_PATIENCE = 2.0

#: Seconds after which an idle zygote looks for refreshes that other processes than its jobbers requested.
_IDLE = 2.0


@dataclass
class Refreshes:
    """The refreshes of grains, pillar or modules that jobs requested. A jobber leaves a file such as
    ``refresh-pillar``; the zygote refreshes before the next job.
    """

    directory: Path

    def take(self) -> set[str]:
        """Remove the request files and return the set of what to refresh: "pillar", "modules", "grains"."""
        taken = set()
        for path in self.directory.glob("refresh-*"):
            path.unlink(missing_ok=True)
            taken.add(path.name.removeprefix("refresh-"))
        return taken


class ChildExits:
    """A pipe that becomes readable when a child process of the zygote ends, so that an idle zygote sleeps instead of
    asking again and again.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)
        # A signal without a handler would not be written to the pipe.
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        # A full pipe is readable, too: nothing is lost.
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)

    def fileno(self) -> int:
        """Return the pipe's file descriptor, which becomes readable when a child process ends."""
        return self._reader

    def clear(self) -> None:
        """Empty the pipe of child exits. Call before the ended child processes are collected."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._reader, 4096):
                pass

    @staticmethod
    def stop() -> None:
        """Restore the default action of SIGCHLD and stop writing to the pipe. Call first in each child of the zygote,
        because its own children do not concern the zygote.
        """
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


class Zygote:
    """The zygote's main loop: takes requests of the main process and forks a jobber for each job."""

    def __init__(self, options: MinionOptions, masters: Masters, backend: Backend, main_socket: FramedSocket) -> None:
        self._options = options
        self._backend = backend
        self._socket = main_socket
        cachedir = Path(options.cachedir)
        self._procs = ProcDirectory(cachedir / "proc")
        state = masters.state(options.cachedir)
        self._spool = Spool(state / "spool", options.max_return_bytes)
        self._other_masters = OtherMasters(masters, options)
        self._refreshes = Refreshes(state)
        self._preload = Preload()
        self._exits = ChildExits()
        self._tracing = Tracing(options.tracing, "saltern-minion")
        self._steps = JobSteps(state)
        self._calls = ForkedCalls(ChannelError, main_socket)
        self._grains: Mapping[str, object] | None = None
        self._pillar: Mapping[str, object] = {}
        self._runtime = self._new_runtime(None)
        #: pid of a jobber -> (its JID, whether the minion started the job itself).
        self._jobbers: dict[int, tuple[str, bool]] = {}
        #: Jobs that wait because process_count_max jobbers run.
        self._waiting: deque[tuple[JobLoad, JobSteps | None]] = deque()
        #: pid of the process that runs beacons; 0 if there is none.
        self._beacon_process = 0
        rows = engine_rows(options.engines)
        self._engines = engines.EngineProcesses(rows, self._run_engine) if rows else None
        self._ending = 0.0

    def run(self) -> None:
        """Serve the main process until it asks the zygote to end, or until the main process has ended."""
        self._refreshes.take()
        self._refresh_grains()
        if self._grains is not None:
            self._refresh_pillar()
        ends: list[FramedSocket | Preload | ChildExits] = [self._socket, self._preload, self._exits]
        while not self._ending:
            readable, _, _ = select.select(ends, [], [], 0 if self._preload.waiting else _IDLE)
            if self._preload in readable:
                self._preload.receive()
            elif self._preload.waiting and not readable:
                self._preload.load_one()
            if self._socket in readable:
                message = self._received()
                if message == b"":
                    self._stop_beacon_process()
                    self._set_engines(wanted=False)
                    return
                if message:
                    self._handle(msgpack.unpackb(message, strict_map_key=False))
            self._exits.clear()
            self._reap()
            self._refresh()
        self._stop_beacon_process()
        self._set_engines(wanted=False)
        deadline = time.monotonic() + self._ending
        while self._jobbers and time.monotonic() < deadline:
            self._reap()
            select.select([], [], [], 0.02)

    def _received(self) -> bytes | None:
        """Return the next message of the main process.

        Return None if only a part of it has arrived, and empty bytes if the main process has ended.
        """
        try:
            return self._socket.receive()
        except ConnectionResetError:
            # The main process was killed before it read our messages. What it sent before can still be read.
            return self._socket.receive()

    def _send(self, message: bytes) -> None:
        """Send a message to the main process. If that process has ended, the main loop notices it later."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.send(message)

    def _handle(self, request: ZygoteRequest) -> None:
        handlers: Mapping[str, Callable[[ZygoteRequest], None]] = {
            "job": lambda request: self._fork(request["job"]),
            "journalled": lambda request: self._fork(request["journalled"], self._steps),
            "credentials": lambda request: self._take_credentials(request["credentials"]),
            "watch": lambda request: self._set_beacon_process(request["watch"]),
            "engines": lambda request: self._set_engines(request["engines"]),
            "end": lambda request: self._end(request["end"]),
        }
        for name in request:
            handlers[name](request)

    def _fork(self, load: JobLoad, steps: JobSteps | None = None) -> None:
        most = self._options.process_count_max
        if 0 < most <= len(self._jobbers) and _may_wait(load["fun"]):
            _LOG.info("the job waits: process_count_max (%d) jobs are running", most, extra={"jid": load.get("jid")})
            self._waiting.append((load, steps))
            return
        self._refresh()
        self._preload.mark_loaded()
        pid = os.fork()
        if pid:
            # The arguments may be large and are needed in the jobber only.
            self._jobbers[pid] = (str(load["jid"]), bool(load.get("own")))
            return
        code = 1
        try:
            self._exits.stop()
            self._backend.prepare_job(self._runtime, load)
            ways = (self._other_masters.send, steps, self._backend.send, self._tracing)
            jobber.work(self._runtime, load, self._procs, self._spool, self._socket, *ways)
            self._preload.report()
            self._tracing.close()
            code = 0
        except Exception:  # noqa: BLE001 - the process ends here, whatever happened
            _LOG.exception("the jobber of %s failed", load.get("fun"), extra={"jid": load.get("jid")})
        finally:
            logging.shutdown()
            os._exit(code)

    def _set_beacon_process(self, wanted: bool) -> None:
        if not wanted:
            self._stop_beacon_process()
        if not wanted or self._beacon_process:
            return
        parent = os.getpid()
        self._beacon_process = os.fork()
        if self._beacon_process:
            return
        code = 1
        try:
            self._exits.stop()
            self._socket.close()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            watch = importlib.import_module(_WATCH).watch
            watch(self._runtime, Path(self._options.cachedir), parent)
            code = 0
        except Exception:  # noqa: BLE001 - the process ends here, whatever happened
            _LOG.exception("the process that runs beacons failed")
        finally:
            logging.shutdown()
            os._exit(code)

    def _set_engines(self, wanted: bool) -> None:
        if self._engines is None:
            return
        if wanted:
            self._engines.want(True)
        else:
            self._engines.stop()

    def _run_engine(self, row: EngineRow) -> None:
        """Run one engine in this process, a child of the zygote, with the runtime of its jobs."""
        self._socket.close()
        engines.name_logs("minion", self._options, f"engine {row.name}")
        self._backend.prepare_job(self._runtime, {})
        engine_runs.run_engine(self._runtime, row.name, row.module, row.arguments)

    def _stop_beacon_process(self) -> bool:
        """End the process that runs beacons. Return whether there was such a process."""
        if not self._beacon_process:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._beacon_process, signal.SIGTERM)
        os.waitpid(self._beacon_process, 0)
        self._beacon_process = 0
        return True

    def _reap(self) -> None:
        if self._beacon_process and os.waitpid(self._beacon_process, os.WNOHANG)[0]:
            self._beacon_process = 0
            self._send(BEACONS_ENDED)
        if self._engines is not None:
            self._engines.check()
        for pid in list(self._jobbers):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                jid, own = self._jobbers.pop(pid)
                if own:
                    self._send(OWN_JOB_ENDED + jid.encode())
                elif code := os.waitstatus_to_exitcode(status):
                    self._send(JOB_DIED + f"{code} {jid}".encode())
        while self._waiting and len(self._jobbers) < self._options.process_count_max and not self._ending:
            self._fork(*self._waiting.popleft())

    def _take_credentials(self, value: CredentialFields) -> None:
        self._backend.set_credentials(Credentials(**value))
        self._renew_runtime(self._grains)

    def _end(self, seconds: float) -> None:
        self._ending = max(0.01, seconds)

    def _refresh(self) -> None:
        wanted = self._refreshes.take()
        if not wanted:
            return
        # A new runtime reads grains and modules first, because the pillar is compiled with the new grains.
        self._refresh_grains(tries=1)
        if wanted != {"pillar"}:
            # The main process gets the grains before the master does, so that both match targets with the same grains.
            self._announce()
        if "pillar" in wanted:
            self._refresh_pillar(tries=1, clean_cache=True)
        # Beacons run with the new runtime, and lose their state, as in Salt.
        if self._stop_beacon_process():
            self._set_beacon_process(wanted=True)

    def _refresh_grains(self, tries: int = 0) -> None:
        """Gather the minion's grains in the zygote; each job would otherwise gather its own, which takes longer than most jobs.

        Give up after ``tries`` failures (0: never).
        """
        self._renew_runtime(None)
        grains = self._retry("grains", lambda: dict(self._runtime.grains), tries)
        if grains is not None:
            self._grains = grains
        self._renew_runtime(self._grains)

    def _refresh_pillar(self, tries: int = 0, *, clean_cache: bool = False) -> None:
        """Fetch the minion's pillar and send it to the main process. Give up after ``tries`` failures (0: never)."""
        pillar = self._retry("pillar", lambda: self._backend.pillar(self._runtime, clean_cache=clean_cache), tries)
        if pillar is not None:
            self._pillar = pillar
            # Announce first: the master matches targets with this pillar from now on.
            self._announce()
            self._renew_runtime(self._grains)

    def _retry(self, what: str, work: Callable[[], Result], tries: int) -> Result | None:
        """Return the value of ``work()``, tried every 5 seconds until it succeeds; None after ``tries`` failures (0: no limit)."""
        for attempt in itertools.count(1):
            try:
                return self._calls.call(work)
            except (ChannelError, ForkEnded) as error:
                _LOG.error("%s cannot be obtained: %s", what, error)
            if attempt == tries or (select.select([self._socket], [], [], _RETRY)[0] and self._ended_meanwhile()):
                break
        return None

    def _ended_meanwhile(self) -> bool:
        message = self._received()
        if message:
            self._handle(msgpack.unpackb(message, strict_map_key=False))
        return message == b"" or bool(self._ending)

    def _renew_runtime(self, grains: Mapping[str, object] | None) -> None:
        """Replace the Runtime (grains, pillar, modules) of later jobs after credentials, grains, pillar or modules
        changed.

        ``grains`` None: they are gathered when they are first needed.
        """
        old, self._runtime = self._runtime, self._new_runtime(grains)
        # Frozen objects are never collected, so the old runtime is closed explicitly.
        old.close()

    def _new_runtime(self, grains: Mapping[str, object] | None) -> Runtime:
        runtime = self._backend.runtime(self._pillar, self._procs, lambda: self._runtime.grains, grains)
        runtime.loader.index(_INDEXED)
        share()
        return runtime

    def _announce(self) -> None:
        """Send the READY message with grains and pillar to the main process, which matches targets with them."""
        targeting: Targeting = {"grains": dict(self._grains or {}), "pillar": dict(self._pillar)}
        self._send(READY + msgpack.packb(targeting, default=str))


def _may_wait(fun: str | list[str]) -> bool:
    return not _NEVER_WAIT.issuperset(fun if isinstance(fun, list) else [fun])


def _close_all_but(keep: int) -> None:
    """Close all file descriptors except ``keep``, in the new zygote.

    They are the main process's connections: if the zygote held them open, the master would never see them end.
    """
    highest = os.sysconf("SC_OPEN_MAX")
    os.closerange(3, keep)
    os.closerange(keep + 1, min(highest, 65536))


def end_zygote(pid: int) -> None:
    """End the zygote process ``pid`` after its socket was closed. Jobbers continue and leave their returns in the spool."""
    deadline = time.monotonic() + _PATIENCE
    with contextlib.suppress(ChildProcessError):
        while not os.waitpid(pid, os.WNOHANG)[0]:
            if time.monotonic() > deadline:
                # The zygote is waiting for a master that does not answer.
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return
            time.sleep(0.02)


def start(
    options: MinionOptions, masters: Masters, identity: Identity, credentials: Credentials
) -> tuple[int, FramedSocket]:
    """Fork the zygote of a minion that has a master. Return its process id and the main process's end of the socket."""
    return fork(options, masters, MasterBackend(options, masters, identity, credentials))


def fork(options: MinionOptions, masters: Masters, backend: Backend) -> tuple[int, FramedSocket]:
    """Fork a zygote with this backend. Return its process id and the main process's end of the socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    share()
    pid = os.fork()
    if pid:
        theirs.close()
        return pid, FramedSocket(ours)
    code = 1
    try:
        _close_all_but(theirs.fileno())
        # Ctrl-C of the terminal and SIGTERM of the container are handled by the main process.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        Zygote(options, masters, backend, FramedSocket(theirs)).run()
        code = 0
    except Exception:  # noqa: BLE001 - as above
        _LOG.exception("the zygote (process that forks jobs) failed")
    finally:
        logging.shutdown()
        os._exit(code)
