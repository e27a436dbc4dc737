"""Run by the oracle's Python: what Salt's state functions make of an argument that they do not know.

Standard input: ``cachedir``, and ``functions``: names of state functions. Standard output: function -> "ignored", what Salt says
against the argument, or None for a function that this Salt cannot load.
"""

import importlib
import json
import sys
from pathlib import Path

import salt.config
import salt.exceptions
import salt.state
import salt.utils.args

# Beside the directories of those that use it.
sys.path.insert(0, str(Path(__file__).parent.parent))
from salt_minion import placed, spare_repetition

spare_repetition()
asked = json.load(sys.stdin)
opts = salt.config.DEFAULT_MINION_OPTS.copy()
opts.update(
    placed(asked["cachedir"]),
    local=True,
    test=True,
    file_roots={"base": []},
    pillar_roots={"base": []},
    grains={"os": "Debian", "os_family": "Debian", "kernel": "Linux"},
)
state = salt.state.State(opts)
told = {}
for full in asked["functions"]:
    module, _, function = full.partition(".")
    if full in state.states:
        found = state.states[full]
    else:
        try:
            loaded = importlib.import_module(f"salt.states.{module}")
        except ImportError:
            told[full] = None
            continue
        names = {shown: own for own, shown in getattr(loaded, "__func_alias__", {}).items()}
        found = getattr(loaded, names.get(function, function), None)
        if found is None:
            told[full] = None
            continue
    spec = salt.utils.args.get_function_argspec(found)
    required = spec.args[: len(spec.args) - len(spec.defaults or ())]
    low = {"state": module, "fun": function, "__id__": full, "__sls__": "s", "__env__": "base", "order": 1}
    low.update(dict.fromkeys(["name", *required], f"{asked['cachedir']}/nothing"), zzzunknown=1)
    try:
        salt.utils.args.format_call(
            found, low, initial_ret={"full": full}, expected_extra_kws=salt.state.STATE_INTERNAL_KEYWORDS
        )
        comment = str(state.call(low)["comment"]) if module == "git" else ""
        told[full] = comment if "zzzunknown" in comment else "ignored"
    except salt.exceptions.SaltInvocationError as error:
        told[full] = str(error)
json.dump(told, sys.stdout)
