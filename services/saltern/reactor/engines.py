"""The engines of a master (option ``engines``): a process for each, children of one process beside the reactor's own.

Of several reactors one runs the engines: it holds a lock in Redis, which it renews. If it ends, another one takes over.
An engine has the reactor's rights: it fires and receives events, publishes jobs, and starts runners and wheel functions.
Source: docs/decisions/0018-engines.md
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import zmq

from masterstore.errors import StoreError
from masterstore.events import EventKeeper
from masterstore.locks import Locks
from masterstore.store import Store
from saltern.kit.config.engine_rows import EngineRow
from saltern.kit.config.master import MasterOptions, as_opts
from saltern.kit.config.reactor_rows import wanted_tags
from saltern.kit.jobs.control_master import ControlMaster
from saltern.kit.links.control import ControlClient
from saltern.kit.links.event_bus import EventSender, EventSubscriber
from saltern.kit.links.sockets import LinkKeys
from saltern.kit.process.engines import EngineProcesses, name_logs
from saltern.kit.process.prefork import end_with_parent
from saltern.kit.process.process import Stop
from saltern.kit.process.service import Role
from saltern.kit.trees.served_files import file_server
from saltern.reactor.event_store import event_stores
from statecore.runtime.engine_runs import run_engine
from statecore.runtime.runtime import Runtime

_LOG = logging.getLogger("saltern.engines")

#: Name of the lock; milliseconds after which another reactor takes over; seconds between two renewals.
_LOCK = "engines"
_LOCK_MS = 10_000
_RENEW_EVERY = 2.5

#: Seconds between two looks at the processes.
_TICK = 0.25

#: Seconds that the parent of the engines has to end.
_PATIENCE = 4.0

#: Seconds to wait until the event bus confirms a subscription.
_BUS_PATIENCE = 2.0

#: User of the jobs and runners that engines start.
USER = "engines"


class EnginesEnded(Exception):
    """Raised when the parent process of the engines has ended without having been asked to. The message says how it
    ended.
    """


@dataclass(frozen=True)
class _Links:
    """Connections of one engine to the master: port 4507, and a subscription to the event bus for results that
    ``EngineMaster`` itself waits for.
    """

    options: MasterOptions
    control: ControlClient
    events: EventSubscriber
    sender: EventSender
    user: str


class EngineMaster(ControlMaster):
    """The master as an engine uses it. The events that the engine reads arrive over a connection of their own, so that
    they are not lost while the engine waits for a runner's result.
    """

    def __init__(self, role: Role) -> None:
        self._role = role
        self._stream: EventSubscriber | None = None
        self._subscribed: set[str] = set()
        self._stream_of = 0
        super().__init__(self._opened(), "", self._opened)

    def events(self, prefix: str, seconds: float) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Yield (tag, data) of the events of the master's bus whose tags start with the prefix, for ``seconds``
        seconds.

        After the first call, events that arrive between two calls are stored for the next call.
        """
        stream = self._opened_stream()
        deadline = time.monotonic() + seconds
        if prefix not in self._subscribed:
            stream.subscribe(prefix)
            while not stream.ready(_BUS_PATIENCE):
                _LOG.warning("the event publisher does not answer")
            self._subscribed.add(prefix)
        while (left := deadline - time.monotonic()) > 0:
            event = stream.next(left)
            if event is not None and event[0].startswith(prefix):
                yield event

    def _opened_stream(self) -> EventSubscriber:
        if self._stream is None or self._stream_of != os.getpid():
            self._stream_of, self._subscribed = os.getpid(), set()
            self._stream = EventSubscriber(zmq.Context(), self._role.options, LinkKeys.load(self._role.keys))
        return self._stream

    def _opened(self) -> _Links:
        """Return a new _Links: the engine's connections to ports 4507 and 4513 and to the event publisher. They stay open
        until the process ends.
        """
        options, keys = self._role.options, LinkKeys.load(self._role.keys)
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        store = event_stores(self._role)("engine")
        keeper = EventKeeper(store.events, wanted_tags(options), options.events_kept_count)
        return _Links(
            options,
            ControlClient(context, options, keys),
            EventSubscriber(context, options, keys),
            EventSender(context, options, keys, keeper),
            USER,
        )


