"""Run by the oracle's Python: what Salt's execution functions return or raise, called one after the other.

Standard input: ``cachedir``, ``opts``, ``grains``, ``pillar``, and ``calls``: [function, args, kwargs] of each, or ["$", command].
Output: for each call ["return", value] or ["raise", name of the exception, message]; for a command its exit code.
"""

import json
import subprocess
import sys

import salt.config
import salt.loader
from salt_minion import spare_repetition

spare_repetition()
asked = json.load(sys.stdin)
opts = salt.config.DEFAULT_MINION_OPTS.copy()
opts.update(
    id="web1",
    file_client="local",
    local=True,
    cachedir=asked["cachedir"],
    extension_modules=f"{asked['cachedir']}/extmods",
    pki_dir=asked["cachedir"],
    pillar_roots={"base": []},
    grains={"os": "Debian", "os_family": "Debian", "kernel": "Linux", **asked.get("grains", {})},
    pillar=asked.get("pillar", {}),
)
opts.update(asked.get("opts", {}))
functions = salt.loader.minion_mods(opts, utils=salt.loader.utils(opts))
told = []
for name, args, kwargs in asked["calls"]:
    if name == "$":
        told.append(["return", subprocess.run(["/bin/sh", "-ec", args], capture_output=True, check=False).returncode])
        continue
    try:
        told.append(["return", functions[name](*args, **kwargs)])
    except Exception as error:  # noqa: BLE001 - it is the answer
        told.append(["raise", type(error).__name__, str(error)])
json.dump(told, sys.stdout, default=str)
