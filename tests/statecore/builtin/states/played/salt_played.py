"""Run by the oracle's Python: plays cases with real Salt on hosts that are directories.

Paths below the directories of a host are turned to the case's own before the operating system sees them, users are those of
the case's passwd, programs the scripts. Standard input: ``directory``, ``programs``, ``grains``, ``phases`` and ``cases``.
Standard output: for each case the list of what its state returned in each phase.
"""

import builtins
import collections
import io
import json
import os
import pwd
import sys
from pathlib import Path

os.environ["SHELL"] = "/bin/sh"
os.umask(0o022)

import salt.config  # noqa: E402
import salt.state  # noqa: E402
import salt.utils.path  # noqa: E402

# Beside the directories of those that use it.
sys.path.insert(0, str(Path(__file__).parents[3]))
from salt_minion import spare_repetition  # noqa: E402

#: What is the host's; everything else is this machine's.
_PLAYED = ("/etc/", "/root/", "/home/", "/proc/", "/usr/share/", "/srv/", "/lib/modules/", "/var/lib/", "/mnt/")
_HOST = {"at": "", "without": ()}


def _turned(path):
    if isinstance(path, str) and _HOST["at"] and f"{path}/".startswith(_PLAYED):
        return _HOST["at"] + path
    return path


def _turning(function, count=1):
    def turned(*args, **kwargs):
        return function(*[_turned(each) for each in args[:count]], *args[count:], **kwargs)

    return turned


def _play_paths():
    one = "stat lstat listdir scandir mkdir makedirs chmod chown lchown unlink remove readlink access utime rmdir open walk"
    for name in one.split():
        setattr(os, name, _turning(getattr(os, name)))
    for name in ("rename", "replace", "link"):
        setattr(os, name, _turning(getattr(os, name), 2))
    linked = os.symlink
    os.symlink = lambda target, path, **kwargs: linked(target, _turned(path), **kwargs)
    for name in ("isfile", "isdir", "exists", "islink", "ismount"):
        setattr(os.path, name, _turning(getattr(os.path, name)))
    builtins.open = io.open = _turning(io.open)


def _play_users():
    def rows():
        for line in Path(_HOST["at"], "etc/passwd").read_text().splitlines():
            name, password, uid, gid, gecos, home, shell = line.split(":")
            yield pwd.struct_passwd((name, password, int(uid), int(gid), gecos, home, shell))

    def found(key, value):
        for row in rows():
            if row[key] == value:
                return row
        raise KeyError(value)

    pwd.getpwall = lambda: list(rows())
    pwd.getpwnam = lambda name: found(0, name)
    pwd.getpwuid = lambda uid: found(2, uid)


def _family(state, grains):
    """Package managers and network files alone are chosen by it."""
    return grains.get("os_family") if state.startswith(("pkg", "network")) else None


def main():
    spare_repetition()
    asked = json.load(sys.stdin, object_pairs_hook=collections.OrderedDict)
    root = asked["directory"]
    Path(root, "minion").write_text(json.dumps({"grains": asked["grains"]}))
    opts = salt.config.minion_config(f"{root}/minion")
    opts.update(
        id="web1",
        file_client="local",
        # As of ``salt-call --local``: Salt would look for a minion to tell of new modules, for seconds each time.
        local=True,
        cachedir=f"{root}/cache",
        extension_modules=f"{root}/extmods",
        file_roots={"base": [f"{root}/tree"]},
        pillar_roots={"base": []},
        enable_fqdns_grains=False,
        grains=dict(asked["grains"]),
    )
    os.environ["PATH"] = f"{asked['programs']}:{os.environ['PATH']}"
    found = salt.utils.path.which
    salt.utils.path.which = lambda name=None: None if name in _HOST["without"] else found(name)
    # Which modules there are is decided by the family, once for each.
    families = {None: salt.state.State(opts)}
    for full, _, grains, _, _ in asked["cases"]:
        if _family(full, grains) not in families:
            own = {**opts, "grains": {**asked["grains"], **grains}}
            families[_family(full, grains)] = salt.state.State(own)
    _play_paths()
    _play_users()
    answers = []
    for full, args, grains, without, host in asked["cases"]:
        _HOST.update(at=host, without=without)
        os.environ["PLAYED"] = host
        module, _, function = full.partition(".")
        told = []
        state = families[_family(full, grains)]
        for test in asked["phases"]:
            packed = (state.functions.pack["__opts__"], state.states.pack["__opts__"])
            for opts in (state.opts, state.states.opts, state.functions.opts, *packed):
                opts["test"] = test
            state.opts["grains"].clear()
            state.opts["grains"].update(asked["grains"], **grains)
            state.functions.pack["__context__"].clear()
            low = {
                "state": module,
                "fun": function,
                "__id__": full,
                "__sls__": "s",
                "__env__": "base",
                "order": 1,
                **args,
            }
            told.append(state.call({"name": "n", **low}))
        answers.append(told)
    _HOST["at"] = ""
    json.dump(answers, sys.stdout, default=str)


if __name__ == "__main__":
    main()
