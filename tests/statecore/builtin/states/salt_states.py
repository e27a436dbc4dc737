"""Run by the oracle's Python: applies state cases with real Salt, as ``conftest.Ours`` does with ours.

Standard input: one JSON object: ``directory`` (scratch), ``tree`` (file root), ``pillar``, ``grains``, and ``phases``, a list of
[test, high data]. Standard output: the list of running dictionaries, one for each phase.
"""

import json
import os
import sys
from pathlib import Path

# Commands run by the shell that a minion as a service has, files get the usual modes.
os.environ["SHELL"] = "/bin/sh"
os.umask(0o022)

import salt.config  # noqa: E402
import salt.minion  # noqa: E402

# Beside the directories of those that use it.
sys.path.insert(0, str(Path(__file__).parents[2]))
from salt_minion import spare_repetition  # noqa: E402


def main() -> None:
    spare_repetition()
    asked = json.load(sys.stdin)
    root = asked["directory"]
    Path(root, "etc").mkdir()
    with open(f"{root}/etc/minion", "w") as file:
        json.dump({"grains": asked["grains"]}, file)
    opts = salt.config.minion_config(f"{root}/etc/minion")
    opts.update(
        id="web1",
        file_client="local",
        # As of ``salt-call --local``: Salt would look for a minion to tell of new modules, for seconds each time.
        local=True,
        root_dir=root,
        cachedir=f"{root}/cache",
        pki_dir=f"{root}/pki",
        sock_dir=f"{root}/sock",
        conf_file=f"{root}/etc/minion",
        extension_modules=f"{root}/extmods",
        file_roots={"base": [asked["tree"]]},
        pillar_roots={"base": []},
        enable_fqdns_grains=False,
    )
    minion = salt.minion.SMinion(opts)
    ran = [
        minion.functions["state.high"](high, test=test, pillar=asked["pillar"], queue=True)
        for test, high in asked["phases"]
    ]
    json.dump(ran, sys.stdout, default=str)


main()
