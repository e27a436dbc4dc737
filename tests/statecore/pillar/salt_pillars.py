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
import salt.loader.lazy
import salt.pillar
import salt.state
import salt.utils.optsdict
import salt.utils.secret


def main() -> None:
    logging.disable(logging.CRITICAL)
    spare_repetition()
    defaults = salt.config.DEFAULT_MINION_OPTS.copy()
    told, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        told.write(json.dumps([answer(defaults, case) for case in json.loads(line)], default=str) + "\n")
        told.flush()


def spare_repetition() -> None:
    """Salt looks at its module directories anew for each loader; here those of one set of directories never change."""
    known = {}
    look = salt.loader.lazy.LazyLoader._refresh_file_mapping

    def refresh(loader):
        key = (loader.tag, *(path for path in loader.module_dirs if Path(path).is_dir()))
        if key not in known:
            look(loader)
            known[key] = (loader.file_mapping, loader.suffix_map, loader.suffix_order)
        loader.file_mapping, loader.suffix_map, loader.suffix_order = (each.copy() for each in known[key])

    salt.loader.lazy.LazyLoader._refresh_file_mapping = refresh
    salt.utils.optsdict.OptsDict.__bool__ = lambda opts: True


def answer(defaults, case):
    root = case["directory"]
    opts = {
        **copy.deepcopy(defaults),
        "id": "web1",
        "file_client": "local",
        "root_dir": root,
        "cachedir": f"{root}/cache",
        "pki_dir": f"{root}/pki",
        "sock_dir": f"{root}/sock",
        "conf_file": f"{root}/minion",
        "extension_modules": f"{root}/extmods",
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
