"""Run by the oracle's Python: what real Salt's functions for users' modules return, step by step.

Standard input: ``directory``, ``opts``, ``steps``: ``files`` (path -> text, None removes one), ``fun``, ``args``, ``kwargs``.
Standard output: a JSON list of what the functions returned.
"""

import json
import logging
import sys
from pathlib import Path

import salt.config
import salt.loader
import salt.utils.entrypoints

# Beside the directories of those that use it.
sys.path.insert(0, str(Path(__file__).parents[2]))
from salt_minion import placed


def main():
    salt.utils.entrypoints.iter_entry_points = lambda group, name=None: []
    logging.disable(logging.CRITICAL)
    asked = json.load(sys.stdin)
    root = Path(asked["directory"])
    opts = {
        **salt.config.DEFAULT_MINION_OPTS.copy(),
        **placed(str(root)),
        "local": True,
        "pillar": {"unused": None},
        "grains": {"id": "web1"},
        "__cli": "salt-call",
        **asked["opts"],
    }
    told = []
    for step in asked["steps"]:
        for name, text in step["files"].items():
            path = root / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        # Each in a process of its own, as salt-call is.
        functions = salt.loader.minion_mods(opts, utils=salt.loader.utils(opts), context={})
        told.append(functions[f"saltutil.{step['fun']}"](*step["args"], **step["kwargs"]))
    sys.stdout.write(json.dumps(told))


main()
