"""Compiles the pillar of many minions from one tree: CPU milliseconds for each minion, with and without a worker's cache.

python -m bench.pillar [minions]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from statecore.pillar.memory import PillarMemory
from statecore.runtime.master_data import MinionDataRequest, pillar_of
from statecore.runtime.runtime import Runtime
from statecore.sources.fileserver import FileServer

#: SLS files that every minion gets, each with twenty users in it.
_FILES = 30

_HEAD = "{% set os = grains['os'] %}\n{% import_yaml 'map.yaml' as map %}\n"
_USER = """  user{number}:
    uid: {number}
    home: /home/user{number}
    shell: {{{{ map.shell }}}}
    groups: [a, b, c]
    os: {{{{ os }}}}
"""


def write_tree(directory: Path) -> None:
    """Write the benchmark's pillar tree below ``directory``. One of its files renders differently for each minion."""
    refs = "".join(f"    - s{number}\n" for number in range(_FILES))
    (directory / "top.sls").write_text(f"base:\n  '*':\n{refs}  'web*':\n    - own\n", "utf-8")
    (directory / "map.yaml").write_text("shell: /bin/bash\n", "utf-8")
    (directory / "own.sls").write_text("me: {{ grains['id'] }}\n", "utf-8")
    users = "".join(_USER.format(number=number) for number in range(20))
    for number in range(_FILES):
        (directory / f"s{number}.sls").write_text(f"{_HEAD}key{number}:\n{users}", "utf-8")


def compile_for(minion: str, opts: dict[str, Any], files: FileServer, memory: PillarMemory | None) -> None:
    """Compile the pillar of a minion as a worker does for a request. Raises SystemExit if the pillar has errors."""
    live: dict[str, Any] = {}
    grains = {"id": minion, "os": "Debian" if minion.endswith("0") else "RedHat"}
    runtime = Runtime({**opts, "id": minion}, files=files, grains=grains, pillar=live)
    result = pillar_of(runtime.context, runtime.loader, MinionDataRequest(minion), live, memory=memory)
    if result.errors or result.data["me"] != minion:
        raise SystemExit(f"{minion}: {result.errors}")


def measure(minions: int, directory: Path, memory: PillarMemory | None) -> float:
    """Return the mean CPU milliseconds to compile the pillar of one minion, over ``minions`` minions.

    ``memory``: the worker's cache; None: without a cache.
    """
    opts = {"pillar_roots": {"base": [str(directory)]}, "file_roots": {}, "cachedir": "", "ext_pillar": []}
    files = FileServer.of(opts)
    compile_for("web", opts, files, memory)
    begin = time.process_time()
    for number in range(minions):
        compile_for(f"web{number}", opts, files, memory)
    return (time.process_time() - begin) / minions * 1000


def main() -> None:
    """Print the CPU milliseconds for each minion, with and without a worker's cache."""
    minions = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as directory:
        write_tree(Path(directory))
        alone = measure(max(1, minions // 20), Path(directory), None)
        shared = measure(minions, Path(directory), PillarMemory())
    print(
        f"{_FILES + 1} files, {minions} minions: {shared:.1f} ms each; {alone:.1f} ms without what a worker remembers"
    )


if __name__ == "__main__":
    main()
