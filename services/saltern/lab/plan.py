"""The plan of a lab: settings, directories, programs and their ports.

Only ``check_free`` and ``why_not`` touch the machine: they try to bind ports.
"""

from __future__ import annotations

import errno
import itertools
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from saltern.kit.process.role_children import ROLES

#: Address that all programs bind. The lab is not reachable from other machines.
LOOPBACK = "127.0.0.1"

REDIS = "redis"

#: The role that ``--api`` adds.
API = "api"

_HIGHEST_PORT = 65535


@dataclass(frozen=True)
class PortRow:
    """A row of the lab's ports: the default number, the program that binds the port, and its purpose."""

    default: int
    program: str
    meaning: str


#: Name of the option -> row; the command line option of ``publish_port`` is ``--publish-port``.
PORTS: Mapping[str, PortRow] = {
    "publish_port": PortRow(4505, "publisher", "publications to minions"),
    "ret_port": PortRow(4506, "reqserver", "requests of minions"),
    "control_port": PortRow(4507, "reqserver", "commands of operators"),
    "event_pull_port": PortRow(4512, "eventpublisher", "events in"),
    "event_pub_port": PortRow(4513, "eventpublisher", "events out"),
    "workers_port": PortRow(4516, "reqserver", "requests handed to workers"),
    # Not 6379, which a Redis of this machine often uses.
    "redis_port": PortRow(16379, REDIS, "Redis"),
    "api_port": PortRow(8000, API, "HTTP of the API"),
    # First of consecutive ports, one for each role and minion.
    "health_port": PortRow(4520, "", "health of"),
}


@dataclass(frozen=True)
class Settings:
    """The settings with which a lab runs: state tree, names of minions, number of workers, and ports."""

    tree: Path
    minions: tuple[str, ...]
    workers: int
    #: Option of PORTS -> port number.
    ports: Mapping[str, int]
    #: Whether Salt's REST API runs, too.
    api: bool = False


@dataclass(frozen=True)
class PortUse:
    """One port that a program of the lab will bind: its number, purpose, and the command-line option that changes it."""

    number: int
    meaning: str
    #: Command line option that changes the port.
    option: str


@dataclass(frozen=True)
class Program:
    """One program of the lab: a role, Redis or a minion. Paths in ``words`` are relative to the lab's directory."""

    name: str
    words: tuple[str, ...]
    uses: tuple[PortUse, ...]
    #: Port of /readyz; 0 for Redis, which has none.
    health_port: int = 0
    minion: str = ""
    #: Role of the master; empty for Redis and minions.
    role: str = ""

    @property
    def group(self) -> str:
        """Return the name of the program's group. Programs of a group are stopped together: minions, then master, then Redis."""
        if self.minion:
            return "minions"
        return "master" if self.health_port else "store"


@dataclass(frozen=True)
class Paths:
    """All paths of a lab. Methods that end in ``_of`` take the name of a minion or program."""

    root: Path

    @property
    def etc(self) -> Path:
        """Path of the lab's configuration directory (``SALT_CONFIG_DIR``), with the files of master and minion options
        and the directory keys/.
        """
        return self.root / "etc"

    @property
    def run(self) -> Path:
        """Path of the directory for the lab launcher's own files: its Unix socket, and the link to redis-server."""
        return self.root / "run"

    @property
    def log(self) -> Path:
        """Path of the directory with the log files of all programs of the lab and of its launcher."""
        return self.root / "log"

    @property
    def redis_data(self) -> Path:
        """Path of the directory of the append-only file of the lab's Redis."""
        return self.root / "redis-data"

    @property
    def cache(self) -> Path:
        """Path of the ``cachedir`` of the lab's master: mirrors of Git repositories, and files pushed by minions."""
        return self.root / "cache"

    @property
    def redis_password(self) -> Path:
        """Path of the file with the password of the lab's Redis, which protects its port from other users of this
        machine.
        """
        return self.etc / "redis.password"

    @property
    def api_password(self) -> Path:
        """Path of the file with the password of the API's user ``admin``."""
        return self.etc / "api.password"

    @property
    def users(self) -> Path:
        """Path of the file with the API's users and their passwords."""
        return self.etc / "users"

    @property
    def settings(self) -> Path:
        """Path of the JSON file with the settings of the last ``saltern lab up``."""
        return self.root / "lab.json"

    @property
    def env(self) -> Path:
        """Path of the lab's shell file, to be sourced, which sets PATH and SALT_CONFIG_DIR."""
        return self.root / "env"

    def log_of(self, program: str) -> Path:
        """Path of the log file of one of the lab's programs."""
        return self.log / f"{program}.log"

    def host_of(self, minion: str) -> Path:
        """Path of the root directory of the simulated host that one of the lab's minions manages."""
        return self.root / "hosts" / minion

    def etc_of(self, minion: str) -> Path:
        """Path of the configuration directory of one of the lab's minions."""
        return self.root / "minions" / minion / "etc"

    def pki_of(self, minion: str) -> Path:
        """Path of the directory with the keys of one of the lab's minions."""
        return self.root / "minions" / minion / "pki"

    def cache_of(self, minion: str) -> Path:
        """Path of the ``cachedir`` of one of the lab's minions."""
        return self.root / "minions" / minion / "cache"


