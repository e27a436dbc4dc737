"""Measures the CPU time of a master for each request of minions, role by role, Saltern and real Salt in turns.

python -m bench.requests [--salt .oracle] [--minions 100] [--seconds 4] [--rounds 3] [--workers 5] [--only KIND,KIND]

Simulated minions (bench.crowd) ask one request at a time each, so that the master always has work. CPU time is that of all
processes of the master, Redis and the lab's supervisor included, divided by the answered requests. It depends on the load of the
machine much less than seconds do. Without --salt only Saltern is measured.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import select
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench.crowd import LONG_RETURN, Crowd, Simulated
from bench.fleet import cpu, parts
from bench.systems import OURS, System, salt, saltern

#: A load of a simulated minion: (minion id, number of its request) -> the load without nonce and token.
Load = Callable[[str, int], Mapping[str, object]]

#: Jobs that are published before their returns are timed; each minion returns each of them once.
_JOBS = 40

#: Bytes of the file that is fetched in one piece, and of the file that is fetched in pieces.
_SMALL, _LARGE = 4096, 64 << 20

#: Bytes of one piece of a file, as a master sends them (file_buffer_size).
_PIECE = 1 << 20

#: Options of our master without limits for minions and their addresses: all simulated minions have one address.
UNLIMITED = {"minion_requests_per_second": 0, "address_requests_per_second": 0, "address_connections_per_second": 0}

#: Seconds that an answer may take.
_PATIENCE = 60.0

_GRAINS = {"id": "", "os": "Debian", "os_family": "Debian", "kernel": "Linux", "num_cpus": 2, "ipv4": ["127.0.0.1"]}


@dataclass(frozen=True)
class Kind:
    """A kind of request: what it is called in the table, how its loads are made, and how many of them are one unit."""

    title: str
    #: Makes the loads for one measurement; is called before the clock starts.
    loads: Callable[[System], Load]
    #: Requests that make one unit of the table.
    requests: int = 1
    #: Whether each minion asks only so many requests; None: as many as fit into the time.
    most: int | None = None


def _published(system: System, value: object) -> Load:
    """Publish jobs that the two real minions run, too; return what makes the returns of each simulated minion for each job."""
    jids = [_jid(system) for _ in range(_JOBS)]

    def load(minion: str, number: int) -> Mapping[str, object]:
        made = {"cmd": "_return", "jid": jids[number], "fun": "test.ping", "fun_args": [], "id": minion}
        return made | {"return": value, "retcode": 0, "success": True}

    return load


def _jid(system: System) -> str:
    said = system.run("salt", "*", "test.ping", "--async")
    return said.split()[-1]


def _requested(system: System) -> Load:
    del system
    base = {"cmd": "_return", "jid": "req", "fun": "test.ping", "fun_args": [], "retcode": 0, "success": True}
    return lambda minion, number: base | {"id": minion, "return": number}


def _event(system: System) -> Load:
    del system
    return lambda minion, number: {
        "cmd": "_minion_event",
        "id": minion,
        "tag": "bench/said",
        "data": {"number": number, "text": "x" * 100},
        "pretag": None,
    }


def _pillar(system: System) -> Load:
    del system
    base: dict[str, object] = {
        "cmd": "_pillar",
        "saltenv": None,
        "pillarenv": None,
        "pillar_override": {},
        "extra_minion_data": {},
        "ver": "2",
    }
    return lambda minion, number: base | {"id": minion, "grains": _GRAINS | {"id": minion, "turn": number % 2}}


def _tree(system: System) -> Path:
    options = yaml.safe_load((system.config_dir / "master").read_text("utf-8"))
    return Path(options["file_roots"]["base"][0])


def _small_file(system: System) -> Load:
    (_tree(system) / "small.bin").write_bytes(os.urandom(_SMALL))
    hashed: dict[str, object] = {"cmd": "_file_hash", "path": "small.bin", "saltenv": "base"}
    served: dict[str, object] = {"cmd": "_serve_file", "path": "small.bin", "saltenv": "base", "gzip": None}
    turns = (hashed, served | {"loc": 0}, served | {"loc": _SMALL})
    return lambda minion, number: turns[number % 3] | {"id": minion}


def _large_file(system: System) -> Load:
    (_tree(system) / "large.bin").write_bytes(os.urandom(_LARGE))
    served: dict[str, object] = {"cmd": "_serve_file", "path": "large.bin", "saltenv": "base", "gzip": None}
    return lambda minion, number: served | {"id": minion, "loc": number * _PIECE % _LARGE}


KINDS = {
    "return": Kind("return of a published job", lambda system: _published(system, True), most=_JOBS),
    "long-return": Kind("return of 20 kB", lambda system: _published(system, LONG_RETURN), most=_JOBS),
    "req": Kind("return with jid req", _requested),
    "event": Kind("event of a minion", _event),
    "pillar": Kind("pillar", _pillar),
    "small-file": Kind("file of 4 KiB: hash and two pieces", _small_file, requests=3),
    "large-file": Kind("MiB of a 64 MiB file", _large_file),
}


@contextlib.contextmanager
def signed_in(system: System, name: str, count: int) -> Iterator[list[Simulated]]:
    """Sign in ``count`` simulated minions; the ``with`` block gets them with their connections to 4506 open."""
    options = yaml.safe_load((system.config_dir / "master").read_text("utf-8"))
    crowd = Crowd(name, count, options["ret_port"], options["publish_port"], tokens=system.name != OURS)
    sign_ins = crowd.sign_ins()
    crowd.storm(sign_ins)
    if crowd.looked_at(sign_ins) != count:
        raise RuntimeError(f"{system.name}: not all of {count} minions signed in")
    minions = [one.minion for one in sign_ins]
    try:
        yield minions
    finally:
        for one in minions:
            one.requests.close()


def asked(minions: list[Simulated], load: Load, seconds: float, most: int | None) -> int:
    """Have each minion ask one request after the other; return the number of answers.

    ``most``: requests of each minion; None: as many as fit into ``seconds``.
    """
    poller = select.epoll()
    by_place: dict[int, tuple[Simulated, Iterator[int]]] = {}
    count, waiting = 0, 0

    def ask(minion: Simulated, numbers: Iterator[int]) -> bool:
        number = next(numbers, None)
        if number is None:
            return False
        assert minion.session is not None
        minion.requests.send(b"", minion.session.seal(load(minion.id, number), time.time())[0])
        return True

    for minion in minions:
        numbers = iter(range(most)) if most else itertools.count()
        by_place[place := minion.requests.fileno()] = (minion, numbers)
        poller.register(place, select.EPOLLIN)
        waiting += ask(minion, numbers)
    deadline = time.monotonic() + seconds
    heard = time.monotonic()
    while waiting and time.monotonic() - heard < _PATIENCE:
        for place, _ in poller.poll(1):
            minion, numbers = by_place[place]
            for _answered in minion.requests.receive():
                heard = time.monotonic()
                count += 1
                waiting -= 1
                if most or heard < deadline:
                    waiting += ask(minion, numbers)
    if waiting:
        raise RuntimeError(f"{waiting} requests got no answer within {_PATIENCE:g} s")
    return count


def connected_anew(system: System, minions: list[Simulated]) -> None:
    """Connect the minions to 4506 again: a master ends connections whose minion answers no heartbeat while others are measured."""
    port = yaml.safe_load((system.config_dir / "master").read_text("utf-8"))["ret_port"]
    for one in minions:
        one.requests.connect(port)
        one.requests.await_ready()


def by_role(system: System) -> dict[str, float]:
    """Return {role: CPU seconds so far} of the master's processes; those of real minions are left out."""
    spent: dict[str, float] = {}
    for pid in parts(system)[0]:
        with contextlib.suppress(OSError):
            # The lab forks its roles, which name themselves; workers have a number.
            name = Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip().rstrip("-0123456789")
            spent[name] = spent.get(name, 0.0) + cpu([pid])
    return spent


