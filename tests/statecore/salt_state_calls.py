"""Run by the oracle's Python: what Salt's states tell, called one by one.

Standard input: ``cachedir``, and [state, arguments] of each.
Output: for each the list of [result, changes, comment] in test mode, applied, and applied again.
"""

import json
import sys

import salt.config
import salt.state
from salt_minion import spare_repetition

spare_repetition()
asked = json.load(sys.stdin)
opts = salt.config.DEFAULT_MINION_OPTS.copy()
opts.update(
    id="web1",
    file_client="local",
    # As of ``salt-call --local``: Salt would look for a minion to tell of new modules, for seconds each time.
    local=True,
    cachedir=asked["cachedir"],
    extension_modules=f"{asked['cachedir']}/extmods",
    pki_dir=asked["cachedir"],
    file_roots={"base": []},
    pillar_roots={"base": []},
    grains={"os": "Debian", "os_family": "Debian", "kernel": "Linux"},
)
state = salt.state.State(opts)
told = []
for full, arguments in asked["calls"]:
    module, _, function = full.partition(".")
    phases = []
    for test in (True, False, False):
        for each in (state.opts, state.states.opts, state.functions.opts):
            each["test"] = test
        low = {"state": module, "fun": function, "__id__": full, "__sls__": "s", "__env__": "base", "order": 1}
        entry = state.call({**low, **arguments})
        phases.append([entry["result"], entry["changes"], entry["comment"]])
    told.append(phases)
json.dump(told, sys.stdout, default=str)
