"""Run in a network namespace of its own (``unshare -n``): states, with this machine's own programs.

Standard input: a list of [state, arguments, test]. Standard output: what each returned.
"""

import json
import sys

from statecore.runtime.runtime import local_runtime


def main() -> None:
    opts = {"id": "web1", "cachedir": sys.argv[1], "file_roots": {}, "pillar_roots": {}}
    runtime = local_runtime(opts, grains={"os": "Debian", "os_family": "Debian"}, pillar={})
    told = []
    for state, arguments, test in json.load(sys.stdin):
        done = runtime.call("state.single", [state], {**arguments, "test": test}).value
        entry = next(iter(done.values())) if isinstance(done, dict) else {"comment": str(done)}
        told.append({key: entry.get(key) for key in ("result", "changes", "comment")})
    json.dump(told, sys.stdout)


main()