def measured(system: System, minions: list[Simulated], kind: Kind, seconds: float) -> dict[str, float]:
    """Return {role: CPU milliseconds for each unit}, with the sum under ""."""
    load = kind.loads(system)
    connected_anew(system, minions)
    if not kind.most:
        asked(minions, load, seconds / 4, None)
    time.sleep(0.5)  # what the jobs and the requests before set in motion comes to rest; nothing waits for it
    before = by_role(system)
    count = asked(minions, load, seconds, kind.most)
    after = by_role(system)
    units = count / kind.requests
    spent = {role: 1000 * (after[role] - before.get(role, 0.0)) / units for role in after}
    return {"": sum(spent.values())} | spent


def main() -> int:
    """Print the table; return 0. A measurement that fails raises an exception."""
    parser = argparse.ArgumentParser(
        prog="bench.requests", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--salt", type=Path, help="virtual environment with salt")
    parser.add_argument("--minions", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=5, help="of both masters")
    parser.add_argument("--only", default=",".join(KINDS), help="kinds, with commas between: " + ", ".join(KINDS))
    parser.add_argument("--json", action="store_true", help="print all numbers as JSON")
    arguments = parser.parse_args()
    taken: dict[tuple[str, str], list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as directory, contextlib.ExitStack() as stack:
        systems = [stack.enter_context(saltern(Path(directory) / "saltern", arguments.workers, UNLIMITED))]
        if arguments.salt:
            theirs = salt(Path(directory) / "salt", arguments.salt.absolute(), arguments.workers)
            systems.append(stack.enter_context(theirs))
        crowds = [stack.enter_context(signed_in(one, "ask", arguments.minions)) for one in systems]
        for name in arguments.only.split(","):
            for _ in range(arguments.rounds):
                for system, minions in zip(systems, crowds, strict=True):
                    found = measured(system, minions, KINDS[name], arguments.seconds)
                    taken.setdefault((name, system.name), []).append(found)
            print(f"{name} done, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    medians = {
        key: {role: statistics.median(one.get(role, 0.0) for one in found) for role in found[0]}
        for key, found in taken.items()
    }
    if arguments.json:
        print(json.dumps({" ".join(key): found for key, found in medians.items()}, indent=1))
        return 0
    for name in arguments.only.split(","):
        ours = medians[name, OURS]
        rest = ", ".join(f"{role} {value:.2f}" for role, value in ours.items() if role and value >= 0.005)
        line = f"{KINDS[name].title:36} {ours['']:7.2f}"
        if arguments.salt:
            other = medians[name, systems[1].name][""]
            line += f" {other:7.2f}  1/{other / ours['']:.1f}"
        print(f"{line}   ({rest})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
