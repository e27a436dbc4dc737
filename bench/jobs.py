"""Measures the job cache from a thousand jobs to a million: times of queries, memory per job, and stored returns per second.

python -m bench.jobs [--jobs 1000,10000,100000,1000000] [--salt .oracle] [--saltext .saltext-redis]

It starts a Redis of its own on loopback. With --salt and --saltext it measures Salt's local job cache (files) and
saltext-redis (Salt's Redis returner) in the same run, up to the size that they can handle. Goals: each query below 5 ms at
every size; returns at half the speed of raw pipelined Redis.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import redis

from bench.job_cache import FUNCTIONS, MINIONS, STEP_MS, MadeJob, fill, jobs
from masterstore import keys, return_scripts, values
from masterstore.job_filter import JobFilter
from masterstore.lives import jid_ms
from masterstore.store import Store
from tests.conftest import await_port, free_port, redis_program

SIZES = (1_000, 10_000, 100_000, 1_000_000)

#: Sizes beyond which a peer is not asked: a file or two for each job; every load read for each question.
MOST_FILES, MOST_KEYS = 10_000, 100_000

#: Questions of one kind, at each size; and of a peer, whose questions last.
TIMES, PEER_TIMES = 200, 3

#: Milliseconds that a question may take.
_WANTED = 5

#: Returns that are timed, and how many of them go into one pipeline.
RETURNS, PIPELINE = 4_000, 100

_TTL = 86_400

#: Seconds in which Redis answers even on a busy machine.
_PATIENCE = 600


class Timed(NamedTuple):
    """Milliseconds of a repeated query: shortest time, median, 95th percentile."""

    least: float
    middle: float
    most: float


def main(argv: Sequence[str] | None = None) -> int:
    """Run the measurements and print their tables. Return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=_sizes, default=SIZES, metavar="N,N", help="sizes of the job cache")
    parser.add_argument("--returns", type=int, default=RETURNS, metavar="N", help="returns that are timed")
    parser.add_argument("--salt", type=Path, metavar="DIR", help="virtual environment with real Salt")
    parser.add_argument("--saltext", type=Path, metavar="DIR", help="virtual environment with saltext-redis")
    flags = parser.parse_args(argv)
    begin = datetime.now(UTC) - timedelta(milliseconds=max(flags.jobs) * STEP_MS)
    with tempfile.TemporaryDirectory() as place, _redis(Path(place)) as port:
        # A busy machine lets Redis wait: what is waited for is its answer.
        server = redis.Redis(port=port, socket_timeout=_PATIENCE)
        store = Store.open(f"redis://127.0.0.1:{port}/0", timeout=_PATIENCE, client_name="bench")
        _print_questions(store, server, flags.jobs, begin)
        _print_weights(server, port)
        _print_returns(store, server, flags.returns)
        if flags.salt:
            _print_peers(flags, Path(place), port, begin)
    return 0


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(sorted(int(part) for part in text.split(",")))
    except ValueError:
        sizes = ()
    if not sizes or sizes[0] < 100:
        raise argparse.ArgumentTypeError(f"'{text}' is no list of sizes, each 100 or more, as in 1000,1000000")
    return sizes


def questions(store: Store, last: MadeJob) -> Mapping[str, Callable[[], object]]:
    """Return {name: function that sends the query to the job cache}; ``last`` is the newest job of the cache."""
    find = store.found_jobs.page
    failed = next(name for name in FUNCTIONS if name.startswith("state."))
    return {
        "newest 50": lambda: find(JobFilter(limit=50)).jobs,
        "newest 50 of a minion": lambda: find(JobFilter(limit=50, minions=(last.minion,))).jobs,
        "newest 50 of a function": lambda: find(JobFilter(limit=50, functions=(last.fun,))).jobs,
        "newest 50 of a glob of functions": lambda: find(JobFilter(limit=50, functions=("state.*",))).jobs,
        "newest 5 failures of a function": lambda: find(JobFilter(limit=5, functions=(failed,), success=False)),
        "page 3 of a minion": lambda: _third_page(store, last.minion),
        "one job with its returns": lambda: store.jobs.job(last.jid),
        "where one job is": lambda: store.jobs.life(last.jid),
    }


def _third_page(store: Store, minion: str) -> object:
    wanted = JobFilter(limit=3, minions=(minion,))
    second = store.found_jobs.page(wanted)
    return store.found_jobs.page(JobFilter(limit=3, minions=(minion,), cursor=second.cursor))