def programs(settings: Settings) -> tuple[Program, ...]:
    """Return the lab's programs in start order. The program ``saltern`` is found in PATH.

    Raise LabError if two programs would bind the same port, or if a port number is invalid.
    """
    health = itertools.count(settings.ports["health_port"])
    rows = [
        Program(REDIS, ("run/redis-server", "etc/redis.conf"), tuple(_uses(settings, REDIS))),
        *(_role(settings, role, next(health)) for role in ROLES),
        *(_minion(minion, next(health)) for minion in settings.minions),
        *([_api(settings, next(health))] if settings.api else []),
    ]
    _check_ports(rows)
    return tuple(rows)


def _role(settings: Settings, role: str, health: int) -> Program:
    uses = (*_uses(settings, role), _health_use(health, role))
    return Program(role, _words(role, "etc"), uses, health, role=role)


def _api(settings: Settings, health: int) -> Program:
    # A process of its own: the libraries of the web are no business of the parent that forks the roles.
    return Program(API, _words(API, "etc"), (*_uses(settings, API), _health_use(health, API)), health)


def _minion(minion: str, health: int) -> Program:
    name = f"minion-{minion}"
    return Program(name, _words("minion", f"minions/{minion}/etc"), (_health_use(health, name),), health, minion)


def _words(role: str, config_dir: str) -> tuple[str, ...]:
    return ("saltern", role, "-c", config_dir)


def _uses(settings: Settings, program: str) -> Iterator[PortUse]:
    for name, row in PORTS.items():
        if row.program == program:
            yield PortUse(settings.ports[name], row.meaning, flag(name))


def _health_use(number: int, program: str) -> PortUse:
    return PortUse(number, f"{PORTS['health_port'].meaning} {program}", flag("health_port"))


def flag(name: str) -> str:
    """Return the command-line option for a setting of the lab: ``--publish-port`` for ``publish_port``."""
    return "--" + name.replace("_", "-")


def _check_ports(rows: list[Program]) -> None:
    uses = [use for row in rows for use in row.uses]
    wrong = [use for use in uses if not 0 < use.number <= _HIGHEST_PORT]
    if wrong:
        raise LabError("not a port:\n" + describe(wrong))
    count = Counter(use.number for use in uses)
    twice = sorted((use for use in uses if count[use.number] > 1), key=lambda use: use.number)
    if twice:
        raise LabError("one port cannot serve two purposes:\n" + describe(twice))


def describe(uses: list[PortUse]) -> str:
    """Return one line of text for each of the lab's ports: number, purpose, and the option that changes it."""
    return "\n".join(f"  {use.number:<6} {use.meaning:<36} {use.option}" for use in uses)


def check_free(programs: Iterable[Program]) -> None:
    """Raise LabError with all ports that these programs cannot bind."""
    refused = [(use, why) for program in programs for use in program.uses if (why := why_not(use.number))]
    taken = [use for use, why in refused if why == errno.EADDRINUSE]
    forbidden = [use for use, why in refused if why != errno.EADDRINUSE]
    parts = []
    if taken:
        parts.append(f"ports of {LOOPBACK} taken by other programs:\n{describe(taken)}")
    if forbidden:
        parts.append(f"ports of {LOOPBACK} that this user may not have:\n{describe(forbidden)}")
    if parts:
        parts.append("Nothing was started. Choose others with these options, or move all ports: --shift 20000")
        raise LabError("\n".join(parts))


def why_not(port: int) -> int:
    """Return 0 if the port can be bound now, else the error number (errno)."""
    with socket.socket() as probe:
        # Connections in TIME_WAIT from an earlier lab do not occupy the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            return error.errno or errno.EADDRNOTAVAIL
    return 0


class LabError(Exception):
    """Raised when a ``saltern lab`` command cannot continue. The message names the subject, the reason and the next thing to do."""


class KeyStuckError(LabError):
    """Raised when a minion's key was rejected or denied. The operator must delete it at the lab's master, which keeps running."""
