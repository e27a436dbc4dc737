"""Run by the oracle's Python: the pillar and the master's tops that real Salt makes of trees, in one process for all.

Each line of standard input: a JSON list of cases: ``opts``, ``grains``, ``saltenv``, ``pillarenv``, ``override``, ``tops``
(whether the case asks for the highstate's matches instead), ``calls`` (of functions: [name, args, kwargs]). Standard output:
a line with a JSON list: what came of each, or ``{"raised": ...}``.
"""

import copy
import json
import logging
import sys
from pathlib import Path

import salt.config
import salt.loader
import salt.pillar
import salt.state
import salt.utils.secret

# Beside the directories of those that use it.
sys.path.insert(0, str(Path(__file__).parent.parent))
from salt_minion import placed, spare_repetition


def main() -> None:
    logging.disable(logging.CRITICAL)
    spare_repetition()
    defaults = salt.config.DEFAULT_MINION_OPTS.copy()
    told, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        told.write(json.dumps([answer(defaults, case) for case in json.loads(line)], default=str) + "\n")
        told.flush()


def answer(defaults, case):
    root = case["directory"]
    opts = {
        **copy.deepcopy(defaults),
        **placed(root),
        "grains": case["grains"],
        **case["opts"],
    }
    try:
        if case["calls"]:
            return called(opts, case)
        told = matches_of(opts) if case["tops"] else pillar_of(opts, case)
        return json.loads(json.dumps(told, default=text))
    except Exception as error:  # noqa: BLE001 - what Salt stumbles over is told, and must be named as a difference
        return {"raised": f"{type(error).__name__}: {error}"}


def pillar_of(opts, case):
    pillar = salt.pillar.Pillar(
        opts,
        case["grains"],
        "web1",
        case["saltenv"],
        pillar_override=case["override"],
        pillarenv=case["pillarenv"],
    )
    return salt.utils.secret.expose(pillar.compile_pillar())


def called(opts, case):
    opts["pillar"] = pillar_of(copy.deepcopy(opts), case)
    functions = salt.loader.minion_mods(opts)
    told = []
    for function, args, kwargs in case["calls"]:
        try:
            told.append(json.loads(json.dumps(functions[function](*args, **kwargs), default=text)))
        except Exception as error:  # noqa: BLE001 - that it fails is the answer
            told.append({"raised": str(error).strip("'\"")})
    return told


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def matches_of(opts):
    with salt.state.HighState(opts, initial_pillar={"unused": None}) as states:
        return dict(states.top_matches(states.get_top()))


main()
