"""TCP links of loopback that a test takes in its hand: cut, held (as by a network that drops every packet), slowed, healed.

    with Network() as network:
        link = network.link(redis_port)      # connect to link.port instead
        link.hold()                          # a partition: both ends see silence, no end of a connection
        link.heal()                          # what was on its way arrives
        link.cut()                           # connections are reset, new ones end at once
        link.heal()

One thread moves the bytes of all links. Each call of a link returns when what it asks for is in force.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import queue
import selectors
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

#: Bytes read at once.
_PIECE = 64 * 1024

#: Bytes that wait in one direction before no more are read: what a receiver does not take must reach the sender, too.
_MOST_WAITING = 1024 * 1024

#: Closes with a reset: the other end learns of it at once, and nothing that is buffered is sent.
_RESET = struct.pack("ii", 1, 0)

#: Seconds that a call waits for the thread.
_PATIENCE = 60.0


class Mode(enum.Enum):
    """What a link does with its connections."""

    OPEN = enum.auto()
    #: Nothing passes, in either direction; new connections are taken by the system and hear nothing.
    HELD = enum.auto()
    #: No connection lives longer than its first byte.
    CUT = enum.auto()


@dataclass(eq=False)
class _End:
    """One socket of a connection through a link, and the bytes on their way to it."""

    socket: socket.socket
    link: Link
    #: (not before this time, bytes), oldest first.
    waiting: deque[tuple[float, bytes]] = field(default_factory=deque)
    size: int = 0
    #: It has said its last byte.
    ended: bool = False
    #: The other end's last byte has been passed on.
    told: bool = False
    connected: bool = True
    registered: int = 0
    other: _End = field(init=False)


class Link:
    """One port that leads to one of several others: each connection to the next of them that is there."""

    def __init__(self, network: Network, listener: socket.socket, targets: tuple[int, ...]) -> None:
        self._network = network
        self._listener = listener
        self._host, self.port = listener.getsockname()
        self._targets = itertools.cycle(targets)
        self._tries = len(targets)
        self._mode = Mode.OPEN
        self._delay = 0.0
        self._ends: set[_End] = set()

    @property
    def mode(self) -> Mode:
        """What it does at the moment."""
        return self._mode

    def hold(self) -> None:
        """A network that drops every packet: silence for both ends, until it is healed."""
        self._network.do(lambda: self._set(Mode.HELD))

    def cut(self) -> None:
        """Resets all connections, and each new one."""
        self._network.do(lambda: self._set(Mode.CUT))

    def heal(self, *, reset: bool = False) -> None:
        """Everything passes again, also what was held. ``reset``: connections of before are reset, and that is lost."""

        def heal() -> None:
            if reset:
                self._reset()
            self._set(Mode.OPEN)

        self._network.do(heal)

    def reset(self) -> None:
        """Resets all connections; new ones live."""
        self._network.do(self._reset)

    def slow(self, seconds: float) -> None:
        """Each byte takes so much longer in each direction from now on; 0: as fast as it goes."""

        def slow() -> None:
            self._delay = seconds

        self._network.do(slow)

    def connections(self) -> int:
        """How many there are."""
        return int(self._network.do(lambda: len(self._ends) // 2))

    # ---------------------------------------------------------------------------------------------- in the network's thread

    def _set(self, mode: Mode) -> None:
        self._mode = mode
        if mode is Mode.CUT:
            self._reset()
        self._network.watch_listener(self._listener, self, wanted=mode is not Mode.HELD)
        for end in self._ends:
            self._look(end)

    def _reset(self) -> None:
        for end in list(self._ends):
            self._close(end)

    def accept(self) -> None:
        """A connection waits."""
        try:
            near, _ = self._listener.accept()
        except OSError:
            return
        if self._mode is Mode.CUT:
            _abort(near)
            return
        far = self._connected()
        if far is None:
            _abort(near)
            return
        ends = [_End(one, self) for one in (near, far)]
        for end, other in zip(ends, reversed(ends), strict=True):
            end.socket.setblocking(False)
            end.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.other = other
            self._ends.add(end)
        for end in ends:
            self._look(end)

    def _connected(self) -> socket.socket | None:
        for _ in range(self._tries):
            far = socket.socket()
            # Of loopback: it is taken, or refused, at once; a full backlog is as good as nobody.
            far.settimeout(0.5)
            with contextlib.suppress(OSError):
                far.connect((self._host, next(self._targets)))
                return far
            far.close()
        return None

    def serve(self, end: _End, events: int) -> None:
        """Something can be read from this end, or written to it."""
        if self._mode is not Mode.OPEN or end not in self._ends:
            return
        try:
            if events & selectors.EVENT_READ:
                self._read(end)
            if events & selectors.EVENT_WRITE:
                self._write(end)
        except BlockingIOError:
            pass
        except OSError:
            self._close(end)
            return
        if end.told and end.other.told:
            self._close(end, reset=False)
            return
        self._look(end)
        self._look(end.other)

    def _read(self, end: _End) -> None:
        piece = end.socket.recv(_PIECE)
        if piece:
            end.other.waiting.append((time.monotonic() + self._delay, piece))
            end.other.size += len(piece)
        else:
            end.ended = True
            if not end.other.waiting:
                self._tell(end.other)

    def _write(self, end: _End) -> None:
        while end.waiting and end.waiting[0][0] <= time.monotonic():
            due, piece = end.waiting.popleft()
            sent = 0
            try:
                sent = end.socket.send(piece)
            finally:
                end.size -= sent
                if sent < len(piece):
                    end.waiting.appendleft((due, piece[sent:]))
            if sent < len(piece):
                return
        if not end.waiting and end.other.ended:
            self._tell(end)

    def _tell(self, end: _End) -> None:
        """The other one has said all that it had to say."""
        if not end.told:
            end.told = True
            with contextlib.suppress(OSError):
                end.socket.shutdown(socket.SHUT_WR)

    def _look(self, end: _End) -> None:
        """What of this end's events matters now."""
        wanted = 0
        if self._mode is Mode.OPEN:
            if not end.ended and end.other.size < _MOST_WAITING:
                wanted |= selectors.EVENT_READ
            if end.waiting:
                due = end.waiting[0][0]
                if due <= time.monotonic():
                    wanted |= selectors.EVENT_WRITE
                else:
                    self._network.later(due, end)
        self._network.watch(end, wanted)

    def due(self, end: _End) -> None:
        """The time of bytes that were slowed has come."""
        if end in self._ends:
            self._look(end)

    def _close(self, end: _End, *, reset: bool = True) -> None:
        for one in (end, end.other):
            self._ends.discard(one)
            self._network.watch(one, 0)
            if reset:
                _abort(one.socket)
            else:
                one.socket.close()

    def close(self) -> None:
        """Ends it for good."""
        self._reset()
        self._network.watch_listener(self._listener, self, wanted=False)
        self._listener.close()


