"""Times queries and returns of a stock Salt job cache. bench.jobs runs it with the Python of a real Salt.

Arguments: cache, JSON of what to do. The cache ``local`` is Salt's files below ``dir``; ``redis`` is saltext-redis at
``port``, database ``db``. Prints JSON: seconds of each query, and stored returns per second.
"""

import json
import statistics
import sys
import time

import salt.config
import salt.loader


def opened(cache, wanted):
    """Return {name: function} of Salt's returner for this cache, such as ``save_load``, loaded as the master loads them."""
    opts = salt.config.master_config(None)
    opts["cachedir"] = wanted["dir"]
    opts["extension_modules"] = wanted["dir"] + "/ext"
    opts["redis.host"], opts["redis.port"], opts["redis.db"] = "127.0.0.1", wanted["port"], wanted["db"]
    names = {"local": "local_cache", "redis": "redis"}
    returners = salt.loader.returners(opts, {})
    return {name.rpartition(".")[2]: returners[name] for name in returners if name.startswith(f"{names[cache]}.")}


def store(functions, jobs):
    """Store these (load, return) pairs. Return how many returns were stored per second; storing the loads is not timed."""
    for load, _ in jobs:
        functions["prep_jid"](passed_jid=load["jid"])
        functions["save_load"](load["jid"], load, [load["tgt"]])
    began = time.perf_counter()
    for _, ret in jobs:
        functions["returner"](ret)
    return len(jobs) / (time.perf_counter() - began)


def main():
    """Carry out what the command line asks for, and print the times as JSON."""
    cache, wanted = sys.argv[1], json.loads(sys.argv[2])
    functions = opened(cache, wanted)
    answer = {}
    if wanted["store"]:
        with open(wanted["store"]) as file:
            answer["returns"] = store(functions, [json.loads(line) for line in file])
    # What `jobs.list_jobs_filter 50`, `jobs.list_jobs search_function=` and `jobs.lookup_jid` ask of a job cache.
    newest = functions.get("get_jids_filter")
    questions = {
        "newest": (lambda: newest(50)) if newest else (lambda: sorted(functions["get_jids"]())[-50:]),
        "function": lambda: [j for j, job in functions["get_jids"]().items() if job["Function"] == wanted["fun"]][-50:],
        "lookup": lambda: (functions["get_load"](wanted["jid"]), functions["get_jid"](wanted["jid"])),
    }
    for name, ask in questions.items():
        taken = []
        for _ in range(wanted["times"]):
            began = time.perf_counter()
            found = ask()
            taken.append(time.perf_counter() - began)
        assert found, name
        answer[name] = statistics.median(taken)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
