"""Measures the API beside a stock salt-api: CPU time of requests, and the memory of listeners to events.

python -m bench.api --salt .oracle [--rate 300] [--seconds 10] [--listeners 1000]

Both masters have two minions. Clients send `local` `test.ping` for one minion at a fixed rate over kept connections, which they
make anew when the API closed them. CPU time is that of the API's processes.
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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.run import family, pss
from bench.systems import MINIONS, System, free_ports, salt, saltern

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


async def send(api: Api, rate: float, seconds: float) -> Sent:
    """Send ``rate`` requests a second for some seconds, as far as the API takes them: what it has not taken _GRACE seconds
    later is not sent.
    """
    ping = {"client": "local", "tgt": MINIONS[0], "fun": "test.ping"}
    clients = [await Client.connected(api.port, api.token) for _ in range(_CONNECTIONS)]
    expected = json.dumps({"return": [{MINIONS[0]: True}]}).encode()
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
            try:
                answer = await client.ask("/", ping)
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
            if answer == expected:
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
        await send(api, 5, 4)
        return before, megabytes([api.pid])
    finally:
        for task in drains:
            task.cancel()
        for client in clients:
            client.close()


def megabytes(roots: list[int]) -> float:
    """Return the megabytes (PSS) of processes with all their children."""
    return sum(pss(pid) for pid in family(roots)) / 1024


def cpu_seconds(roots: list[int]) -> float:
    """Return the CPU seconds that processes with all their children have used so far."""
    ticks = 0
    for pid in family(roots):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(api: Api, rate: float, seconds: float) -> dict[str, float]:
    """Measure a run of requests: rate that was reached, CPU milliseconds of the API for each answer, CPU share, median."""
    asyncio.run(send(api, min(rate, 50), 2))
    used, began = cpu_seconds([api.pid]), time.perf_counter()
    sent = asyncio.run(send(api, rate, seconds))
    took = time.perf_counter() - began
    used = cpu_seconds([api.pid]) - used
    answered = max(sent.answered, 1)
    if sent.other:
        print(f"{api.system.name} answered, too: {sent.other[:300]}")
    return {
        "requests a second": sent.answered / took,
        "with a return, percent": 100 * len(sent.times) / answered,
        "connections closed unanswered": float(sent.closed),
        "answers with an error": float(sent.refused),
        "CPU ms of the API a request": 1000 * used / answered,
        "share of a core, percent": 100 * used / took,
        "median ms": 1000 * statistics.median(sent.times) if sent.times else float("nan"),
    }


def main() -> int:
    """Print both systems' figures and their ratios; return 0. A measurement that fails raises an exception."""
    parser = argparse.ArgumentParser(
        prog="bench.api", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--salt", required=True, type=Path, help="virtual environment with salt")
    parser.add_argument("--rate", type=float, default=300, help="requests a second")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--listeners", type=int, default=1000)
    arguments = parser.parse_args()
    venv = arguments.salt.absolute()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        ports = free_ports(3)
        options = [api_options(directory / "users", port) for port in ports[:2]]
        mine = stack.enter_context(saltern(directory / "saltern", options=options[0]))
        theirs = stack.enter_context(salt(directory / "salt", venv, options=options[1]))
        bounds = {**options[0]["rest_cherrypy"], "max_connections_of_address": 0}
        environment = {
            "SALTERN_REST_CHERRYPY": json.dumps(bounds),
            "SALTERN_HEALTH_PORT": str(ports[2]),
            "SALTERN_LOG_LEVEL": "error",
        }
        own = [str(Path(sys.executable).parent / "saltern"), "api", "-c", str(mine.config_dir)]
        stock = [str(venv / "bin" / "salt-api"), "-c", str(theirs.config_dir)]
        ours = stack.enter_context(api_of(mine, ports[0], own, environment, directory / "api.log"))
        other = stack.enter_context(api_of(theirs, ports[1], stock, {}, directory / "salt-api.log"))
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {arguments.rate:g} requests a second offered\n")
        figures = [measured(api, arguments.rate, arguments.seconds) for api in (ours, other)]
        print(f"{'':30} {mine.name:>10} {theirs.name:>10}   ratio")
        for name in figures[0]:
            left, right = figures[0][name], figures[1][name]
            print(f"{name:30} {left:10.3g} {right:10.3g}   {f'{right / left:.2f}' if left else ''}")
        before, then = asyncio.run(listeners_megabytes(ours, arguments.listeners))
        print(f"\n{arguments.listeners} listeners to events: {then:.0f} MB, without them {before:.0f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
