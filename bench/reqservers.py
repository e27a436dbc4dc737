"""Measures requests a second and CPU time for each request with 1, 2 and 4 reqservers.

python -m bench.reqservers [--counts 1,2,4] [--workers 3] [--connections 32] [--rate 0] [--whole] [--apart] [--code DIR]
                           [--seconds 5] [--rounds 3]

Minions' connections ask `ping`, which a worker answers without Redis: what is left is the work of passing requests on. Each
connection has one request at a time. All processes are on this machine: more reqservers serve more requests only if it has cores to
spare, and where it has not, each process reads fewer messages at a time.

--rate: offer so many requests a second to each reqserver, which must be less than it can serve: then CPU time for each request
shows what several reqservers cost. The last column is the median of the rounds' ratios to the first row. --whole: workers,
connections and the rate are for all reqservers of a master together: processes that wake up for fewer requests have cold caches,
and need more CPU time for each. --apart: beside each master with several reqservers measure as many masters of one reqserver at
once, of which each connection has one by chance: what several reqservers cost more than these is the price of their common
workers. --code: measure the services and libraries of another checkout, in turns with this one: it has one reqserver, and its
masters are those of --apart.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.client
import operator
import os
import random
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench.fleet import cpu
from bench.systems import free_ports
from bench.zmtp import Connection
from saltern.kit.keys.keygen import make_keys
from saltwire.pack import packb
from tests.conftest import await_port, redis_program

_ROOT = Path(__file__).resolve().parents[1]

#: Seconds for everything to start.
_START_SECONDS = 120.0

#: Seconds of load before a measurement: workers find their homes, caches fill.
_WARM_SECONDS = 1.0

#: Roles whose CPU time is shown.
_COUNTED = ("reqserver", "mworker")

_PORTS = ("publish_port", "ret_port", "control_port", "event_pull_port", "event_pub_port", "workers_port")


@dataclass
class Master:
    """A master without publishers and minions, or several: the processes by role, and the ports for minions."""

    ports: list[int]
    processes: dict[str, list[int]]

    def __add__(self, other: Master) -> Master:
        """Return both as one."""
        roles = {*self.processes, *other.processes}
        both = {role: [*self.processes.get(role, ()), *other.processes.get(role, ())] for role in roles}
        return Master([*self.ports, *other.ports], both)


@contextlib.contextmanager
def master(directory: Path, reqservers: int, workers: int, code: Path = _ROOT) -> Iterator[Master]:
    """Run Redis, an event publisher, reqservers and workers while the ``with`` block runs, which gets the Master.

    ``code``: checkout whose libraries and services run; another one than this has one reqserver.
    """
    directory.mkdir()
    ports = dict(zip((*_PORTS, "redis"), free_ports(len(_PORTS) + 1), strict=True))
    names = ["eventpublisher", *["reqserver"] * reqservers, *["mworker"] * workers]
    health = free_ports(len(names))
    options: dict[str, object] = {name: ports[name] for name in _PORTS}
    options |= {
        "interface": "127.0.0.1",
        "internal_interface": "127.0.0.1",
        "log_level": "error",
        "cachedir": str(directory / "cache"),
    }
    options |= {"redis_url": f"redis://127.0.0.1:{ports['redis']}/0", "key_dir": ""}
    options |= {"address_requests_per_second": 0, "address_connections_per_second": 0, "minion_requests_per_second": 0}
    if code == _ROOT and reqservers > 1:
        options |= {
            "reqserver_host": [f"127.0.0.{number}" for number in range(1, reqservers + 1)],
            "ret_port_shared": True,
        }
    (directory / "master").write_text(yaml.safe_dump(options), "utf-8")
    make_keys(directory / "keys")
    environment = os.environ | {"PYTHONPATH": f"{code}/libs:{code}/services:{code}"}
    running: dict[str, list[int]] = {}
    with contextlib.ExitStack() as stack:

        def start(name: str, words: Sequence[str], **more: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(words, env=environment | more, stdin=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            running.setdefault(name, []).append(process.pid)
            return process

        await_port(
            ports["redis"],
            start(
                "redis",
                [
                    redis_program(),
                    "--port",
                    str(ports["redis"]),
                    "--save",
                    "",
                    "--loglevel",
                    "warning",
                    "--dir",
                    str(directory),
                ],
            ),
        )
        entry = [str(Path(sys.executable).parent / "saltern")]
        for name, port in zip(names, health, strict=True):
            number = len(running.get(name, ())) + 1
            own = {"SALTERN_INTERNAL_INTERFACE": f"127.0.0.{number}"} if name == "reqserver" and number > 1 else {}
            start(name, [*entry, name, "-c", str(directory)], SALTERN_HEALTH_PORT=str(port), **own)
        deadline = time.monotonic() + _START_SECONDS
        while not all(_is_ready(port) for port in health):
            if time.monotonic() > deadline:
                raise RuntimeError("the roles are not ready")
            time.sleep(0.1)
        yield Master([ports["ret_port"]], running)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    return False


@dataclass
class Measured:
    """Requests a second, and CPU milliseconds for each request by role."""

    rate: float
    cpu: dict[str, float]

    @property
    def both(self) -> float:
        """CPU milliseconds for each request, of the reqservers and workers together."""
        return sum(self.cpu[role] for role in _COUNTED)


def measured(target: Master, connections: int, seconds: float, rate: float) -> Measured:
    """Ask `ping` over so many connections for some seconds, after a second that does not count. ``rate``: requests a second;
    0: as many as are answered.
    """
    made = [Connection(b"DEALER") for _ in range(connections)]
    poller = select.epoll()
    by_place: dict[int, tuple[Connection, bytes]] = {}
    for number, one in enumerate(made):
        payload = packb({"enc": "clear", "load": {"cmd": "ping", "id": f"bench{number}"}, "version": 3})
        by_place[one.connect(random.choice(target.ports))] = (one, payload)
        one.await_ready()
        one.send(b"", payload)
    for place in by_place:
        poller.register(place, select.EPOLLIN)
    try:
        waiting: deque[int] = deque()
        _answer(poller, by_place, _WARM_SECONDS, rate, waiting)
        before = {role: cpu(pids) for role, pids in target.processes.items()}
        began = time.monotonic()
        count = _answer(poller, by_place, seconds, rate, waiting)
        took = time.monotonic() - began
        spent = {role: 1000 * (cpu(pids) - before[role]) / count for role, pids in target.processes.items()}
        return Measured(count / took, spent)
    finally:
        for one in made:
            one.close()


def _answer(
    poller: select.epoll,
    by_place: dict[int, tuple[Connection, bytes]],
    seconds: float,
    rate: float,
    waiting: deque[int],
) -> int:
    """Send the next request of each connection that has its answer, for some seconds; return the number of answers.

    ``rate``: most requests a second; 0: any number. ``waiting``: connections, by their file numbers, that have their
    answer and no request.
    """
    count = sent = 0
    began = time.monotonic()
    while (now := time.monotonic()) < began + seconds:
        while waiting and (not rate or sent < (now - began) * rate):
            one, payload = by_place[waiting.popleft()]
            one.send(b"", payload)
            sent += 1
        for place, _ in poller.poll(max(began + (sent + 1) / rate - now, 0.0005) if rate else 1):
            for _answered in by_place[place][0].receive():
                count += 1
                waiting.append(place)
    return count


def main() -> int:
    """Print the table; return 0."""
    parser = argparse.ArgumentParser(
        prog="bench.reqservers", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--counts", default="1,2,4", help="numbers of reqservers")
    parser.add_argument("--workers", type=int, default=3, help="for each reqserver")
    parser.add_argument("--connections", type=int, default=32, help="for each reqserver")
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second to each; 0: as many as are answered")
    parser.add_argument(
        "--whole", action="store_true", help="workers, connections and rate are for all reqservers together"
    )
    parser.add_argument("--apart", action="store_true", help="measure as many masters of one reqserver, too")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--code", type=Path, help="checkout to compare with")
    arguments = parser.parse_args()

    def parts(reqservers: int) -> int:
        """Return how often a master has what the options say."""
        return 1 if arguments.whole else reqservers

    #: Name of a row -> how many masters at once, reqservers of each, and their checkout.
    rows: dict[str, tuple[int, int, Path]] = {}
    for count in map(int, arguments.counts.split(",")):
        if count > 1 and arguments.apart:
            rows[f"{count} masters at once"] = (count, 1, arguments.code or _ROOT)
        elif count == 1 and arguments.code:
            rows["the other checkout"] = (1, 1, arguments.code)
        rows[f"{count} reqservers"] = (1, count, _ROOT)
    taken: dict[str, list[Measured]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as directory, contextlib.ExitStack() as stack:
        # All at once, and measured in turns: each sees the same machine. Those that are not measured do nothing.
        masters: dict[str, Master] = {}
        for name, (times, count, code) in rows.items():
            workers = arguments.workers * parts(times * count) // times
            started = [
                stack.enter_context(
                    master(Path(directory) / f"{len(masters)}.{number}", count, workers, code.absolute())
                )
                for number in range(times)
            ]
            masters[name] = functools.reduce(operator.add, started)
        for _ in range(arguments.rounds):
            for name, target in masters.items():
                times = parts(len(target.processes["reqserver"]))
                connections, rate = arguments.connections * times, arguments.rate * times
                taken.setdefault(name, []).append(measured(target, connections, arguments.seconds, rate))
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; medians of {arguments.rounds} rounds; CPU ms for each request"
    )
    print(f"{'':24}{'requests/s':>11}{'reqserver':>11}{'mworker':>9}{'to the first':>14}")
    first = next(iter(taken.values()))
    for name, found in taken.items():
        rate = statistics.median(one.rate for one in found)
        spent = {role: statistics.median(one.cpu[role] for one in found) for role in _COUNTED}
        # Round by round: the machine is now faster, now slower, and both rows of a round saw the same.
        ratio = statistics.median(one.both / other.both for one, other in zip(found, first, strict=True))
        print(f"{name:24}{rate:11.0f}{spent['reqserver']:11.3f}{spent['mworker']:9.3f}{ratio:14.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