def _abort(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    one.close()


class Network:
    """All links of a test, and the thread that moves their bytes."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._asked: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._wake, self._woken = socket.socketpair()
        self._woken.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._links: list[Link] = []
        self._listening: set[Link] = set()
        self._late: dict[_End, float] = {}
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="network", daemon=True)
        self._thread.start()

    def __enter__(self) -> Network:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def link(
        self, *targets: int, port: int = 0, host: str = "127.0.0.1", listener: socket.socket | None = None
    ) -> Link:
        """A new link to these ports of an address of loopback, from ``port`` there (0: one that the system gives away).
        ``listener``: a socket that listens at an address of the same name, maybe in another network namespace.
        """
        listener = listener or socket.create_server((host, port), backlog=256)
        listener.setblocking(False)
        made = Link(self, listener, targets)

        def add() -> None:
            self._links.append(made)
            self.watch_listener(listener, made, wanted=True)

        self.do(add)
        return made

    def close(self) -> None:
        """Resets every connection, and ends the thread."""

        def end() -> None:
            self._ending = True
            for link in self._links:
                link.close()

        if self._thread.is_alive():
            self.do(end)
            self._thread.join(_PATIENCE)
        self._selector.close()
        self._wake.close()
        self._woken.close()

    def do(self, action: Callable[[], Any]) -> Any:
        """What ``action`` returned, which the thread did."""
        done: Future[Any] = Future()
        self._asked.put((action, done))
        self._wake.send(b"!")
        return done.result(_PATIENCE)

    # ------------------------------------------------------------------------------------------------------- in the thread

    def watch(self, end: _End, wanted: int) -> None:
        """From now on these events of an end are served."""
        if wanted == end.registered:
            return
        if not wanted:
            # A held connection that is reset would be told of again and again.
            self._selector.unregister(end.socket)
        elif end.registered:
            self._selector.modify(end.socket, wanted, end)
        else:
            self._selector.register(end.socket, wanted, end)
        end.registered = wanted

    def watch_listener(self, listener: socket.socket, link: Link, *, wanted: bool) -> None:
        """Whether connections are accepted."""
        if wanted and link not in self._listening:
            self._selector.register(listener, selectors.EVENT_READ, link)
            self._listening.add(link)
        elif not wanted and link in self._listening:
            self._selector.unregister(listener)
            self._listening.discard(link)

    def later(self, due: float, end: _End) -> None:
        """Bytes for this end may go on at this time."""
        self._late[end] = due

    def _run(self) -> None:
        while not self._ending:
            self._turn()

    def _turn(self) -> None:
        nearest = min(self._late.values(), default=None)
        timeout = None if nearest is None else max(0.0, nearest - time.monotonic())
        for key, events in self._selector.select(timeout):
            if isinstance(key.data, Link):
                key.data.accept()
            elif isinstance(key.data, _End):
                key.data.link.serve(key.data, events)
            else:
                self._carry_out()
        now = time.monotonic()
        for end in [end for end, due in self._late.items() if due <= now]:
            del self._late[end]
            end.link.due(end)

    def _carry_out(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)
        while True:
            try:
                action, done = self._asked.get_nowait()
            except queue.Empty:
                return
            try:
                done.set_result(action())
            except Exception as error:  # noqa: BLE001 - it is the caller's
                done.set_exception(error)
