"""Run by the oracle's Python: the calls of ``calls.yaml`` as real Salt answers them, after ``saltutil.sync_all``.

Standard input: one JSON object: ``directory`` (scratch), ``tree``, ``opts`` (more options), ``calls`` ([function, arguments,
keywords] each). Standard output: a JSON list of ``{"value"}`` or ``{"error", "text"}``, the answer of the sync first.
"""

import json
import os
import sys
import warnings
from pathlib import Path

os.environ["SHELL"] = "/bin/sh"
warnings.simplefilter("ignore")

import salt.config  # noqa: E402
import salt.minion  # noqa: E402


def main():
    asked = json.load(sys.stdin)
    root = asked["directory"]
    Path(root, "etc").mkdir()
    Path(root, "etc/minion").write_text("{}")
    opts = salt.config.minion_config(f"{root}/etc/minion")
    opts.update(
        id="web1",
        file_client="local",
        root_dir=root,
        cachedir=f"{root}/cache",
        pki_dir=f"{root}/pki",
        sock_dir=f"{root}/sock",
        conf_file=f"{root}/etc/minion",
        extension_modules=f"{root}/extmods",
        file_roots={"base": [asked["tree"]]},
        pillar_roots={"base": [asked["pillar"]]},
        enable_fqdns_grains=False,
        **asked["opts"],
    )
    synced = salt.minion.SMinion(opts).functions["saltutil.sync_all"]("base", refresh=False)
    minion = salt.minion.SMinion(opts)
    answers = [{"value": synced}]
    for fun, args, kwargs in asked["calls"]:
        try:
            answers.append({"value": minion.functions[fun](*args, **kwargs)})
        except KeyError as error:
            answers.append({"error": "KeyError", "text": str(error)})
        except Exception as error:  # noqa: BLE001 - what is raised is an answer
            answers.append({"error": type(error).__name__, "text": str(error)})
    json.dump(answers, sys.stdout, default=str)


main()
