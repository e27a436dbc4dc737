"""Run by the oracle's Python: what state runs of real Salt that are jobs do: which events they fire, which orders they heed.

Standard input: a JSON list of runs: ``directory``, ``grains``, ``opts``, ``jid``, ``sls``, ``orders`` (ID -> what the run is told
about it). Standard output: a JSON list, for each run ``fired``, a list of ``[tag, data]``, and ``running``.
"""

import json
import logging
import sys
from pathlib import Path

import salt.config
import salt.loader
import salt.state
import salt.utils.entrypoints
import salt.utils.msgpack

# Beside the directories of those that use it.
sys.path.insert(0, str(Path(__file__).parents[2]))
from salt_minion import placed, spare_repetition


class Functions:
    """The functions of a run, without a way to a master."""

    def __init__(self, functions, fired):
        self._functions = functions
        self._fired = fired

    def __getitem__(self, name):
        if name == "event.fire_master":
            return lambda data, tag, preload=None: self._fired.append([tag, data])
        return self._functions[name]

    def __getattr__(self, name):
        return getattr(self._functions, name)


def main():
    spare_repetition()
    salt.utils.entrypoints.iter_entry_points = lambda group, name=None: []
    logging.disable(logging.CRITICAL)
    fired = []
    load = salt.state.State.load_modules

    def loaded(self, *args, **kwargs):
        load(self, *args, **kwargs)
        self._trusted_functions = Functions(self._trusted_functions, fired)

    salt.state.State.load_modules = loaded
    told = []
    for run in json.load(sys.stdin):
        fired.clear()
        running = perform(run)
        told.append({"fired": list(fired), "running": running})
    sys.stdout.write(json.dumps(told, default=str))


def perform(run):
    root = run["directory"]
    opts = {
        **salt.config.DEFAULT_MINION_OPTS.copy(),
        **placed(root),
        "master_uri": "tcp://127.0.0.1:4506",
        "autoload_dynamic_modules": False,
        "grains": run["grains"],
        "pillar": {"unused": None},
        "__cli": "salt-call",
        **run["opts"],
    }
    Path(opts["cachedir"], "proc").mkdir(parents=True, exist_ok=True)
    Path(opts["conf_file"]).touch()
    if run["orders"]:
        place = Path(opts["cachedir"], "state_pause")
        place.mkdir()
        (place / run["jid"]).write_bytes(salt.utils.msgpack.dumps(run["orders"]))
    functions = salt.loader.minion_mods(opts, utils=salt.loader.utils(opts), context={})
    return functions["state.sls"](run["sls"], __pub_jid=run["jid"])


main()
