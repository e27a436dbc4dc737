"""Redis servers with replicas, as real processes on loopback: what a failover is tried on.

``RedisServers`` is what both kinds have in common: one Redis with a replica and three Sentinels (``RedisPair``), and a Redis
Cluster (``redis_cluster.RedisCluster``).
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.conftest import await_port, redis_program
from tests.ports import kept_ports

#: Name under which the Sentinels know the master.
SERVICE = "saltern"

#: Milliseconds after which a Sentinel holds a silent Redis for down: as short as a busy machine allows.
DOWN_AFTER = 1500

#: Seconds for a failover, and for everybody to know each other.
PATIENCE = 60.0


@dataclass(frozen=True)
class Guard:
    """What protects a pair: a password of Redis, another one of the Sentinels, and TLS by an authority of its own."""

    password: str
    sentinel_password: str
    #: Certificate and key of all servers, and the certificate that signs it.
    certificate: Path
    authority: Path
    #: Certificate and key with which nodes of a Redis Cluster speak to each other.
    client: Path | None = None


class RedisServers(ABC):
    """Redis servers that fail over to a replica. ``nodes`` are the ports of those that hold data."""

    nodes: list[int]

    def __init__(self, root: Path, program: str, guard: Guard | None, words: Sequence[str]) -> None:
        """Prepare servers below a directory. A subclass starts them.

        ``program``: the server, if it is not that of all tests; it must know TLS for a ``guard``. ``words``: more
        arguments of the servers that hold data.
        """
        self._root = root
        self._program = program or redis_program()
        self._guard = guard
        self._words = words
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    @abstractmethod
    def url(self) -> str:
        """For the option redis_url."""

    def client(self, port: int, seconds: float = PATIENCE) -> redis.Redis:
        """Return a client of one server, which waits so long for an answer and asks once."""
        guard = self._guard
        more: dict[str, Any] = {"retry": Retry(NoBackoff(), 0)} if seconds < PATIENCE else {}
        if guard is not None:
            word = guard.password if port in self.nodes else guard.sentinel_password
            more |= {"password": word, "ssl": True, "ssl_ca_certs": str(guard.authority)}
        return redis.Redis(port=port, decode_responses=True, socket_timeout=seconds, **more)

    @abstractmethod
    def master(self) -> int:
        """Return the port of the server that answers at the moment for the keys that the store changes in one step."""

    @abstractmethod
    def await_failover(self, before: int) -> int:
        """Wait until another server than ``before`` is the master. Return its port."""

    @abstractmethod
    def rejoin(self, port: int) -> None:
        """Start a killed server again: as a replica if there is another master by now, else as the master that it was."""

    @abstractmethod
    def await_whole(self) -> None:
        """Wait until every part of the data has its master, and every replica has what its master has."""

    def placed(self, name: str) -> str:
        """Return the name that a key of ``masterstore.keys`` has on these servers."""
        return name

    def kill(self, port: int, number: int = signal.SIGKILL) -> None:
        """Send a signal to one of the processes. After SIGKILL wait for its end."""
        process = self._processes[port]
        process.send_signal(number)
        if number == signal.SIGKILL:
            process.wait(PATIENCE)
            del self._processes[port]

    def ended(self) -> dict[int, int]:
        """Return the exit codes of the processes that ended and were not killed by ``kill``, by their ports."""
        return {port: code for port, one in self._processes.items() if (code := one.poll()) is not None}

    def close(self) -> None:
        """End all processes."""
        for process in self._processes.values():
            process.kill()
            process.wait()

    def start(self, port: int, *words: str) -> None:
        """Start one of the servers that hold data. ``words``: more arguments."""
        place = self._root / str(port)
        place.mkdir(exist_ok=True)
        server = [self._program, *self._listening(port), "--bind", "127.0.0.1", "--dir", str(place), "--save", ""]
        if self._guard is not None:
            server += ["--requirepass", self._guard.password, "--masterauth", self._guard.password]
        server += ["--appendonly", "yes", "--repl-diskless-sync-delay", "0", *self._words, *words]
        self._launch(port, server)

    def _listening(self, port: int) -> list[str]:
        """Arguments of a server or Sentinel for its port."""
        if self._guard is None:
            return ["--port", str(port)]
        certificate = str(self._guard.certificate)
        words = ["--port", "0", "--tls-port", str(port), "--tls-replication", "yes", "--tls-auth-clients", "no"]
        words += ["--tls-cert-file", certificate, "--tls-key-file", certificate]
        return [*words, "--tls-ca-cert-file", str(self._guard.authority)]

    def _launch(self, port: int, words: list[str]) -> None:
        with (self._root / f"{port}.log").open("ab") as log:
            # Killed with the tests even if these are killed themselves: by the mark that labs clean up by, where there is one.
            self._processes[port] = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(os.environ), start_new_session=True
            )
        await_port(port, self._processes[port])


class RedisPair(RedisServers):
    """``nodes`` are the ports of two Redis servers, the first being master at first; ``sentinels`` those of the Sentinels."""

    def __init__(self, root: Path, *words: str, program: str = "", guard: Guard | None = None) -> None:
        """Start everything below a directory, and wait until it is one. ``words``: more arguments of both servers.

        ``program``: the server, if it is not that of all tests; it must know TLS for a ``guard``.
        """
        super().__init__(root, program, guard, words)
        # A killed server finds its port again.
        ports = kept_ports(5)
        self.nodes, self.sentinels = ports[:2], ports[2:]
        try:
            self.start(self.nodes[0])
            self.start(self.nodes[1], "--replicaof", "127.0.0.1", str(self.nodes[0]))
            until(lambda: self._linked(), "the replica is in step")
            for port in self.sentinels:
                self._start_sentinel(port)
            until(lambda: self._agreed(), "the Sentinels know each other and the replica")
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """For the option redis_url."""
        return f"redis+sentinel://{','.join(f'127.0.0.1:{port}' for port in self.sentinels)}/{SERVICE}/0"

    def master(self) -> int:
        """The port of the master, as most Sentinels know it."""
        said = sorted(self._known_to(port) for port in self.sentinels)
        return said[1]

    def rejoin(self, port: int) -> None:
        """Start a killed server again: as a replica if the Sentinels name another master by now, else as the master.

        A Sentinel starts again with what it knew.
        """
        if port in self.sentinels:
            self._launch_sentinel(port)
            return
        master = self.master()
        self.start(port, *(() if master == port else ("--replicaof", "127.0.0.1", str(master))))

    def await_whole(self) -> None:
        """Wait until the Sentinels name a master, and the other server is a replica that is in step with it."""

        def whole() -> bool:
            master = self.master()
            if self.client(master).info("replication")["role"] != "master":
                return False
            (other,) = (port for port in self.nodes if port != master)
            found = self.client(other).info("replication")
            return found.get("master_link_status") == "up" and found["master_port"] == master

        until(whole, "the replica is in step")

    def await_failover(self, before: int) -> int:
        """Waits until the Sentinels name another master than ``before`` and it is one; its port."""

        def done() -> bool:
            now = self.master()
            return now != before and self.client(now).info("replication")["role"] == "master"

        until(done, "the failover")
        return self.master()

    def demote(self, port: int) -> None:
        """What the Sentinels do to an old master within ten seconds after it came back."""
        client = self.client(port)
        client.replicaof("127.0.0.1", str(self.master()))
        client.client_kill_filter(_type="normal", skipme=True)
        until(lambda: client.info("replication").get("master_link_status") == "up", "the old master is in step")

    def _start_sentinel(self, port: int) -> None:
        place = self._root / str(port)
        place.mkdir()
        # A Sentinel writes what it learns into its configuration.
        words = self._listening(port)
        guarded = "".join(f"{name[2:]} {value}\n" for name, value in zip(words[::2], words[1::2], strict=True))
        if self._guard is not None:
            guarded += (
                f"requirepass {self._guard.sentinel_password}\nsentinel sentinel-pass {self._guard.sentinel_password}\n"
            )
        (place / "sentinel.conf").write_text(
            f"{guarded}bind 127.0.0.1\ndir {place}\n"
            f"sentinel monitor {SERVICE} 127.0.0.1 {self.nodes[0]} 2\n"
            f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER}\n"
            f"sentinel failover-timeout {SERVICE} 4000\n"
            + (f"sentinel auth-pass {SERVICE} {self._guard.password}\n" if self._guard is not None else "")
        )
        self._launch_sentinel(port)

    def _launch_sentinel(self, port: int) -> None:
        self._launch(port, [self._program, str(self._root / str(port) / "sentinel.conf"), "--sentinel"])

    def _linked(self) -> bool:
        return self.client(self.nodes[1]).info("replication").get("master_link_status") == "up"

    def _agreed(self) -> bool:
        states: list[Any] = [self.client(port).sentinel_master(SERVICE) for port in self.sentinels]
        return all(one["num-other-sentinels"] == 2 and one["num-slaves"] == 1 for one in states)

    def _known_to(self, sentinel: int) -> int:
        address: Any = self.client(sentinel).sentinel_get_master_addr_by_name(SERVICE)
        return int(address[1])


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition is true; servers that do not answer make it false. Raises TimeoutError, which names ``what``."""
    deadline = time.monotonic() + PATIENCE
    pause = threading.Event()
    while True:
        try:
            if condition():
                return
        except (redis.ConnectionError, redis.TimeoutError, KeyError):
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {PATIENCE:g} s")
        pause.wait(0.05)
