"""Run by the oracle's Python: real Salt's states of orchestrations, before a master that answers as it is told.

Standard input: a JSON list of cases. Standard output: for each what the state returned and what it asked the master.
"""

import copy
import json
import sys

import salt.states.saltmod as saltmod
import salt.utils.state


def main() -> None:
    json.dump([told(case) for case in json.load(sys.stdin)], sys.stdout)


def told(case):
    asked = []
    made = iter(case.get("made") or ())

    def cmd(tgt, fun, **given):
        asked.append({"tgt": tgt, "fun": fun, **given})
        return copy.deepcopy(case["answers"])

    def run(name, **given):
        asked.append({"name": name, **{key: value for key, value in given.items() if not key.startswith("__")}})
        return dict(next(made))

    saltmod.__salt__ = {"saltutil.cmd": cmd, "saltutil.runner": run, "saltutil.wheel": run}
    saltmod.__opts__ = {"test": case.get("test", False), "__role": "master", "file_client": "local", "color": False}
    saltmod.__utils__ = {"state.check_result": salt.utils.state.check_result}
    saltmod.__env__ = "base"
    # Runners that run at the same time would take their answers in any order.
    saltmod._parallel_map = lambda function, inputs: [function(each) for each in inputs]
    returned = getattr(saltmod, case["fun"])(case.get("name", case["id"]), **copy.deepcopy(case["arguments"]))
    return {"returned": returned, "asked": asked}


main()
