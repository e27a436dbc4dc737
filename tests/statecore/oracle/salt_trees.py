"""Run by the oracle's Python: what real Salt makes of trees, one after the other in one process (``Salt`` in conftest.py).

Standard input: a tree on each line, as JSON: ``directory`` (everything of the tree lies in it), ``grains``, ``opts``,
``pillar`` (whether it has one), ``parts`` (which of ``high``, ``low`` and ``ran`` are asked for). Standard output: a line for
each: ``pillar`` and the parts, as JSON.
"""

import json
import sys
from pathlib import Path

import salt.config
import salt.fileclient
import salt.pillar
import salt.state
import salt.utils.secret

# Beside the directories of those that use it.
sys.path.insert(0, str(Path(__file__).parent.parent))
from salt_minion import placed, spare_repetition

#: With an empty pillar Salt would compile one again.
UNUSED = {"unused": None}


def main() -> None:
    spare_repetition()
    defaults = salt.config.DEFAULT_MINION_OPTS.copy()
    # Whatever Salt prints must not come between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        answers.write(json.dumps(told(defaults, json.loads(line)), default=str) + "\n")
        answers.flush()


def told(defaults, tree):
    root = tree["directory"]
    opts = {
        **defaults,
        **placed(root),
        "state_events": False,
        "autoload_dynamic_modules": False,
        "grains": tree["grains"],
        **tree["opts"],
    }
    pillar = pillar_of(opts) if tree["pillar"] else {}
    opts["pillar"] = pillar
    with salt.state.HighState(opts, initial_pillar=pillar or UNUSED) as states:
        told = {"pillar": dict(pillar)}
        errors = pillar.get("_errors")
        functions = {
            "high": states.compile_highstate,
            "low": states.compile_low_chunks,
            "ran": states.call_highstate,
        }
        for key in tree["parts"]:
            # As each is new in a function of the state module.
            states.iorder = 10000
            states.building_highstate.clear()
            # What is shown is changed by the next step.
            if errors and key != "ran":
                # What the functions of the state module say then.
                told[key] = ["Pillar failed to render with the following messages:", *errors]
                continue
            try:
                told[key] = json.loads(json.dumps(functions[key](), default=str))
            except Exception as error:  # noqa: BLE001 - what Salt stumbles over is told, and must be named as a difference
                told[key] = [f"{type(error).__name__}: {error}"]
    return told


def pillar_of(opts):
    pillar = salt.pillar.get_pillar(opts, opts["grains"], "web1", opts.get("saltenv"), pillarenv=opts.get("pillarenv"))
    return salt.utils.secret.expose(pillar.compile_pillar())


main()
