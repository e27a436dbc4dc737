"""Run in a mount namespace of its own (``unshare -m``): states of ``mount`` on a root that borrows this machine's programs.

Arguments: the root's directory. Standard input: a list of [state, arguments, test]. Standard output: what each returned, and
what is then mounted in the root by its own table.
"""

import json
import subprocess
import sys
from pathlib import Path

from statecore.runtime.runtime import local_runtime

#: What programs of this machine need.
_BORROWED = ("usr", "bin", "sbin", "lib", "lib64", "proc", "dev", "sys")


def main() -> None:
    root = Path(sys.argv[1])
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for name in _BORROWED:
        if Path("/", name).is_dir():
            (root / name).mkdir(parents=True)
            subprocess.run(["mount", "--rbind", f"/{name}", root / name], check=True)
    opts = {
        "id": "web1",
        "host_root": str(root),
        "host_capabilities": ["SYS_ADMIN"],
        "cachedir": f"{root}/../cache",
        "file_roots": {},
        "pillar_roots": {},
    }
    runtime = local_runtime(opts, grains={"os": "Debian"}, pillar={})
    told = []
    for state, arguments, test in json.load(sys.stdin):
        done = runtime.call("state.single", [state], {**arguments, "test": test}).value
        entry = next(iter(done.values())) if isinstance(done, dict) else {"comment": done}
        seen = runtime.call("mount.active").value
        own = {place: each["opts"] for place, each in seen.items() if place.startswith("/mnt")}
        told.append({**{key: entry.get(key) for key in ("result", "changes", "comment")}, "mounted": own})
    json.dump(told, sys.stdout)


main()