def _print_questions(store: Store, server: redis.Redis, sizes: Sequence[int], begin: datetime) -> None:
    """Print the row of each size as soon as it is measured, because the largest takes long."""
    there = 0
    found: dict[str, list[Timed]] = {}
    print("Questions, ms: quickest, median (95 %)")
    for size in sizes:
        began = time.perf_counter()
        fill(server, there, size - there, begin, ttl=_TTL)
        print(f"{size:,} jobs, made within {time.perf_counter() - began:.1f} s", flush=True)
        there = size
        (last,) = jobs(size - 1, 1, begin)
        for name, ask in questions(store, last).items():
            if not ask():
                raise RuntimeError(f"{name} found nothing among {size} jobs")
            one = timed(ask, TIMES)
            found.setdefault(name, []).append(one)
            print(f"  {name:34}{one.least:>8.2f}{one.middle:>8.2f} ({one.most:.2f})", flush=True)
    slow = [name for name, taken in found.items() if max(one.middle for one in taken) >= _WANTED]
    grown = {name: taken[-1].least / taken[0].least for name, taken in found.items()}
    worst = max(grown, key=lambda name: grown[name])
    print(f"Wanted: below {_WANTED} ms each. {'Not met: ' + ', '.join(slow) if slow else 'Met.'}")
    print(
        f"Flat? {sizes[-1]:,} jobs beside {sizes[0]:,}, quickest: at most {grown[worst]:.1f} times ({worst})\n",
        flush=True,
    )


def timed(ask: Callable[[], object], times: int) -> Timed:
    """Call ``ask`` ``times`` times and return the Timed: shortest, median and 95th percentile in milliseconds."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        ask()
        taken.append((time.perf_counter() - began) * 1000)
    return Timed(min(taken), statistics.median(taken), sorted(taken)[int(0.95 * (times - 1))])


def _print_weights(server: redis.Redis, port: int) -> None:
    """Print the memory of Redis per job, for jobs with one minion and with eleven, written by the store's own functions."""
    weights = []
    for database, minions in ((2, 1), (3, 11)):
        store = Store.open(f"redis://127.0.0.1:{port}/{database}", timeout=_PATIENCE, client_name="bench")
        before = _memory(server)
        for job in jobs(0, 1000, datetime.now(UTC)):
            names = list(MINIONS[:minions])
            now = jid_ms(job.jid)
            store.jobs.publish(job.load(), names, request_id=job.jid, ttl=_TTL, now_ms=now)
            for name in names:
                store.jobs.record_return({**job.ret(), "id": name}, ttl=_TTL, now_ms=now + 1200)
        weights.append((_memory(server) - before) / 1000)
        store._client.redis.flushdb()
    one_return = (weights[1] - weights[0]) / 10
    size = len(values.dumps(jobs(0, 1, datetime.now(UTC))[0].ret()))
    print("Memory of Redis, bytes")
    print(f"{'a job, indexes and publication':34}{weights[0] - one_return:>18,.0f}")
    print(f"{'a return (its JSON: ' + str(size) + ')':34}{one_return:>18,.0f}\n")


def _memory(server: redis.Redis) -> int:
    return int(server.info("memory")["used_memory"])


def _print_returns(store: Store, server: redis.Redis, count: int) -> None:
    """Print how many returns per second the store takes, beside the same scripts pipelined and raw Redis commands."""
    ways: tuple[tuple[str, Callable[[list[MadeJob]], None]], ...] = (
        ("one after the other, as a worker", lambda made: _one_by_one(store, made)),
        ("the same scripts, pipelined", lambda made: _scripts(store, made)),
        ("raw Redis, pipelined", lambda made: _raw(server, made)),
        ("raw Redis, one after the other", lambda made: _raw(server, made, together=1)),
    )
    speeds: dict[str, list[float]] = {}
    for turn in range(3):
        for number, (name, put) in enumerate(ways):
            made = jobs(0, count, datetime.now(UTC) + timedelta(hours=1 + turn * len(ways) + number))
            for job in made:
                store.jobs.publish(job.load(), [job.minion], request_id=job.jid, ttl=_TTL, now_ms=jid_ms(job.jid))
            began = time.perf_counter()
            put(made)
            speeds.setdefault(name, []).append(count / (time.perf_counter() - began))
    middle = {name: statistics.median(taken) for name, taken in speeds.items()}
    print(f"Returns a second, one connection ({count} returns, median of 3)")
    for name, speed in middle.items():
        print(f"{name:34}{speed:>18,.0f}")
    pipelined = middle[ways[1][0]] / middle[ways[2][0]]
    single = middle[ways[0][0]] / middle[ways[3][0]]
    print(f"Wanted: half of raw. Pipelined {pipelined:.2f}, one after the other {single:.2f} of it.\n")


