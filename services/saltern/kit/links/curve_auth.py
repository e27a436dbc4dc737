"""Decides which CurveZMQ keys may connect to the links that a process serves, by the public keys in its key directory.

Operators' keys are added and removed (``saltern keygen --operator``) while roles run, so the directory is read again when it
changes: a new key is admitted, and a removed or replaced key is no longer admitted. libzmq asks only when a client
connects. For open connections each message names its key (``name_of``), and ``lost`` returns names whose keys are gone.
A server's own secret key may be replaced, too (``saltern rotate role``): ``follow`` then binds its sockets anew.
Source: docs/execution.md#master-processes.
"""

from __future__ import annotations

import contextlib
import logging
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import zmq
from zmq.utils import z85

from saltern.kit.config.master import ConfigError
from saltern.kit.links.sockets import LINKS, NAMES, ROLES, LinkKeys, file_state, known_files, read_known, rebind

_LOG = logging.getLogger("saltern.links")

#: Pending connections of an internal link; bursts come from `salt` commands, not from minions.
_BACKLOG = 256

_KEY_BYTES = 32

#: Seconds between two reads of the key directory; short enough for an operator who has just copied a key there.
LOOK_SECONDS = 1.0


class CurveAuth:
    """Decides which clients may connect to the links that this process serves. Create one for each ZeroMQ context.

    Raises ConfigError for a malformed key file.
    """

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], keys: LinkKeys, has_rights: Callable[[str], bool] = bool
    ) -> None:
        """Read the public keys in ``keys`` and start to answer libzmq's questions about clients of sockets of
        ``context``.

        ``has_rights`` returns for the name of a key (an operator's, or ``api``) whether the master's options give it
        any right. Links with secret messages refuse operators' keys without rights.
        """
        self._keys = keys
        self._has_rights = has_rights
        self._lock = threading.Lock()
        self._next_look = time.monotonic() + LOOK_SECONDS
        self._told = ""
        self._lost: set[str] = set()
        #: Raw public key -> ``NAME KEY``. The map is replaced as a whole, so that both threads see a consistent state.
        self._users: Mapping[bytes, str] = _users(keys.known)
        self._seen = _signature(keys.directory)
        #: State of the file of the secret key; none yet: it may have been replaced since the keys were read.
        self._secret_seen: tuple[int, int, int] | None = None
        #: Sockets that the key of this process serves.
        self._served: list[zmq.Socket[bytes]] = []
        self._next_follow = self._next_look
        self._admittance = ZapHandler(context, self._admitted)

    def serve(self, socket: zmq.Socket[bytes], link: str) -> None:
        """Set the options that make ``socket`` the encrypted server of the link with this name. Call before the socket is bound."""
        socket.setsockopt(zmq.ZAP_DOMAIN, link.encode())
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.CURVE_SECRETKEY, self._keys.secret)
        socket.setsockopt(zmq.BACKLOG, _BACKLOG)
        self._served.append(socket)

    def follow(self, running: Callable[[], bool] = lambda: True) -> bool:
        """Bind all sockets again with the new secret key if this role's key file was replaced. Return whether that was
        done.

        Clients connect again within a moment. ``running`` returns False to stop waiting until the TCP ports can be
        bound. Call it in the thread that uses the sockets. Raises zmq.ZMQError.
        """
        now, directory = time.monotonic(), self._keys.directory
        if directory is None or now < self._next_follow:
            return False
        self._next_follow = now + LOOK_SECONDS / 4
        state = _secret_state(directory)
        if state == self._secret_seen:
            return False
        try:
            read = LinkKeys.load(directory)
        except ConfigError as error:
            self._tell(f"{error}; the key of this role stays")
            return False
        self._secret_seen = state
        if read.secret == self._keys.secret:
            return False
        self._keys = read
        for socket in self._served:
            socket.setsockopt(zmq.CURVE_SECRETKEY, read.secret)
            rebind(socket, running)
        _LOG.warning("the key of this role was replaced; all connections are made anew")
        return True

    def name_of(self, frame: zmq.Frame) -> str:
        """Return the name of the client's key with which this frame was sent. Raises PermissionError if that key was removed."""
        user = str(frame.get("User-Id"))
        self._look()
        name, _, public = user.partition(" ")
        if self._users.get(z85.decode(public.encode())) != user:
            raise PermissionError(f"the key of {name} was taken back, or replaced by another one")
        return name

    def lost(self) -> frozenset[str]:
        """Return the names of the CurveZMQ keys that were removed since the last call. The caller must close the open
        connections of these clients.
        """
        self._look()
        with self._lock:
            gone, self._lost = frozenset(self._lost), set()
        return gone

    def stop(self) -> None:
        """Stop the thread that answers libzmq's questions about clients."""
        self._admittance.stop()

    def _admitted(self, link: str, key: bytes) -> str:
        """Return ``NAME KEY`` (text that libzmq attaches to each message) if the client's public key may use the
        link; "" if it may not.
        """
        # libzmq does not repeat a refused connection, so an unknown key is looked for in the directory at once.
        self._look(at_once=key not in self._users)
        user = self._users.get(key, "")
        name = user.partition(" ")[0]
        row = LINKS.get(link)
        if row is None or not (name in row.clients or (row.operators and name and name not in NAMES)):
            return ""
        return user if not row.rights_needed or name in ROLES or self._has_rights(name) else ""

    def _look(self, *, at_once: bool = False) -> None:
        """Read the key directory again if its files changed.

        The directory is examined at most once in LOOK_SECONDS; with ``at_once`` it is examined now.
        """
        now = time.monotonic()
        with self._lock:
            if self._keys.directory is None or (now < self._next_look and not at_once):
                return
            self._next_look = now + LOOK_SECONDS
            seen = _signature(self._keys.directory)
            # The state before the read: the next look then sees changes that happen during the read.
            if seen != self._seen and self._read(self._keys.directory):
                self._seen = seen

    def _read(self, directory: Path) -> bool:
        """Read the key directory and return whether that succeeded: a mounted Secret may be incomplete while it is replaced."""
        try:
            known = read_known(directory)
        except OSError as error:
            self._tell(f"{error.filename}: {error.strerror}; who may connect stays as it was")
            return False
        if not known:
            # If the directory cannot be read for a moment, no key is removed.
            self._tell(f"{directory / 'known'}: no public key is there; who may connect stays as it was")
            return False
        self._told = ""
        users: dict[bytes, str] = {}
        for name, publics in known.items():
            try:
                users |= _users({name: publics})
            except ConfigError as error:
                self._tell(f"{directory}: {error}; {name} may not connect")
        before, after = set(self._users.values()), set(users.values())
        self._users = MappingProxyType(users)
        self._lost |= {user.partition(" ")[0] for user in before - after}
        for user in sorted(before ^ after):
            _LOG.info("key of %s: %s", user.partition(" ")[0], "known" if user in after else "taken back")
        return True

    def _tell(self, what: str) -> None:
        if what != self._told:
            self._told = what
            _LOG.warning("%s", what)


