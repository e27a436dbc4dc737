"""A Redis, its replica and three Sentinels, as real processes on loopback: what a failover is tried on."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import redis

from tests.conftest import await_port, redis_program
from tests.ports import free_ports

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


class RedisPair:
    """``nodes`` are the ports of two Redis servers, the first being master at first; ``sentinels`` those of the Sentinels."""

    def __init__(self, root: Path, *words: str, program: str = "", guard: Guard | None = None) -> None:
        """Starts everything below a directory, and waits until it is one. ``words``: more arguments of both servers.

        ``program``: the server, where it is not that of all tests; it must know TLS for a ``guard``.
        """
        self._guard = guard
        self._root = root
        self._program = program or redis_program()
        self._words = words
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        ports = free_ports(5)
        self.nodes, self.sentinels = ports[:2], ports[2:]
        try:
            self.start(self.nodes[0])
            self.start(self.nodes[1], "--replicaof", "127.0.0.1", str(self.nodes[0]))
            _until(lambda: self._linked(), "the replica is in step")
            for port in self.sentinels:
                self._start_sentinel(port)
            _until(lambda: self._agreed(), "the Sentinels know each other and the replica")
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """For the option redis_url."""
        return f"redis+sentinel://{','.join(f'127.0.0.1:{port}' for port in self.sentinels)}/{SERVICE}/0"

    def start(self, port: int, *words: str) -> None:
        """One of the two servers."""
        place = self._root / str(port)
        place.mkdir(exist_ok=True)
        server = [self._program, *self._listening(port), "--bind", "127.0.0.1", "--dir", str(place), "--save", ""]
        if self._guard is not None:
            server += ["--requirepass", self._guard.password, "--masterauth", self._guard.password]
        server += ["--appendonly", "yes", "--repl-diskless-sync-delay", "0", *self._words, *words]
        self._launch(port, server)

    def client(self, port: int) -> redis.Redis:
        """One of the servers or Sentinels."""
        guard, more = self._guard, {}
        if guard is not None:
            word = guard.sentinel_password if port in self.sentinels else guard.password
            more = {"password": word, "ssl": True, "ssl_ca_certs": str(guard.authority)}
        return redis.Redis(port=port, decode_responses=True, socket_timeout=PATIENCE, **more)  # type: ignore[call-overload]

    def master(self) -> int:
        """The port of the master, as most Sentinels know it."""
        said = sorted(self._known_to(port) for port in self.sentinels)
        return said[1]

    def kill(self, port: int, number: int = signal.SIGKILL) -> None:
        """A signal to one of the processes; SIGKILL is waited for."""
        process = self._processes[port]
        process.send_signal(number)
        if number == signal.SIGKILL:
            process.wait(PATIENCE)

    def await_failover(self, before: int) -> int:
        """Waits until the Sentinels name another master than ``before`` and it is one; its port."""

        def done() -> bool:
            now = self.master()
            return now != before and self.client(now).info("replication")["role"] == "master"

        _until(done, "the failover")
        return self.master()

    def demote(self, port: int) -> None:
        """What the Sentinels do to an old master within ten seconds after it came back."""
        client = self.client(port)
        client.replicaof("127.0.0.1", str(self.master()))
        client.client_kill_filter(_type="normal", skipme=True)
        _until(lambda: client.info("replication").get("master_link_status") == "up", "the old master is in step")

    def close(self) -> None:
        """Ends everything."""
        for process in self._processes.values():
            process.kill()
            process.wait()

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
        self._launch(port, [self._program, str(place / "sentinel.conf"), "--sentinel"])

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

    def _linked(self) -> bool:
        return self.client(self.nodes[1]).info("replication").get("master_link_status") == "up"

    def _agreed(self) -> bool:
        states = [self.client(port).sentinel_master(SERVICE) for port in self.sentinels]
        return all(one["num-other-sentinels"] == 2 and one["num-slaves"] == 1 for one in states)

    def _known_to(self, sentinel: int) -> int:
        return int(self.client(sentinel).sentinel_get_master_addr_by_name(SERVICE)[1])


def _until(condition: Callable[[], bool], what: str) -> None:
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
