"""The system that a chaos run breaks: every role as a process, some of them twice, with Saltern's and stock minions.

Each connection between two of them goes through a proxy, which can cut it. Redis is one server, a server with a replica and
Sentinels, or a Redis Cluster. In the last two cases roles connect to Redis directly: Sentinels and nodes tell their clients
the real addresses of the servers.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from masterstore.access import USERS
from masterstore.address import read_url
from saltern.kit.keys.certificates import AUTHORITY, SERVER
from saltern.kit.keys.keygen import make_keys, make_redis_login, make_redis_tls
from saltern.kit.keys.redis_logins import OPERATOR_URL, url_file
from saltern.kit.links.sockets import LINKS
from saltern.kit.process.redis_server import version_of
from tests.chaos.accountant import Execution
from tests.chaos.plan import SLOWNESS, TO, Cast, Kind
from tests.conftest import redis_program
from tests.faults.proxy import Link, Network
from tests.faults.redis_cluster import RedisCluster
from tests.faults.redis_pair import RedisPair, RedisServers
from tests.interop.stock import StockMinion
from tests.ports import kept_ports
from tests.roles.lab import ROLES, ROOT, Answer, Lab
from tests.tls_redis import tls_redis_program

#: The job: says that it begins and ends in a journal of the minion's own, one line at a time, and knows nothing of Salt's JIDs.
CHAOS_MODULE = '''\
"""Jobs that can be counted."""

import os
import time


def _note(word, token, nonce):
    line = "%s %s %s %.3f\\n" % (word, token, nonce, time.time())
    journal = os.open(__grains__["chaos_journal"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(journal, line.encode())
    os.close(journal)


def run(token, seconds=0, size=0):
    """Works so many seconds and returns so many bytes."""
    nonce = os.urandom(8).hex()
    _note("began", token, nonce)
    time.sleep(float(seconds))
    _note("ended", token, nonce)
    return {"nonce": nonce, "filling": "x" * int(size)}
'''


def read_journal(text: str) -> dict[str, list[Execution]]:
    """Return {token of a job: its Executions, in the order in which they began} from the text of a minion's journal."""
    runs: dict[str, dict[str, Execution]] = defaultdict(dict)
    for line in text.splitlines():
        _, token, nonce, at = line.split(" ")
        before = runs[token].get(nonce)
        began, ended = (float(at), None) if before is None else (before.began, float(at))
        runs[token][nonce] = Execution(nonce, began, ended)
    return {token: list(found.values()) for token, found in runs.items()}


#: Seconds that one who looks waits for Redis.
_LOOK = 0.5

#: What Redis can be beside one server -> what starts its servers in a directory.
_SERVERS: Mapping[str, Callable[[Path], RedisServers]] = {"sentinel": RedisPair, "cluster": RedisCluster}

#: What Redis can be: one server, a server with a replica and Sentinels, or a Redis Cluster.
REDIS_KINDS = ("one", *_SERVERS)

#: Minions that share a grain.
_SHELF = 8

#: Whoever may connect to a role of the master: option of its port -> (role, where it listens).
_SERVED: Mapping[str, tuple[str, str]] = {
    f"SALTERN_{link.upper()}_PORT": (row.server, f"{link}_port") for link, row in LINKS.items()
}


