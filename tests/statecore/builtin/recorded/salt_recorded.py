"""Run by the oracle's Python: plays cases of recorded programs with real Salt on hosts that are directories.

Standard input: ``directory``, ``grains``, ``phases`` and ``cases``: [calls, state, arguments, directory] of each. Last line
of the standard output: for each case what its calls returned, or what its state returned in each phase.
"""

import json
import os
import sys
from pathlib import Path

# Programs of how cases are played are beside the states' cases.
sys.path.insert(0, str(Path(__file__).parents[1] / "states/played"))
import salt.config
import salt.state
import salt.utils.atomicfile
import salt.utils.path
import salt_played
from salt_minion import spare_repetition

#: Beside the places of the states' cases: devices and the kernel's tables, but not those that every process needs.
_MORE = ("/sys/", "/boot/", "/dev/sd", "/dev/md", "/dev/loop", "/dev/mapper/", "/selinux/", "/run/", "/var/spool/")


def _called(functions, call):
    name, args, kwargs = call
    try:
        return functions[name](*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - what Salt raises is its answer
        return {"raises": type(error).__name__, "text": str(error)}


def main():
    spare_repetition()
    asked = json.load(sys.stdin)
    root = asked["directory"]
    Path(root, "minion").write_text(json.dumps({"grains": asked["grains"]}))
    opts = salt.config.minion_config(f"{root}/minion")
    opts.update(
        id="web1",
        file_client="local",
        local=True,
        color=False,
        cachedir=f"{root}/cache",
        extension_modules=f"{root}/extmods",
        file_roots={"base": [f"{root}/tree"]},
        pillar_roots={"base": []},
        enable_fqdns_grains=False,
        grains=dict(asked["grains"]),
    )
    usual = os.environ["PATH"]
    os.environ["PATH"] = f"{root}/bin:{usual}"
    state = salt.state.State(opts)
    names = {call[0] for calls, *_ in asked["cases"] for call in calls} | {row[1] for row in asked["cases"] if row[1]}
    for name in sorted(names):
        # Loads the modules while all programs are there.
        assert name in state.functions or name in state.states, f"Salt has no {name}"
    salt_played._PLAYED = (*salt_played._PLAYED, *_MORE)
    salt_played._play_paths()
    salt_played._play_users()
    for name in ("listxattr", "getxattr", "setxattr"):
        setattr(os, name, salt_played._turning(getattr(os, name)))
    # It has the system's own rename from its import on.
    salt.utils.atomicfile.atomic_rename = lambda old, new: os.rename(old, new)  # noqa: PTH104 - it turns paths
    found = salt.utils.path.which
    played = {path.name for path in Path(root, "bin").iterdir()}

    def which(name=None):
        """A program that some case plays is only there where the case has it."""
        there = name if name not in played else None
        own = Path(os.environ["PLAYED"], "bin", name or "")
        return str(own) if own.is_file() else found(there) if there else None

    salt.utils.path.which = which
    answers = []
    for calls, full, args, place in asked["cases"]:
        salt_played._HOST.update(at=f"{place}/host")
        os.environ["PLAYED"] = place
        os.environ["PATH"] = f"{place}/bin:{usual}"
        state.functions.pack["__context__"].clear()
        if calls:
            answers.append({"gives": [_called(state.functions, call) for call in calls]})
            continue
        told, ran = {}, {}
        for phase, test in asked["phases"].items():
            packed = (state.functions.pack["__opts__"], state.states.pack["__opts__"])
            for each in (state.opts, state.states.opts, state.functions.opts, *packed):
                each["test"] = test
            state.functions.pack["__context__"].clear()
            module, _, function = full.partition(".")
            low = {"state": module, "fun": function, "__id__": full, "__sls__": "s", "__env__": "base", "order": 1}
            told[phase] = state.call({"name": "n", **low, **args})
            ran[phase] = len(Path(place, "ran").read_text().splitlines())
        answers.append({**told, "ran": ran})
    salt_played._HOST["at"] = ""
    # Salt may have written to standard output itself.
    sys.stdout.write("\n" + json.dumps(answers, default=str))


main()
