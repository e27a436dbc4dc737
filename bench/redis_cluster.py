"""Compares one Redis with a Redis Cluster of three nodes: `python -m bench.redis_cluster`.

Prints, for one worker that stores one job after the other, the median milliseconds of a publication, of a small return
and of a return of 20 kB, and their ratios. The two are measured in turns. Then it prints how many MB of 20 kB returns
each node holds.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

import redis

from masterstore.store import Store
from tests.conftest import await_port, free_port, redis_program
from tests.faults.redis_cluster import RedisCluster

#: Rounds, and jobs in each.
_ROUNDS, _JOBS = 5, 400

#: Bytes of a large return. Its text does not compress to less than a half.
_LARGE = 20_000

_NOW = 1_767_225_600_000

#: Name of a row -> what is timed for a job.
_Verb = Callable[[Store, str, str], object]


def _publish(store: Store, jid: str, text: str) -> object:
    load = {"jid": jid, "fun": "test.ping", "tgt": "*", "arg": [], "user": "root"}
    return store.jobs.publish(load, ["a", "b"], request_id=jid, ttl=3600, now_ms=_NOW)


def _small(store: Store, jid: str, text: str) -> object:
    return store.jobs.record_return({"jid": jid, "id": "a", "fun": "test.ping", "return": True, "retcode": 0}, ttl=3600)


def _large(store: Store, jid: str, text: str) -> object:
    return store.jobs.record_return(
        {"jid": jid, "id": "b", "fun": "state.apply", "return": text, "retcode": 0}, ttl=3600
    )


_ROWS: Mapping[str, _Verb] = {"publication": _publish, "small return": _small, "return of 20 kB": _large}


def main() -> int:
    """Measure and print. Return 0."""
    port = free_port()
    with tempfile.TemporaryDirectory() as place:
        cluster = RedisCluster(Path(place), replicas=False)
        words = [redis_program(), "--port", str(port), "--bind", "127.0.0.1", "--dir", place, "--save", ""]
        try:
            with subprocess.Popen([*words, "--appendonly", "yes"], stdout=subprocess.DEVNULL) as server:
                await_port(port, server)
                try:
                    _measure({"one Redis": f"redis://127.0.0.1:{port}/0", "Redis Cluster": cluster.url}, cluster.nodes)
                finally:
                    server.terminate()
        finally:
            cluster.close()
    return 0


def _measure(urls: Mapping[str, str], nodes: Sequence[int]) -> None:
    stores = {name: Store.open(url, timeout=30, client_name="bench") for name, url in urls.items()}
    text = "".join(Random(1).choices("0123456789abcdef", k=_LARGE))
    spent: dict[tuple[str, str], list[float]] = {}
    for number in range(_ROUNDS):
        for name, store in stores.items():
            jids = [f"20260101000{number}{job:08}" for job in range(_JOBS)]
            for row, verb in _ROWS.items():
                began = time.perf_counter()
                for jid in jids:
                    verb(store, jid, text)
                spent.setdefault((row, name), []).append((time.perf_counter() - began) / _JOBS * 1000)
    sys.stdout.write(f"{'one worker, ms':20}" + "".join(f"{name:>16}" for name in stores) + f"{'ratio':>8}\n")
    for row in _ROWS:
        one, many = (statistics.median(spent[row, name]) for name in stores)
        sys.stdout.write(f"{row:20}{one:16.2f}{many:16.2f}{many / one:8.2f}\n")
    sys.stdout.write(f"\n{_ROUNDS * _JOBS} returns of 20 kB, MB by node: ")
    held = [redis.Redis(port=port).info("memory")["used_memory"] / 1e6 for port in nodes]
    sys.stdout.write(", ".join(f"{size:.1f}" for size in held) + "\n")


if __name__ == "__main__":
    sys.exit(main())
