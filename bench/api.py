"""Measures the API beside a stock salt-api: answers a second, CPU time of requests by role, and the memory of listeners to events.

python -m bench.api --salt .oracle [--rate 300] [--seconds 10] [--crowd 2] [--workers N] [--listeners 1000] [--no-real]

Clients send `local` `test.ping` for one minion after the other at a fixed rate, over kept connections, which they make anew when
the API closed them. Each system is measured twice: with simulated minions (bench.crowd), which return at once and cost next to
nothing, and with two real minions, which start a process for each job on the same cores. The simulated minions are the same
program for both masters. CPU time is divided by the answers.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.fleet import cpu, crowd, words
from bench.requests import UNLIMITED, by_role
from bench.run import family, pss
from bench.systems import MINIONS, OURS, System, free_ports, salt, saltern

#: Connections over which requests are sent.
_CONNECTIONS = 60

#: Seconds after the planned end in which late requests are still sent.
_GRACE = 10.0

#: Seconds in which an API must answer for the first time.
_START_SECONDS = 120.0

#: Options of a master with a user who may do everything, and an API without TLS on loopback.
_USER, _PASSWORD = "bench", "pw-bench"


def api_options(users: Path, port: int) -> dict[str, Any]:
    """Write the file of users, and return the master's options that the API needs."""
    users.write_text(f"{_USER}:{_PASSWORD}\n", "utf-8")
    rows = {"^filename": str(users), "^filetype": "text", _USER: [".*", "@runner", "@wheel", "@jobs"]}
    return {
        "external_auth": {"file": rows},
        "netapi_enable_clients": ["local"],
        "rest_cherrypy": {"host": "127.0.0.1", "port": port, "disable_ssl": True},
    }


@dataclass(frozen=True)
class Api:
    """A running API: its system, port and process, and the token of a session."""

    system: System
    port: int
    pid: int
    token: str