def _users(known: Mapping[str, Sequence[bytes]]) -> Mapping[bytes, str]:
    """Return the map of raw public key to ``NAME KEY``, the text that libzmq attaches to messages. Raises ConfigError."""
    pairs = [(name, public) for name, publics in known.items() for public in publics or (b"",)]
    return {_raw(name, public): f"{name} {public.decode('ascii')}" for name, public in pairs}


def _secret_state(directory: Path | None) -> tuple[int, int, int]:
    return (0, 0, 0) if directory is None else file_state(directory / "curve.secret")


def _raw(name: str, public: bytes) -> bytes:
    raw = b""
    with contextlib.suppress(ValueError, KeyError, struct.error):
        raw = z85.decode(public)
    if len(raw) != _KEY_BYTES:
        raise ConfigError(f"the public key of {name}: not a CurveZMQ key; run `saltern keygen` again")
    return raw


def _signature(directory: Path | None) -> tuple[tuple[str, int, int, int], ...]:
    """Return a value that differs after a public key in ``directory`` is added, replaced or removed.

    It recognises a replaced file and a replaced link of a mounted Secret.
    """
    found: list[tuple[str, int, int, int]] = []
    for _, path in known_files(directory) if directory else ():
        with contextlib.suppress(OSError):
            status = path.stat()
            found.append((path.name, status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)


#: Endpoint to which libzmq sends its authentication requests; one for each context.
_ENDPOINT = "inproc://zeromq.zap.01"

#: Endpoint over which the handler's thread is asked to end.
_END = "inproc://saltern.zap.end"

_VERSION = b"1.0"

_REFUSED = b"400"

#: Most refusals that are logged: a refused client tries again each second.
_MOST_TOLD = 100

#: (domain, raw public key of 32 bytes) -> name of the admitted key; empty: the client is refused.
Admit = Callable[[str, bytes], str]


def verdict(frames: Sequence[bytes], admit: Admit) -> list[bytes]:
    """Return the frames of the answer to a ZAP request: version, id, status code, status text, name, empty
    metadata.

    ``admit`` returns the name for (link, raw public key), or "" to refuse the client. Status: 200 admitted,
    400 refused, 500 malformed.
    """
    if len(frames) < 6 or frames[0] != _VERSION:
        return [_VERSION, frames[1] if len(frames) > 1 else b"", b"500", b"not a ZAP 1.0 request", b"", b""]
    _, request, domain, _, _, mechanism, *credentials = frames
    name = ""
    if mechanism == b"CURVE" and len(credentials) == 1:
        name = admit(domain.decode("utf-8", "replace"), credentials[0])
    if not name:
        return [_VERSION, request, _REFUSED, b"not admitted", b"", b""]
    return [_VERSION, request, b"200", b"OK", name.encode(), b""]


class ZapHandler:
    """A thread that answers libzmq's authentication requests (ZAP) until it is stopped.

    Create it before the first server is bound.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], admit: Admit) -> None:
        self._admit = admit
        self._told: set[tuple[str, str]] = set()
        self._questions = context.socket(zmq.REP)
        self._questions.setsockopt(zmq.LINGER, 0)
        self._questions.bind(_ENDPOINT)
        self._ended = context.socket(zmq.PAIR)
        self._ended.setsockopt(zmq.LINGER, 0)
        self._ended.bind(_END)
        self._end = context.socket(zmq.PAIR)
        self._end.setsockopt(zmq.LINGER, 0)
        self._end.connect(_END)
        # From here on the first two sockets belong to the thread.
        self._thread = threading.Thread(target=self._answer, name="zap", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and close its sockets. Clients that connect afterwards are refused."""
        self._end.send(b"")
        self._thread.join()
        self._end.close()

    def _answer(self) -> None:
        poller = zmq.Poller()
        poller.register(self._questions, zmq.POLLIN)
        poller.register(self._ended, zmq.POLLIN)
        try:
            while self._ended not in dict(poller.poll()):
                question = self._questions.recv_multipart()
                answer = verdict(question, self._admit)
                self._questions.send_multipart(answer)
                if answer[2] == _REFUSED:
                    self._tell(question[2].decode("utf-8", "replace"), question[3].decode("utf-8", "replace"))
        finally:
            self._questions.close()
            self._ended.close()

    def _tell(self, link: str, address: str) -> None:
        if (link, address) not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add((link, address))
            _LOG.warning("link %s: %s is turned away: its key may not use this link, or has no right", link, address)
