"""Run in a copy of the machine: our answers to calls of execution functions.

Arguments: ``functions FILE`` writes the list of our functions; ``calls FILE`` reads and writes as ``salt_side.py`` does.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from statecore.runtime.runtime import local_runtime
from tests.sweep.sweep_answers import answers

_ROOT = "/tmp/sweep/ours"


class Failed(Exception):
    """A call that the runtime reports as an error."""


def main() -> None:
    what, file = sys.argv[1:]
    Path(_ROOT).mkdir(parents=True, exist_ok=True)
    runtime = local_runtime(
        {
            "id": "web1",
            "root_dir": _ROOT,
            "conf_file": f"{_ROOT}/minion",
            "cachedir": f"{_ROOT}/cache",
            "pki_dir": f"{_ROOT}/pki",
            "sock_dir": f"{_ROOT}/sock",
            "extension_modules": f"{_ROOT}/extmods",
            "file_roots": {"base": ["/tmp/sweep/tree"]},
            "pillar_roots": {"base": []},
        },
        pillar={},
    )
    if what == "functions":
        Path(file).write_text(json.dumps(runtime.call("sys.list_functions").value))
        return

    def call(name: str, args: list[Any], kwargs: dict[str, Any]) -> tuple[object, int]:
        done = runtime.call(name, args, kwargs)
        if done.error is not None:
            raise Failed(done.error)
        return done.value, done.retcode

    answers(file, "ours", call, lambda name: runtime.call("sys.argspec", [name]))


main()