@contextlib.contextmanager
def api_of(system: System, port: int, command: list[str], environment: Mapping[str, str], log: Path) -> Iterator[Api]:
    """Run the API of a system while the ``with`` block runs, which gets the Api with a session."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=os.environ | environment)
        try:
            yield Api(system, port, process.pid, asyncio.run(_logged_in(port)))
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def _logged_in(port: int) -> str:
    deadline = time.monotonic() + _START_SECONDS
    body = {"username": _USER, "password": _PASSWORD, "eauth": "file"}
    while True:
        with contextlib.suppress(*_BROKEN, ValueError, KeyError):
            client = await Client.connected(port, "")
            answer = await client.ask("/login", body)
            client.close()
            return str(json.loads(answer)["return"][0]["token"])
        if time.monotonic() > deadline:
            raise RuntimeError(f"the API on port {port} does not answer")
        await asyncio.sleep(0.5)


#: What a request raises whose connection was closed before the whole answer came.
_BROKEN = (OSError, asyncio.IncompleteReadError)


class Client:
    """A kept HTTP connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, token: str) -> None:
        self._reader, self._writer, self._port, self._token = reader, writer, port, token

    @classmethod
    async def connected(cls, port: int, token: str) -> Client:
        """Return a client that is connected."""
        return cls(*await asyncio.open_connection("127.0.0.1", port), port, token)

    async def connect_again(self) -> None:
        """Close the connection and make it anew."""
        self._writer.close()
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def ask(self, path: str, body: object) -> bytes:
        """Send a POST request, and return the body of the answer. Raises RuntimeError for another status than 200, one of
        _BROKEN if the connection was closed.
        """
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nAccept: application/json\r\n"
        head += f"X-Auth-Token: {self._token}\r\n" if self._token else ""
        self._writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        answered = await self._reader.readuntil(b"\r\n\r\n")
        lengths = [line for line in answered.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        content = await self._reader.readexactly(int(lengths[0].partition(b":")[2]))
        if b" 200 " not in answered.partition(b"\r\n")[0]:
            raise RuntimeError(f"{answered.decode()}{content.decode()}")
        return content

    async def listen(self) -> None:
        """Send GET /events, and return when the stream is open."""
        self._writer.write(f"GET /events HTTP/1.1\r\nHost: bench\r\nX-Auth-Token: {self._token}\r\n\r\n".encode())
        if b" 200 " not in (await self._reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")[0]:
            raise RuntimeError("no stream of events")

    async def drain(self) -> None:
        """Read and drop what comes, until the connection ends."""
        with contextlib.suppress(OSError):
            while await self._reader.read(65536):
                pass

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


@dataclass
class Sent:
    """What became of requests: how many got an answer, the seconds of those with the minion's return (from its planned time on),
    connections that the API closed instead of an answer, and answers with an error's status.
    """

    answered: int = 0
    times: list[float] = field(default_factory=list)
    closed: int = 0
    refused: int = 0
    #: The last answer that was none with the minion's return.
    other: str = ""


async def send(api: Api, minions: Sequence[str], rate: float, seconds: float) -> Sent:
    """Send ``rate`` requests a second for some seconds, for one minion after the other, as far as the API takes them: what it
    has not taken _GRACE seconds later is not sent.
    """
    clients = [await Client.connected(api.port, api.token) for _ in range(_CONNECTIONS)]
    sent = Sent()
    started = time.perf_counter() + 0.2
    end = started + seconds + _GRACE
    count = int(rate * seconds)

    async def work(number: int, client: Client) -> None:
        for index in range(number, count, len(clients)):
            due = started + index / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if time.perf_counter() > end:
                return
            minion = minions[index % len(minions)]
            try:
                answer = await client.ask("/", {"client": "local", "tgt": minion, "fun": "test.ping"})
            except _BROKEN:
                sent.closed += 1
                await client.connect_again()
                continue
            except RuntimeError as error:
                sent.refused += 1
                sent.other = str(error)
                continue
            sent.answered += 1
            # A minion that has too much to do answers late, which is not the API's doing.
            if json.loads(answer) == {"return": [{minion: True}]}:
                sent.times.append(time.perf_counter() - due)
            else:
                sent.other = answer.decode()

    try:
        await asyncio.gather(*(work(number, client) for number, client in enumerate(clients)))
    finally:
        for client in clients:
            client.close()
    return sent


async def listeners_megabytes(api: Api, count: int) -> tuple[float, float]:
    """Open ``count`` streams of events while jobs run. Return (megabytes of the API before, megabytes then)."""
    before = megabytes([api.pid])
    clients = [await Client.connected(api.port, api.token) for _ in range(count)]
    drains = []
    try:
        for client in clients:
            await client.listen()
            drains.append(asyncio.create_task(client.drain()))
        await send(api, MINIONS, 5, 4)
        return before, megabytes([api.pid])
    finally:
        for task in drains:
            task.cancel()
        for client in clients:
            client.close()


def megabytes(roots: list[int]) -> float:
    """Return the megabytes (PSS) of processes with all their children."""
    return sum(pss(pid) for pid in family(roots)) / 1024


@dataclass(frozen=True)
class Spent:
    """CPU seconds so far: of the API, of each role of the master, and of the benchmark's client with its simulated minions."""

    api: float
    roles: Mapping[str, float]
    bench: float

    @classmethod
    def now(cls, api: Api) -> Spent:
        """Return the seconds that were spent until now."""
        own = [pid for pid in family([os.getpid()]) if b"bench.crowd" in words(pid)]
        return cls(cpu(family([api.pid])), by_role(api.system), cpu(own) + time.process_time())


def measured(api: Api, minions: Sequence[str], rate: float, seconds: float) -> dict[str, float]:
    """Measure a run of requests. Return {row of the table: number}; the rows of the master's roles begin with two spaces."""
    asyncio.run(send(api, minions, min(rate, 50), 2))
    before, began = Spent.now(api), time.perf_counter()
    sent = asyncio.run(send(api, minions, rate, seconds))
    took = time.perf_counter() - began
    after = Spent.now(api)
    answered = max(sent.answered, 1)
    if sent.other:
        print(f"{api.system.name} answered, too: {sent.other[:300]}")

    def each(left: float, right: float) -> float:
        return 1000 * (right - left) / answered

    roles = {name: each(before.roles.get(name, 0.0), spent) for name, spent in after.roles.items()}
    own = each(before.api, after.api)
    times = sorted(sent.times) or [float("nan")]
    found = {
        "answers a second": sent.answered / took,
        "answers with the return, percent": 100 * len(sent.times) / answered,
        "connections closed unanswered": float(sent.closed),
        "answers with an error": float(sent.refused),
        "median ms": 1000 * statistics.median(times),
        "99 of 100 within ms": 1000 * times[int(len(times) * 0.99)],
        "CPU ms of API and master": own + sum(roles.values()),
        "CPU ms of the API": own,
        "CPU ms of the master": sum(roles.values()),
    }
    if api.system.name == OURS:
        # The processes of stock's master have no names of their own in /proc/PID/comm.
        found |= {f"  {name}": spent for name, spent in sorted(roles.items()) if spent >= 0.005}
    return found | {"CPU ms of the benchmark": each(before.bench, after.bench)}


def show(title: str, figures: Mapping[str, Mapping[str, float]]) -> None:
    """Print a table: a row for each figure, a column for each system, and the second system's number divided by the first's."""
    names = list(figures)
    rows = dict.fromkeys(row for found in figures.values() for row in found)
    ours = list(figures[names[0]])
    print(f"\n{title:34} " + " ".join(f"{name:>10}" for name in names) + "   ratio")
    for row in sorted(rows, key=lambda row: ours.index(row)):
        numbers = [found.get(row) for found in figures.values()]
        cells = " ".join(f"{number:10.3g}" if number is not None else " " * 10 for number in numbers)
        left, right = numbers[0], numbers[-1]
        ratio = f"{right / left:8.2f}" if len(numbers) == 2 and left and right is not None else ""
        print(f"{row:34} {cells}{ratio}", flush=True)


def main() -> int:
    """Print both systems' figures and their ratios; return 0. A measurement that fails raises an exception."""
    parser = argparse.ArgumentParser(
        prog="bench.api", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--salt", type=Path, help="virtual environment with salt; without it ours alone is measured")
    parser.add_argument("--rate", type=float, default=300, help="requests a second")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--crowd", type=int, default=2, help="simulated minions")
    parser.add_argument("--workers", type=int, help="workers of both masters; else each has as many as it comes with")
    parser.add_argument("--listeners", type=int, default=1000)
    parser.add_argument("--no-real", action="store_true", help="leave out the real minions' table")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        apis = [_ours(stack, directory, arguments.workers)]
        if arguments.salt:
            apis.append(_stock(stack, directory, arguments.salt.absolute(), arguments.workers))
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {arguments.rate:g} requests a second offered")
        fleets = {"two real minions": MINIONS} if not arguments.no_real else {}
        simulated = tuple(f"crowd{number:05d}" for number in range(arguments.crowd))
        for api in apis:
            stack.enter_context(crowd(api.system, "crowd", arguments.crowd, listening=True))
        for title, minions in {f"{arguments.crowd} simulated minions": simulated, **fleets}.items():
            rows = {api.system.name: measured(api, minions, arguments.rate, arguments.seconds) for api in apis}
            show(title, rows)
        if arguments.listeners:
            before, then = asyncio.run(listeners_megabytes(apis[0], arguments.listeners))
            print(f"\n{arguments.listeners} listeners to events: {then:.0f} MB, without them {before:.0f} MB")
    return 0


def _ours(stack: contextlib.ExitStack, directory: Path, workers: int | None) -> Api:
    port, health = free_ports(2)
    options = api_options(directory / "our-users", port)
    system = stack.enter_context(saltern(directory / "saltern", workers, options | UNLIMITED))
    bounds = {**options["rest_cherrypy"], "max_connections_of_address": 0}
    environment = {
        "SALTERN_REST_CHERRYPY": json.dumps(bounds),
        "SALTERN_HEALTH_PORT": str(health),
        "SALTERN_LOG_LEVEL": "error",
    }
    command = [str(Path(sys.executable).parent / "saltern"), "api", "-c", str(system.config_dir)]
    return stack.enter_context(api_of(system, port, command, environment, directory / "api.log"))


def _stock(stack: contextlib.ExitStack, directory: Path, venv: Path, workers: int | None) -> Api:
    (port,) = free_ports(1)
    options = api_options(directory / "users", port)
    system = stack.enter_context(salt(directory / "salt", venv, workers, options))
    command = [str(venv / "bin" / "salt-api"), "-c", str(system.config_dir)]
    return stack.enter_context(api_of(system, port, command, {}, directory / "salt-api.log"))


if __name__ == "__main__":
    raise SystemExit(main())