def _one_by_one(store: Store, made: list[MadeJob]) -> None:
    for job in made:
        store.jobs.record_return(job.ret(), ttl=_TTL, now_ms=jid_ms(job.jid) + 1200)


def _scripts(store: Store, made: list[MadeJob]) -> None:
    """Store the returns by the script RETURN, many calls in one pipeline, as many workers at once would."""
    script, sha = store.jobs._return, store._client.redis.script_load(return_scripts.RETURN)
    calls: list[tuple[Sequence[str], list[str | int]]] = []

    def kept(keys: Sequence[str], args: list[str | int]) -> int:
        calls.append((keys, args))
        return 3

    store.jobs._return = kept
    try:
        for at in range(0, len(made), PIPELINE):
            calls.clear()
            _one_by_one(store, made[at : at + PIPELINE])
            pipe = store._client.redis.pipeline(transaction=False)
            for names, arguments in calls:
                pipe.evalsha(sha, len(names), *names, *arguments)
            pipe.execute()
    finally:
        store.jobs._return = script


def _raw(server: redis.Redis, made: list[MadeJob], *, together: int = PIPELINE) -> None:
    """Write the returns under Salt's keys by plain Redis commands, without the states, indexes and counters of the store."""
    for at in range(0, len(made), together):
        pipe = server.pipeline(transaction=False)
        for job in made[at : at + together]:
            ret = job.ret()
            pipe.hset(keys.ret(job.jid), job.minion, values.dumps(ret))
            pipe.expire(keys.ret(job.jid), _TTL)
            pipe.set(f"{job.minion}:{job.fun}", job.jid)
            pipe.sadd(keys.MINIONS, job.minion)
        pipe.execute()


def _print_peers(flags: argparse.Namespace, place: Path, port: int, begin: datetime) -> None:
    """Print the times of the same queries in Salt's own job caches, and their ratio to Saltern's."""
    ours = Store.open(f"redis://127.0.0.1:{port}/0", timeout=_PATIENCE, client_name="bench")
    peers = [("local", flags.salt / "bin" / "python", MOST_FILES, "Salt's files")]
    if flags.saltext:
        peers.append(("redis", flags.saltext / "bin" / "python", MOST_KEYS, "saltext-redis"))
    print("Beside job caches of Salt, ms (median), and how many times as long as here")
    for cache, python, most, name in peers:
        sizes = [size for size in flags.jobs if size <= most] or [most]
        for size in sizes:
            answer = _peer(cache, python, size, place / f"{cache}{size}", port, begin, flags)
            (last,) = jobs(max(flags.jobs) - 1, 1, begin)
            mine = questions(ours, last)
            pairs = (
                ("newest", "newest 50"),
                ("function", "newest 50 of a function"),
                ("lookup", "one job with its returns"),
            )
            told = []
            for theirs, own in pairs:
                here = timed(mine[own], 50).middle
                told.append(f"{own} {answer[theirs] * 1000:,.1f} ({answer[theirs] * 1000 / here:,.0f}x)")
            print(f"{name:16}{size:>10,} jobs: {'; '.join(told)}; {answer['returns']:,.0f} returns/s")


def _peer(
    cache: str, python: Path, size: int, place: Path, port: int, begin: datetime, flags: argparse.Namespace
) -> Mapping[str, float]:
    place.mkdir()
    made = jobs(0, size, begin)
    written = made if cache == "local" else made[: flags.returns]
    lines = place / "jobs.ndjson"
    lines.write_text("".join(f"{json.dumps([job.load(), job.ret()])}\n" for job in written), "utf-8")
    if cache == "redis":
        server = redis.Redis(port=port, db=1)
        server.flushdb()
        fill(server, len(written), size - len(written), begin, ttl=_TTL, plain=True)
    wanted = {
        "dir": str(place / "cache"),
        "port": port,
        "db": 1,
        "store": str(lines),
        "fun": made[-1].fun,
        "jid": written[-1].jid,
        "times": PEER_TIMES,
    }
    client = str(Path(__file__).parent / "client_job_cache.py")
    done = subprocess.run(
        [str(python), "-P", client, cache, json.dumps(wanted)], capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        raise RuntimeError(f"the job cache {cache} of {size} jobs: {done.stderr[-2000:]}")
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


@contextmanager
def _redis(place: Path) -> Iterator[int]:
    port = free_port()
    words = [redis_program(), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(place), "--save", ""]
    with (place / "redis.log").open("wb") as log, subprocess.Popen(words, stdout=log) as server:
        try:
            await_port(port, server)
            yield port
        finally:
            server.terminate()


if __name__ == "__main__":
    sys.exit(main())
