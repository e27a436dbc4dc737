"""The links between roles: which role binds which port, which names may connect, and the CurveZMQ keys.

Every link but 4505 and 4506 (Salt's protocol) is encrypted and authenticated by CurveZMQ. A role's key directory, written
by ``saltern keygen``, holds ``curve.secret`` (the role's secret key, Z85) and ``known/<name>.pub`` (all public keys, Z85), or
``known.<name>.pub`` where directories cannot be nested. While a key is replaced (``saltern rotate``) such a file has two lines,
the old and the new key. A server (``curve_auth``) admits only the names in its row, and operators with keys of their own where
the row says so (``saltern keygen --operator``).
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import zmq

from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.config.reading import PortTaken
from saltern.kit.links.addresses import Addresses, hosts_of, other_than
from saltern.kit.links.socket_epoll import SocketEpoll

_LOG = logging.getLogger("saltern.links")

#: Names for which keys are made: the roles, and "cli" for the operators' commands.
NAMES = ("publisher", "reqserver", "mworker", "eventpublisher", "reactor", "maintenance", "cli", "api")

#: Names of the master's own processes.
ROLES = frozenset(NAMES) - {"cli", "api"}

#: Form of the name of an operator with a key of their own; such a name is none of NAMES.
OPERATOR = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,31}(?<!\.)")

#: Replaces ``known/`` in the file names of a flat directory.
FLAT_KNOWN = "known."


@dataclass(frozen=True)
class Link:
    """One internal link between roles: the name of the server, the names of the clients, and the options with the
    server's TCP port and hosts.
    """

    server: str
    clients: frozenset[str]
    port: Callable[[MasterOptions], int]
    hosts: Callable[[MasterOptions], str | list[str]]
    meaning: str
    #: Whether operators with keys of their own may connect, too.
    operators: bool = False
    #: Keys that belong to no role need some right in the master's options: who listens reads every event.
    rights_needed: bool = False


LINKS: Mapping[str, Link] = {
    "control": Link(
        "reqserver",
        frozenset({"cli", "api", "reactor", "mworker", "maintenance"}),
        lambda options: options.control_port,
        lambda options: options.reqserver_host,
        "publish, runner, wheel, jobs, keys",
        operators=True,
    ),
    "workers": Link(
        "reqserver",
        frozenset({"mworker"}),
        lambda options: options.workers_port,
        lambda options: options.reqserver_host,
        "requests handed to idle workers, and their answers",
    ),
    "event_pull": Link(
        "eventpublisher",
        frozenset({"mworker", "maintenance", "reactor", "publisher", "reqserver"}),
        lambda options: options.event_pull_port,
        lambda options: options.eventpublisher_host,
        "events in",
    ),
    "event_pub": Link(
        "eventpublisher",
        frozenset({"cli", "api", "reactor", "mworker", "maintenance"}),
        lambda options: options.event_pub_port,
        lambda options: options.eventpublisher_host,
        "events out, by prefix of the tag",
        operators=True,
        rights_needed=True,
    ),
}


def read_known(directory: Path) -> dict[str, tuple[bytes, ...]]:
    """Return the map of name to public keys (Z85) for all names in a key directory. Raises OSError.

    A name has one key, or two while it is replaced; the first one is tried first.
    """
    return {name: tuple(path.read_bytes().split()) for name, path in known_files(directory)}


def known_files(directory: Path) -> Iterator[tuple[str, Path]]:
    """Yield (name, path) of all public keys in a key directory; a name of the flat form comes last. Raises OSError."""
    # Not by Path.glob, which compiles regular expressions: half a megabyte of each role.
    nested = directory / "known"
    # A mounted Kubernetes Secret is flat: its file names contain no slash.
    for folder, prefix in ((nested, ""), (directory, FLAT_KNOWN)):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path.name.startswith(prefix) and path.suffix == ".pub":
                yield path.stem.removeprefix(prefix), path


@dataclass(frozen=True)
class LinkKeys:
    """The CurveZMQ key pair of one role or operator, and the public keys of all names."""

    secret: bytes
    public: bytes
    #: Name -> its public keys: one, or two while the key is replaced.
    known: Mapping[str, Sequence[bytes]]
    #: Directory that the keys were read from; None: the keys are never read again.
    directory: Path | None = None

    @classmethod
    def load(cls, directory: Path) -> LinkKeys:
        """Return the CurveZMQ keys from a key directory.

        Raises ConfigError whose message names the missing file and the command that makes it.
        """
        try:
            secret = (directory / "curve.secret").read_bytes().strip()
            return cls(secret, zmq.curve_public(secret), read_known(directory), directory)
        except PermissionError as error:
            raise ConfigError(
                f"{error.filename}: {error.strerror} to user {os.geteuid()}. A role's is its user's (`saltern keygen --owner`); "
                "for an operator `saltern keygen --out DIR --operator NAME` makes DIR/NAME, which option key_dir names"
            ) from error
        except OSError as error:
            raise ConfigError(
                f"{error.filename}: {error.strerror}. Keys are made by `saltern keygen --out DIR`; "
                "option key_dir names this role's part of DIR"
            ) from error
        except (ValueError, zmq.ZMQError) as error:
            raise ConfigError(f"{directory / 'curve.secret'}: not a CurveZMQ key: {error}") from error

    def server_keys(self, name: str) -> Sequence[bytes]:
        """Return the public keys (Z85) of which the server ``name`` must have one; it has two while its key is replaced.

        Raises ConfigError if no key is in the directory.
        """
        if not self.known.get(name):
            raise ConfigError(f"no public key of {name} among {sorted(self.known)}; run `saltern keygen` again")
        return self.known[name]


#: A connection without a sign of life for three seconds is given up, whether it is silent or waits for an acknowledgement.
_PROBES: Mapping[int, int] = {
    zmq.TCP_KEEPALIVE: 1,
    zmq.TCP_KEEPALIVE_IDLE: 1,
    zmq.TCP_KEEPALIVE_INTVL: 1,
    zmq.TCP_KEEPALIVE_CNT: 3,
    # Milliseconds.
    zmq.TCP_MAXRT: 3000,
}


def without_aborts(socket: zmq.Socket[bytes]) -> None:
    """Set the options of a socket that strangers, or operators, connect to, so that no connection can end this process.

    libzmq (up to 4.3.5) calls abort() where it has to write a heartbeat, or the answer to one, on a connection that is broken
    but was not read to its end. A connection is read to its end unless its queue is full. So the socket sends no heartbeats
    of its own, and its queues have no limit. Call it before ``bind``.
    """
    socket.setsockopt(zmq.HEARTBEAT_IVL, 0)
    socket.setsockopt(zmq.RCVHWM, 0)


#: Milliseconds that one attempt to connect may take.
CONNECT_MS = 3000


def connect(socket: zmq.Socket[bytes], link: str, options: MasterOptions, keys: LinkKeys, host: str = "") -> str:
    """Connect ``socket`` to the server of a link, encrypted by CurveZMQ, and return the endpoint (``tcp://host:port``).

    The server's first known key is expected. ``LinkConnection`` also follows keys that are replaced. ``host``: the server's
    host; empty: the first one of the link's option.
    """
    return _connect(socket, link, options, keys, 0, host or hosts_of(LINKS[link].hosts(options))[0])


def _connect(
    socket: zmq.Socket[bytes], link: str, options: MasterOptions, keys: LinkKeys, number: int, host: str
) -> str:
    row = LINKS[link]
    socket.setsockopt(zmq.CURVE_SECRETKEY, keys.secret)
    socket.setsockopt(zmq.CURVE_PUBLICKEY, keys.public)
    socket.setsockopt(zmq.CURVE_SERVERKEY, keys.server_keys(row.server)[number])
    # A restarted server is found again quickly, and the attempts become rare during a long outage.
    socket.setsockopt(zmq.RECONNECT_IVL, 50)
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
    # Notices a peer that vanished without closing (a killed container), so that its replacement is connected to. The kernel does
    # it: heartbeats of ZeroMQ end the peer's process (``without_aborts``).
    for name, value in _PROBES.items():
        socket.setsockopt(name, value)
    # An address that swallows every packet (a node that is lost) is left, and the name looked up anew: the kernel would try it for
    # two minutes.
    socket.setsockopt(zmq.CONNECT_TIMEOUT, CONNECT_MS)
    endpoint = f"tcp://{host}:{row.port(options)}"
    socket.connect(endpoint)
    return endpoint


#: Seconds between two looks at the files of a connection's keys, and at its failed handshakes.
FOLLOW_SECONDS = 0.25

#: Events of libzmq: the server has another key than the expected one; it refused this role's key, after which libzmq does not try
#: again; all is well.
_WRONG_KEY = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
_REFUSED = zmq.EVENT_HANDSHAKE_FAILED_AUTH
_RIGHT_KEY = zmq.EVENT_HANDSHAKE_SUCCEEDED
#: A connection ended; an address was tried in vain.
_LOST = zmq.EVENT_DISCONNECTED
_UNANSWERED = zmq.EVENT_CONNECT_RETRIED
_HANDSHAKES = _WRONG_KEY | _REFUSED | _RIGHT_KEY | _LOST

#: Seconds after which an address that has not answered is left for another one of the same role.
TRY_SECONDS = 1.0


class LinkConnection:
    """A client's connection of a link, which follows replaced keys: its own, and the server's. Used by one thread.

    If the role that serves the link runs several times, the connection goes to one of them, and to another one when that is
    lost. Call ``follow`` where no message is expected to be on its way.
    """

    def __init__(
        self, socket: zmq.Socket[bytes], link: str, options: MasterOptions, keys: LinkKeys, host: str = ""
    ) -> None:
        """Connect ``socket`` to a server of the link. Raises ConfigError if a key is missing.

        ``keys`` with a directory are read from it again, because the files may have been replaced since ``keys`` was
        loaded. ``host``: the only host to connect to; empty: one of those that the link's option names.
        """
        self.keys = keys
        self._addresses = Addresses((host,) if host else hosts_of(LINKS[link].hosts(options)), follow=not host)
        self.host = other_than("", self._addresses.current)
        #: Whether the connection stands, as far as libzmq has reported it.
        self.up = False
        #: Number of connections that stood so far.
        self.times = 0
        self._lost = self._renewed = self._unanswered = False
        #: Event number of the last handshake that ``follow`` has not seen; 0: there was none.
        self._handshake = 0
        self._opened_at = 0.0
        self._socket, self._link, self._options = socket, link, options
        self._next_look = time.monotonic() + FOLLOW_SECONDS
        #: Files with this role's secret key and the server's public keys; none if the keys are never read again.
        self._files = _files_of(keys.directory, LINKS[link].server)
        self._seen = self._signature()
        self._number = 0
        self._told = ""
        self._monitor: zmq.Socket[bytes] | None = None
        self._epoll: SocketEpoll | None = None
        #: Number of libzmq's reports in the epoll of ``report_to``; -1: there are none.
        self.reports = -1
        self.endpoint = ""
        #: Why the last handshake failed: "refused" (the server refuses this key), "wrong server key", or "".
        self.trouble = ""
        if keys.directory is not None:
            # A directory whose files are just being replaced is read later.
            with contextlib.suppress(ConfigError):
                self.keys = LinkKeys.load(keys.directory)
        self._open()

    def follow(self) -> bool:
        """Connect again if a key of the link was replaced, the handshake failed, or the server is lost and there is another one.
        Return whether there is a new connection: what was sent over the one before may be lost.

        A handshake fails if the server has its other known key, or refuses this role's key. The key files are examined every
        FOLLOW_SECONDS; unreadable files are logged and tried again.
        """
        now = time.monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + FOLLOW_SECONDS
        self.look()
        failure, self._handshake = self._handshake, 0
        if self.keys.directory is not None and self._follow_keys(failure):
            return True
        if self._is_away(now) and (host := other_than(self.host, self._addresses.current)) != self.host:
            self.host = host
            self.reconnect()
            return True
        renewed, self._renewed = self._renewed, False
        return renewed

    def _is_away(self, now: float) -> bool:
        """Return whether the server is lost, or has not answered for so long that another one is tried."""
        if self.up:
            return False
        return self._lost or self._unanswered or now - self._opened_at > TRY_SECONDS

    def _follow_keys(self, failure: int) -> bool:
        """Connect again if a key was replaced, or the handshake failed because of a key; return whether that was done."""
        seen = self._signature()
        if seen != self._seen and self.keys.directory is not None:
            before = self._seen
            self._seen = seen
            try:
                if self._reread(self.keys.directory):
                    return True
            except ConfigError as error:
                self._seen = before
                if str(error) != self._told:
                    self._told = str(error)
                    _LOG.warning("link %s: %s; the connection stays", self._link, error)
        if failure & _WRONG_KEY and len(self.keys.server_keys(LINKS[self._link].server)) > 1:
            self._number += 1
        elif not failure & _REFUSED:
            return False
        self.reconnect()
        return True

    def report_to(self, epoll: SocketEpoll) -> None:
        """Let ``epoll`` wait for libzmq's reports of this connection, from now on. Call ``look`` when it returns ``reports``."""
        self._epoll = epoll
        if self._monitor is not None:
            self.reports = epoll.add(self._monitor)

    def is_due(self) -> bool:
        """Return whether the next call of ``follow`` examines the key files: FOLLOW_SECONDS have passed since the last
        time.
        """
        return time.monotonic() >= self._next_look

    def reconnect(self) -> None:
        """Close the connection and make a new one. Queued messages are sent before, within the socket's linger time."""
        self._close_monitor()
        # libzmq ends a connection by itself where the server refuses the client's key.
        with contextlib.suppress(zmq.ZMQError):
            self._socket.disconnect(self.endpoint)
        self._open()

    def close(self) -> None:
        """Close the connection's ZeroMQ socket and the monitor of its handshakes."""
        self._addresses.close()
        self._close_monitor()
        self._socket.close()

    def _open(self) -> None:
        keys = self.keys.server_keys(LINKS[self._link].server)
        # Unread, reports of an address that does not answer would pile up: they matter only where there is another address.
        several = len(self._addresses.current) > 1
        self._handshake = 0
        self._monitor = new_monitor(self._socket, _HANDSHAKES | (_UNANSWERED if several else 0))
        if self._epoll is not None:
            self.reports = self._epoll.add(self._monitor)
        self.up = self._lost = self._renewed = self._unanswered = False
        self._opened_at = time.monotonic()
        number = self._number % len(keys)
        self.endpoint = _connect(self._socket, self._link, self._options, self.keys, number, self.host)

    def _close_monitor(self) -> None:
        if self._monitor is not None:
            if self._epoll is not None:
                self._epoll.remove(self.reports)
                self.reports = -1
            self._socket.disable_monitor()
            self._monitor.close(linger=0)
            self._monitor = None

    def _reread(self, directory: Path) -> bool:
        """Read the keys of the link again. Connect again if the role's secret key was replaced or the expected key of
        the server is no longer valid. Return whether a new connection was made.

        If the expected key is still valid, the connection stays. Raises ConfigError.
        """
        read = LinkKeys.load(directory)
        publics = read.server_keys(LINKS[self._link].server)
        before, self.keys, self._told = self.keys, read, ""
        current = before.server_keys(LINKS[self._link].server)
        expected = current[self._number % len(current)]
        self._number = list(publics).index(expected) if expected in publics else 0
        if read.secret == before.secret and expected in publics:
            return False
        _LOG.info("link %s: keys were replaced; connecting anew", self._link)
        self.reconnect()
        return True

    def look(self) -> None:
        """Read what libzmq has reported of the connection, so that ``up`` and ``times`` are true now."""
        while self._monitor is not None and int(self._monitor.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            # Two frames: the event (two bytes) with its value, and the endpoint.
            frame, *_ = self._monitor.recv_multipart(zmq.NOBLOCK)
            event = int.from_bytes(frame[:2], sys.byteorder)
            if event == _LOST:
                self.up, self._lost = False, True
                continue
            if event == _UNANSWERED:
                self._unanswered = True
                continue
            self._handshake = event
            self.trouble = "refused" if event & _REFUSED else "wrong server key" if event & _WRONG_KEY else ""
            if event == _RIGHT_KEY:
                self.up, self._renewed = True, self._renewed or self._lost
                self._lost = self._unanswered = False
                self.times += 1

    def _signature(self) -> tuple[object, ...]:
        """Return the states (time, size, inode) of the files with this role's secret key and the server's public key;
        the result differs after a key was replaced.
        """
        return tuple(file_state(path) for path in self._files)


def _files_of(directory: Path | None, server: str) -> tuple[Path, ...]:
    if directory is None:
        return ()
    return tuple(directory / name for name in ("curve.secret", f"known/{server}.pub", f"{FLAT_KNOWN}{server}.pub"))


#: Numbers of monitors. libzmq frees the address of a monitor some time after its end, so each gets its own.
_MONITORS = itertools.count()


def new_monitor(socket: zmq.Socket[bytes], events: int) -> zmq.Socket[bytes]:
    """Return a PAIR socket on which libzmq reports these ``events`` (zmq.EVENT_*) of ``socket``: handshakes that succeeded,
    had a wrong key or were refused, connections that were lost.
    """
    address = f"inproc://saltern.monitors.{next(_MONITORS)}"
    socket.monitor(address, events)
    monitor: zmq.Socket[bytes] = socket.context.socket(zmq.PAIR)
    monitor.setsockopt(zmq.LINGER, 0)
    # A full queue would stop libzmq's own thread.
    monitor.setsockopt(zmq.RCVHWM, 0)
    monitor.connect(address)
    return monitor


def file_state(path: Path) -> tuple[int, int, int]:
    """Return a value that differs after a file was replaced or written: (ns since 1970, bytes, inode); zeros without a file."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino


def bind(socket: zmq.Socket[bytes], host: str, port: int, option: str) -> None:
    """Bind ``socket`` to the TCP address ``host:port``.

    Raises ConfigError whose message names the option with the port; PortTaken if another process listens there.
    """
    try:
        socket.bind(f"tcp://{'*' if host == '0.0.0.0' else host}:{port}")
    except zmq.ZMQError as error:
        kind = PortTaken if error.errno == zmq.EADDRINUSE else ConfigError
        raise kind(f"{option}: cannot listen on {host}:{port}: {error.strerror}") from error


#: Seconds between two attempts to bind a port again.
_REBIND_PAUSE = 0.005


def rebind(socket: zmq.Socket[bytes], running: Callable[[], bool] = lambda: True) -> None:
    """Bind ``socket`` to its endpoint anew: all its connections end, and clients connect again. A new secret key takes effect.

    Returns once the port is bound, or when ``running`` returns False. Raises zmq.ZMQError.
    """
    endpoint = socket.get_string(zmq.LAST_ENDPOINT)
    socket.unbind(endpoint)
    while running():
        try:
            socket.bind(endpoint)
            return
        except zmq.ZMQError as error:
            # A thread of libzmq releases the port, which may take a moment.
            if error.errno != zmq.EADDRINUSE:
                raise
            time.sleep(_REBIND_PAUSE)
