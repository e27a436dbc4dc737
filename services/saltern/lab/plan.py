"""What a lab consists of: its settings, its directories, its programs and their ports. Pure: nothing here touches the machine."""

from __future__ import annotations

import errno
import itertools
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

#: The lab is for one machine; nothing in it is ever bound to another address.
LOOPBACK = "127.0.0.1"

REDIS = "redis"

_HIGHEST_PORT = 65535


@dataclass(frozen=True)
class PortRow:
    """A port of the lab: the option of the configuration, its usual number, and the program that binds it."""

    default: int
    program: str
    meaning: str


#: Name of the option (``--publish-port`` is ``publish_port``) -> row.
PORTS: Mapping[str, PortRow] = {
    "publish_port": PortRow(4505, "publisher", "publications to minions"),
    "ret_port": PortRow(4506, "reqserver", "requests of minions"),
    "control_port": PortRow(4507, "reqserver", "commands of operators"),
    "event_pull_port": PortRow(4512, "eventpublisher", "events in"),
    "event_pub_port": PortRow(4513, "eventpublisher", "events out"),
    "workers_port": PortRow(4516, "reqserver", "requests handed to workers"),
    # Not 6379: that one is often taken by a Redis of the machine's own.
    "redis_port": PortRow(16379, REDIS, "Redis"),
    # The first of a row, one for each role and minion.
    "health_port": PortRow(4520, "", "health of"),
}

#: Roles that there is one of, in the order of their start. Workers and minions follow.
_SINGLE_ROLES = ("eventpublisher", "reqserver", "publisher", "maintenance", "reactor")


@dataclass(frozen=True)
class Settings:
    """What the operator chose, or the lab's defaults."""

    tree: Path
    minions: tuple[str, ...]
    workers: int
    #: Option of PORTS -> number.
    ports: Mapping[str, int]


@dataclass(frozen=True)
class PortUse:
    """One port that a program will bind."""

    number: int
    meaning: str
    #: What changes it, as on the command line.
    option: str


@dataclass(frozen=True)
class Program:
    """One process that supervisord keeps. All paths in ``words`` are relative to the lab's directory."""

    name: str
    words: tuple[str, ...]
    uses: tuple[PortUse, ...]
    #: Port of /readyz; 0 for what has none (Redis).
    health_port: int = 0
    minion: str = ""

    @property
    def group(self) -> str:
        """Programs of a group are stopped together, the groups one after the other: minions, master, Redis."""
        if self.minion:
            return "minions"
        return "master" if self.health_port else "store"


@dataclass(frozen=True)
class Paths:
    """Where everything of a lab is. The methods that end in ``_of`` belong to one minion or program."""

    root: Path

    @property
    def etc(self) -> Path:
        """The configuration directory (``SALT_CONFIG_DIR``): master, minion, keys/."""
        return self.root / "etc"

    @property
    def run(self) -> Path:
        """supervisord's files."""
        return self.root / "run"

    @property
    def log(self) -> Path:
        """A log for each program, and supervisord's."""
        return self.root / "log"

    @property
    def redis_data(self) -> Path:
        """The append-only file."""
        return self.root / "redis-data"

    @property
    def cache(self) -> Path:
        """The master's: mirrors of Git repositories, and what minions pushed."""
        return self.root / "cache"

    @property
    def redis_password(self) -> Path:
        """Other users of this machine reach the port, too."""
        return self.etc / "redis.password"

    @property
    def settings(self) -> Path:
        """The settings of the last ``up``."""
        return self.root / "lab.json"

    @property
    def env(self) -> Path:
        """To be sourced."""
        return self.root / "env"

    def log_of(self, program: str) -> Path:
        """What a program says."""
        return self.log / f"{program}.log"

    def host_of(self, minion: str) -> Path:
        """The root of the host that a minion manages."""
        return self.root / "hosts" / minion

    def etc_of(self, minion: str) -> Path:
        """A minion's configuration directory."""
        return self.root / "minions" / minion / "etc"

    def pki_of(self, minion: str) -> Path:
        """A minion's keys."""
        return self.root / "minions" / minion / "pki"

    def cache_of(self, minion: str) -> Path:
        """A minion's cache."""
        return self.root / "minions" / minion / "cache"


def programs(settings: Settings) -> tuple[Program, ...]:
    """The lab's programs in the order of their start; ``saltern`` is found by PATH.

    Raises LabError where two of them would bind one port, or where a port is no port.
    """
    health = itertools.count(settings.ports["health_port"])
    rows = [
        Program(REDIS, ("run/redis-server", "etc/redis.conf"), tuple(_uses(settings, REDIS))),
        *(_role(settings, role, role, next(health)) for role in _SINGLE_ROLES),
        *(_role(settings, f"mworker-{number}", "mworker", next(health)) for number in range(1, settings.workers + 1)),
        *(_minion(minion, next(health)) for minion in settings.minions),
    ]
    _check_ports(rows)
    return tuple(rows)


def _role(settings: Settings, name: str, role: str, health: int) -> Program:
    uses = (*_uses(settings, role), _health_use(health, name))
    return Program(name, _words(role, "etc"), uses, health)


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
    """``--publish-port`` for ``publish_port``."""
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
    """A line for each port: number, what it is for, which option changes it."""
    return "\n".join(f"  {use.number:<6} {use.meaning:<36} {use.option}" for use in uses)


def check_free(programs: Iterable[Program]) -> None:
    """Raises LabError that names every port that these programs cannot have."""
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
    """0 when the port can be bound now, else the error's number."""
    with socket.socket() as probe:
        # Connections of an earlier lab that linger in TIME_WAIT take nothing from the next one.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            return error.errno or errno.EADDRNOTAVAIL
    return 0


class LabError(Exception):
    """The lab cannot go on. str() says what, where, why and what next; it is shown as it is."""


class KeyStuckError(LabError):
    """A key that only the operator can forget, by the lab's own master: so that goes on running."""