@dataclass
class Field(Lab):
    """A lab whose processes and links can be broken: roles, Redis, Saltern's minions and stock minions.

    ``close`` ends all that was started.
    """

    workers: int = 3
    reqservers: int = 2
    eventpublishers: int = 2
    stock: tuple[str, ...] = ()
    #: Where the stock minions' Salt is.
    oracle: Path | None = None
    #: Words that start a role or a minion in place of the usual ones: how a promise is broken on purpose.
    broken: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Minions that lose what they know of their jobs when they are killed.
    forgetful: frozenset[str] = frozenset()
    #: One of REDIS_KINDS.
    redis_kind: str = "one"
    #: The servers of Redis once they were started; None if Redis is one server, which is a process like the others.
    servers: RedisServers | None = None
    network: Network = field(default_factory=Network)
    links: dict[str, list[Link]] = field(default_factory=dict)
    stock_minions: dict[str, StockMinion] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        (self.tree / "salt" / "_modules" / "chaos.py").write_text(CHAOS_MODULE)
        (self.root / "journals").mkdir()
        for name in self.roles:
            self._link_role(name)
        self._link_role("cli")
        #: Port of the Redis server that was killed or stopped last, of several.
        self._struck = 0
        #: Number of times that another server was the master when a Redis server came back.
        self.failovers = 0
        make_keys(self.keys_dir, operators=["ann"])
        if not self.fails_over:
            self._make_redis_keys()
        for index, minion in enumerate(self.stock, len(self.minions)):
            options = self._minion_options(minion, index)
            assert self.oracle is not None
            self.stock_minions[minion] = StockMinion(minion, self.oracle, self, options)

    @property
    def keys_dir(self) -> Path:
        """Directory that ``saltern keygen`` wrote."""
        return self.etc / "keys"

    @property
    def redis_address(self) -> str:
        """Address of a file with the URL of the lab's Redis, or that URL; without a proxy in between."""
        return f"file://{self.keys_dir}/{OPERATOR_URL}" if self.servers is None else self.servers.url

    @property
    def fails_over(self) -> bool:
        """Whether Redis has replicas, one of which replaces a server that is away."""
        return self.redis_kind in _SERVERS

    @property
    def rotations(self) -> tuple[tuple[str, ...], ...]:
        """The rotations that this system allows, each as the arguments of ``saltern rotate``."""
        roles = tuple(("role", role) for role in (*ROLES, "cli"))
        tls = (("redis-tls",), ("redis-tls", "--authority")) if self.tls else ()
        login = () if self.fails_over else (("redis-password",), *tls)
        return (*roles, ("operator", "ann"), *login, ("master", "--patience", "20"))

    @property
    def tls(self) -> bool:
        """Whether Redis uses TLS: True if a redis-server with TLS is installed."""
        return tls_redis_program() is not None

    @property
    def _redis_program(self) -> str:
        return (tls_redis_program() if self.tls else None) or redis_program()

    def _make_redis_keys(self) -> None:
        if self.tls:
            make_redis_tls(self.keys_dir, ["127.0.0.1"])
        for user in USERS:
            (self.keys_dir / url_file(user)).unlink(missing_ok=True)
        version = version_of(self._redis_program)
        make_redis_login(self.keys_dir, f"127.0.0.1:{self.port['redis']}", version=version)
        # Each role reaches Redis by a link of its own, so each has a copy of the URL; whoever changes the URL brings it there.
        lines = ["#!/bin/sh", "set -e", f"cd '{self._urls}'"]
        for name in self.roles:
            url = self.keys_dir / url_file(name.rstrip("0123456789"))
            if not url.exists():
                continue
            (link,) = self.links[f"{name}{TO}redis"]
            lines += [f"sed 's/:{self.port['redis']}/:{link.port}/' '{url}' >{name}.new", f"mv {name}.new {name}"]
        self._bring.write_text("\n".join(lines) + "\n")
        self._bring.chmod(0o755)
        self._urls.mkdir()
        subprocess.run([str(self._bring)], check=True)

    @property
    def _urls(self) -> Path:
        return self.root / "urls"

    @property
    def _bring(self) -> Path:
        return self.root / "bring-urls"

    def rotate(self, *words: str, seconds: float) -> Answer:
        """Run ``saltern rotate`` with these arguments and return its Answer (exit code and output)."""
        apply = () if self.fails_over else ("--apply", str(self._bring))
        return self.run(*words, "-c", str(self.etc), *apply, seconds=seconds)

    def free_ports(self, count: int) -> list[int]:
        """Return free ports that stay reserved, so that a role which is restarted finds its port again."""
        return kept_ports(count)

    def _replicas(self) -> list[str]:
        return [*super()._replicas(), "publisher2"]

    @cached_property
    def _second_publish_port(self) -> int:
        (port,) = self.free_ports(1)
        return port

    def _make_minion(self, minion: str, index: int) -> None:
        super()._make_minion(minion, index)
        path = self.root / "minions" / minion / "minion"
        options = yaml.safe_load(path.read_text()) | self._minion_options(minion, index)
        path.write_text(yaml.safe_dump(options))

    def _minion_options(self, minion: str, index: int) -> dict[str, Any]:
        requests = self.network.link(self.port["ret_port"])
        publications = [self.port["publish_port"], self._second_publish_port]
        jobs = self.network.link(*(publications if index % 2 else reversed(publications)))
        self.links |= {
            f"{minion}{TO}master": [requests, jobs],
            f"{minion}{TO}reqserver": [requests],
            f"{minion}{TO}publisher": [jobs],
        }
        grains = {"chaos_journal": str(self.journal(minion)), "shelf": _shelf_of(index)}
        return {"master_port": requests.port, "publish_port": jobs.port, "grains": grains}

    def journal(self, minion: str) -> Path:
        """Return the path of the journal that jobs on this minion write."""
        return self.root / "journals" / minion

    def _link_role(self, name: str) -> None:
        role = name.rstrip("0123456789")
        if role != "cli" and not self.fails_over:
            self.links[f"{name}{TO}redis"] = [self.network.link(self.port["redis"])]
        for option, (server, port) in _SERVED.items():
            if role in LINKS[port.removesuffix("_port")].clients:
                self.links.setdefault(f"{name}{TO}{server}", []).append(self.network.link(self.port[port]))
                made = self.links[f"{name}{TO}{server}"][-1]
                self._options.setdefault(name, {})[option] = str(made.port)
                # The second one listens on the same ports of another address.
                second = self.network.link(self.port[port], port=made.port, host="127.0.0.2")
                self.links.setdefault(f"{name}{TO}{server}2", []).append(second)

    @cached_property
    def _options(self) -> dict[str, dict[str, str]]:
        return {}

    def environment_of(self, name: str) -> dict[str, str]:
        """Return the environment variables of a role or of ``cli``: ports of its links, and the marks of its processes."""
        found = super().environment_of(name) | {"SALTERN_TEST_PROCESS": name, **self._options.get(name, {})}
        if self.servers is not None:
            # What was acknowledged must survive a failover.
            found |= {"SALTERN_REDIS_URL": self.servers.url, "SALTERN_REDIS_WAIT_REPLICAS": "1"}
        elif name in self.roles:
            found["SALTERN_REDIS_URL_FILE"] = str(self._urls / name)
        if name == "publisher2":
            found["SALTERN_PUBLISH_PORT"] = str(self._second_publish_port)
        return found

    @property
    def cast(self) -> Cast:
        """The processes, minions and links that faults may hit."""
        everybody = (*self.minions, *self.stock)
        shelves: dict[str, tuple[str, ...]] = {}
        for index, minion in enumerate(everybody):
            shelves[_shelf_of(index)] = (*shelves.get(_shelf_of(index), ()), minion)
        own = tuple(link for link in self.links if link.partition(TO)[0] in everybody)
        return Cast(
            processes=("redis", *self.roles),
            minions=everybody,
            stock=frozenset(self.stock),
            links=tuple(link for link in self.links if link not in own),
            minion_links=own,
            shelves=shelves,
            replicated=("redis",) if self.fails_over else (),
        )

    # ------------------------------------------------------------------------------------------------------------- processes

    def start(self, name: str) -> None:
        """Start a role, a Saltern minion or a stock minion, without waiting until it is ready."""
        if name in self.stock_minions:
            self.stock_minions[name].start()
        elif name in self.broken:
            directory = self.root / "minions" / name if name in self.minions else self.etc
            self._launch(name, [*self.broken[name], "-c", str(directory)])
        else:
            super().start(name)

    def start_redis(self) -> None:
        """Start Redis, or all of its servers, and wait until it can be used."""
        if self.fails_over:
            self.servers = _SERVERS[self.redis_kind](self.root / "redis")
        else:
            super().start_redis()

    def await_redis(self) -> None:
        """Wait until each replica of Redis has what its master has."""
        if self.servers is not None:
            self.servers.await_whole()

    def launch_redis(self) -> None:
        """Start Redis with the settings of docker/redis.conf, in a directory of its own."""
        place = self.keys_dir / "redis"
        own: dict[str, object] = {"bind": "127.0.0.1", "dir": self.root / "redis", "aclfile": place / "users.acl"}
        if self.tls:
            own |= {"port": 0, "tls-port": self.port["redis"], "tls-auth-clients": "yes"}
            own |= {"tls-ca-cert-file": place / "tls" / AUTHORITY}
            own |= dict.fromkeys(("tls-cert-file", "tls-key-file"), place / "tls" / SERVER)
        else:
            own["port"] = self.port["redis"]
        shipped = (ROOT / "docker" / "redis.conf").read_text().splitlines()
        kept = [line for line in shipped if line.partition(" ")[0] not in own]
        path = self.root / "redis.conf"
        path.write_text("\n".join([*kept, *(f"{name} {value}" for name, value in own.items())]) + "\n")
        self._launch("redis", [self._redis_program, str(path)])

    def break_(self, victim: str, kind: Kind) -> None:
        """Begin a fault of this kind at a process or link."""
        _BEGIN[kind](self, victim)

    def mend(self, victim: str, kind: Kind) -> None:
        """End a fault of this kind at a process or link: restart, continue or reconnect it."""
        _END[kind](self, victim)

    def kill_all_of(self, name: str) -> None:
        """Kill all processes of a role or minion by SIGKILL; of a Redis with replicas the server that is the master."""
        if name in self.stock_minions:
            self.stock_minions[name].end()
            return
        if name == "redis" and self.servers is not None:
            self._struck = self.servers.master()
            self.servers.kill(self._struck)
            return
        self.signal_all_of(name, signal.SIGKILL)
        self.processes.pop(name).wait()

    def signal_all_of(self, name: str, number: int) -> None:
        """Send a signal to all processes of a role or minion, and to those that it forks meanwhile.

        Of a Redis with replicas the master gets the signal. SIGCONT is for the server that was stopped.
        """
        if name == "redis" and self.servers is not None:
            if number != signal.SIGCONT:
                self._struck = self.servers.master()
            self.servers.kill(self._struck, number)
            if number == signal.SIGCONT:
                # Asked only now: a stopped server would keep the question waiting, and with it all later faults.
                self.failovers += self.servers.master() != self._struck
            return
        signalled: set[int] = set()
        while new := set(self.family(name)) - signalled:
            for pid in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            signalled |= new

    def family(self, name: str) -> list[int]:
        """Return the process ids of a role or minion, including jobbers whose main process has ended."""
        if name in self.stock_minions:
            return self.stock_minions[name].processes()
        marks = {f"SALTERN_TEST_LAB={self.root}".encode(), f"SALTERN_TEST_PROCESS={name}".encode()}
        # Redis writes over its own environment.
        main = {self.processes[name].pid} if name in self.processes else set()
        return sorted(main | {pid for pid, found in _environments() if marks <= found})

    def relaunch(self, name: str) -> None:
        """Start a role, a minion or Redis again, without waiting until it is ready. A forgetful minion first loses its journal."""
        if name in self.forgetful:
            shutil.rmtree(self.cache(name) / "journal")
            (self.cache(name) / "jids").unlink(missing_ok=True)
        if name != "redis":
            self.start(name)
        elif self.servers is not None:
            self.failovers += self.servers.master() != self._struck
            self.servers.rejoin(self._struck)
        else:
            self.launch_redis()

    def revive(self) -> list[str]:
        """Restart processes that ended by themselves; return a text with name and exit code for each, except for stock minions."""
        found = []
        for stock in self.stock_minions.values():
            if stock.ended():
                stock.end()
                stock.start()
        for name, code in self.dead().items():
            del self.processes[name]
            found.append(f"{name} ended by itself: {code}")
            self.relaunch(name)
        for port, code in (self.servers.ended() if self.servers is not None else {}).items():
            assert self.servers is not None
            found.append(f"redis on port {port} ended by itself: {code}")
            self.servers.rejoin(port)
        return found

    def redis(self) -> Redis:
        """Return a client of the lab's Redis without a proxy in between, with its password; of several servers the master's."""
        if self.servers is not None:
            return self.servers.client(self.servers.master())
        return Redis.from_url(read_url(self.redis_address), decode_responses=True)

    def redis_now(self) -> Redis:
        """Return a client of the lab's Redis without a proxy in between; each call waits at most half a second.

        Of several servers it is the master's. Raises redis-py's errors.
        """
        servers = self.servers
        return Redis.from_url(
            read_url(self.redis_address) if servers is None else f"redis://127.0.0.1:{servers.master()}",
            decode_responses=True,
            socket_timeout=_LOOK,
            socket_connect_timeout=_LOOK,
            retry=Retry(NoBackoff(), 0),
        )

    def redis_name(self, key: str) -> str:
        """Return the name that a key of ``masterstore.keys`` has in the lab's Redis."""
        return key if self.servers is None else self.servers.placed(key)

    def spooled(self) -> list[str]:
        """Return the names of spool files in Saltern's minions: returns that the master has not acknowledged."""
        return [path.name for minion in self.minions for path in self.cache(minion).glob("**/spool/*.ret")]

    def tracebacks(self) -> list[str]:
        """Return the names of processes that logged a traceback, without stock minions, which log one when a master is away."""
        return [name for name in super().tracebacks() if name not in self.stock]

    def close(self) -> None:
        """End all processes and proxies."""
        for one in self.stock_minions.values():
            one.end()
        super().close()
        if self.servers is not None:
            self.servers.close()
        self.network.close()


