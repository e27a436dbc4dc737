"""Times how a master resolves targets: `python -m bench.targets`; 10,000 accepted minions, 3 kB of grains each.

Prints CPU milliseconds of the worker for its first query, which reads all grains, and for the fourth. The goal is 50.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from types import SimpleNamespace
from typing import Any, cast

import msgpack
import redis

from masterstore import keys
from masterstore.store import Store
from saltern.kit.config.master import MasterOptions
from saltern.mworker.targets import resolve
from saltern.mworker.worker_context import WorkerContext
from tests.conftest import await_port, free_port, redis_program

MINIONS = 10_000

TARGETS = (
    ("*", "glob"),
    ("web[0-9]+", "pcre"),
    (",".join(f"web{number}" for number in range(0, 5000, 2)), "list"),
    ("os:Debian", "grain"),
    ("os:Deb.*", "grain_pcre"),
    ("roles:web", "grain"),
    ("systemd:version:252", "grain"),
    ("nosuch:thing", "grain"),
    ("G@os:Debian and web* or not E@db.*", "compound"),
    ("10.0.0.0/16", "ipcidr"),
    ("all", "nodegroup"),
)


def main() -> int:
    """Measure each target and print a line for it. Return 0."""
    port = free_port()
    with tempfile.TemporaryDirectory() as place:
        words = [redis_program(), "--port", str(port), "--bind", "127.0.0.1", "--dir", place, "--save", ""]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL) as server:
            try:
                await_port(port, server)
                _measure(port)
            finally:
                server.terminate()
    return 0


def _measure(port: int) -> None:
    _fill(redis.Redis(port=port))
    options = MasterOptions(
        redis_url=f"redis://127.0.0.1:{port}/0", nodegroups={"web": "G@os:Debian and web*", "all": "N@web or L@db1,db3"}
    )
    store = Store.open(options.redis_url, client_name="bench")
    context = cast(WorkerContext, SimpleNamespace(options=options, store=store, pillars=dict))
    for tgt, tgt_type in TARGETS:
        spent = []
        for _ in range(4):
            began = time.process_time()
            found = len(resolve(context, tgt, tgt_type).minions)
            spent.append((time.process_time() - began) * 1000)
        print(f"{spent[0]:8.0f} {spent[-1]:8.1f} ms  {found:6} of {MINIONS}  {tgt_type}: {tgt[:40]}")


def _fill(server: redis.Redis) -> None:
    common: dict[str, Any] = {f"grain{number}": "value" * 4 for number in range(200)}
    common |= {"num_cpus": 4, "roles": ["web", "db"], "systemd": {"version": "252"}, "cpu_flags": ["flag"] * 120}
    pipe = server.pipeline()
    for number in range(MINIONS):
        name = f"{'db' if number % 2 else 'web'}{number}"
        own = {
            "id": name,
            "os": "Debian" if number % 3 else "Ubuntu",
            "ipv4": ["127.0.0.1", f"10.0.{number >> 8}.{number & 255}"],
        }
        pipe.hset(keys.minion_keys("accepted"), name, "PEM")
        pipe.hset(keys.GRAINS, name, msgpack.packb(common | own))
    pipe.set(keys.KEYS_VERSION, 1)
    pipe.execute()


if __name__ == "__main__":
    sys.exit(main())
