"""The links between roles: which role binds which port, which names may connect, and the CurveZMQ keys.

Every link but 4505 and 4506 (Salt's protocol) is encrypted and authenticated by CurveZMQ. A role's key directory, written
by ``saltern keygen``, holds ``curve.secret`` (the role's secret key, Z85) and ``known/<name>.pub`` (all public keys, Z85), or
``known.<name>.pub`` where directories cannot be nested. A server (``curve_auth``) admits only the names in its row, and
operators with keys of their own where the row says so (``saltern keygen --operator``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import zmq

from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.config.reading import PortTaken

#: Names for which keys are made: the roles, and "cli" for the operators' commands.
NAMES = ("publisher", "reqserver", "mworker", "eventpublisher", "reactor", "maintenance", "cli", "api")

#: Names of the master's own processes.
ROLES = frozenset(NAMES) - {"cli", "api"}

#: Form of the name of an operator with a key of their own; such a name is none of NAMES.
OPERATOR = re.compile(r"[a-z][a-z0-9_-]{0,31}")

#: Replaces ``known/`` in the file names of a flat directory.
FLAT_KNOWN = "known."


@dataclass(frozen=True)
class Link:
    """One internal link between roles: the server's name, the clients' names and the option of the port."""

    server: str
    clients: frozenset[str]
    port: Callable[[MasterOptions], int]
    host: Callable[[MasterOptions], str]
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


def read_known(directory: Path) -> dict[str, bytes]:
    """Return the map of name to public key (Z85) for all public keys in a key directory. Raises OSError."""
    return {name: path.read_bytes().strip() for name, path in known_files(directory)}


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
    known: Mapping[str, bytes]
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

    def server_key(self, name: str) -> bytes:
        """Return the public key (Z85) that the server ``name`` must have.

        Raises ConfigError if that key is not in the directory.
        """
        if name not in self.known:
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


def connect(socket: zmq.Socket[bytes], link: str, options: MasterOptions, keys: LinkKeys) -> str:
    """Connect ``socket`` to the server of a link, encrypted by CurveZMQ, and return the endpoint (``tcp://host:port``)."""
    row = LINKS[link]
    socket.setsockopt(zmq.CURVE_SECRETKEY, keys.secret)
    socket.setsockopt(zmq.CURVE_PUBLICKEY, keys.public)
    socket.setsockopt(zmq.CURVE_SERVERKEY, keys.server_key(row.server))
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
    endpoint = f"tcp://{row.host(options)}:{row.port(options)}"
    socket.connect(endpoint)
    return endpoint


def bind(socket: zmq.Socket[bytes], host: str, port: int, option: str) -> None:
    """Bind ``socket`` to ``host:port``.

    Raises ConfigError whose message names the option of the port; PortTaken if another process listens there.
    """
    try:
        socket.bind(f"tcp://{'*' if host == '0.0.0.0' else host}:{port}")
    except zmq.ZMQError as error:
        kind = PortTaken if error.errno == zmq.EADDRINUSE else ConfigError
        raise kind(f"{option}: cannot listen on {host}:{port}: {error.strerror}") from error