class EngineLock:
    """The lock that decides which reactor runs the engines."""

    def __init__(self, locks: Locks, clock: Callable[[], float] = time.monotonic) -> None:
        self._locks = locks
        self._clock = clock
        self._owner = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
        self._next = self._lost_at = 0.0
        self._away = False

    def held(self) -> bool:
        """Return whether this process has the lock. Also renews the lock, if it is time to do so.

        While Redis does not answer, the lock counts as held until it would have expired.
        """
        now = self._clock()
        if now >= self._next:
            self._next = now + _RENEW_EVERY
            try:
                if self._locks.acquire(_LOCK, self._owner, _LOCK_MS) is not None:
                    self._lost_at = now + _LOCK_MS / 1000
                else:
                    self._lost_at = 0.0
                self._away = False
            except StoreError as error:
                if not self._away:
                    _LOG.error("engines: %s", error)
                self._away = True
        return self._clock() < self._lost_at

    def release(self) -> None:
        """Give up the lock, so that another reactor runs the engines at once."""
        try:
            self._locks.release(_LOCK, self._owner)
        except StoreError as error:
            _LOG.info("engines: the lock expires by itself: %s", error)


class EngineParent:
    """The process that runs the engines of one reactor, as the reactor's main loop sees it."""

    def __init__(self, role: Role, rows: Sequence[EngineRow]) -> None:
        """Start the process that runs the engines. Call this before the present process has ZeroMQ sockets and threads
        of its own.
        """
        parent = os.getpid()
        self._pid = os.fork()
        if not self._pid:
            _become(role, rows, parent)

    def check(self) -> None:
        """Raise EnginesEnded if the process that runs the engines has ended."""
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            self._pid = 0
            code = os.waitstatus_to_exitcode(status)
            raise EnginesEnded(f"the process of the engines ended with {code}; its log says why")

    def stop(self) -> None:
        """End the process that runs the engines, and all engines."""
        if not self._pid:
            return
        os.kill(self._pid, signal.SIGTERM)
        deadline = time.monotonic() + _PATIENCE
        while not os.waitpid(self._pid, os.WNOHANG)[0]:
            if time.monotonic() > deadline:
                _LOG.error("the process of the engines did not end and is killed")
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
                break
            time.sleep(0.02)
        self._pid = 0


def _become(role: Role, rows: Sequence[EngineRow], parent: int) -> None:
    """Run the engines in this process, a child of the reactor, and end the process."""
    code = 1
    try:
        # The reactor's connections, and the socket of its probes: another reactor must be able to use the port.
        os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), 65536))
        stop = Stop()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop.request)
        end_with_parent(parent)
        name_logs(role.name, role.options, "engines")
        _watch_over(replace(role, stop=stop), rows)
        code = 0
    except Exception:  # noqa: BLE001 - the process ends here, whatever happened
        _LOG.exception("the process of the engines failed")
    finally:
        logging.shutdown()
        os._exit(code)


def _watch_over(role: Role, rows: Sequence[EngineRow]) -> None:
    store: Store = event_stores(role)("engines")
    lock = EngineLock(store.locks)
    processes = EngineProcesses(rows, lambda row: _run(role, row))
    runs = False
    try:
        while not role.stop.requested:
            if (held := lock.held()) != runs:
                _LOG.info("this reactor runs the engines" if held else "another reactor runs the engines")
                runs = held
                if held:
                    processes.want(True)
                else:
                    processes.stop()
            processes.check()
            time.sleep(_TICK)
    finally:
        processes.stop()
        lock.release()


def _run(role: Role, row: EngineRow) -> None:
    """Run one engine of the master in this process."""
    options = role.options
    name_logs(role.name, options, f"engine {row.name}")
    master = EngineMaster(role)
    opts = as_opts(options, file_client="local")
    runtime = Runtime(opts, files=file_server(options), pillar={}, events=master, master=master)
    run_engine(runtime, row.name, row.module, row.arguments)