def _shelf_of(index: int) -> str:
    return f"s{index // _SHELF}"


def _environments() -> Iterator[tuple[int, set[bytes]]]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            # A process that has ended and waits for its parent has no environment.
            with contextlib.suppress(OSError):
                yield int(entry.name), set(Path(entry.path, "environ").read_bytes().split(b"\0"))


def _crash(arena: Field, victim: str) -> None:
    process = arena.processes.pop(victim)
    process.kill()
    process.wait()


def _each(what: str, *words: Any, **named: Any) -> Any:
    def act(arena: Field, victim: str) -> None:
        for link in arena.links[victim]:
            getattr(link, what)(*words, **named)

    return act


_BEGIN: Mapping[Kind, Any] = {
    Kind.KILL: Field.kill_all_of,
    Kind.CRASH: _crash,
    Kind.STOP: lambda arena, victim: arena.signal_all_of(victim, signal.SIGSTOP),
    Kind.HOLD: _each("hold"),
    Kind.LOSE: _each("hold"),
    Kind.CUT: _each("cut"),
    Kind.SLOW: _each("slow", SLOWNESS),
}

_END: Mapping[Kind, Any] = {
    Kind.KILL: Field.relaunch,
    Kind.CRASH: Field.relaunch,
    Kind.STOP: lambda arena, victim: arena.signal_all_of(victim, signal.SIGCONT),
    Kind.HOLD: _each("heal"),
    Kind.LOSE: _each("heal", reset=True),
    Kind.CUT: _each("heal"),
    Kind.SLOW: _each("slow", 0.0),
}
