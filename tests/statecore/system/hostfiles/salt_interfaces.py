"""Run by the oracle's Python: what Salt's providers of ``ip`` make of arguments.

Standard input: a list of [provider, function, positional arguments, settings, grains]. Standard output: lines, or ``error``.
"""

import importlib
import json
import os
import sys

from salt.exceptions import SaltException

_HOST = sys.argv[1]

_SALT = {
    "pkg.install": lambda name: {},
    "pkg.version": lambda name: "1",
    "sysctl.persist": lambda name, value: "Updated",
    "network.interfaces": lambda: {"eth0": {"hwaddr": "02:00:00:00:00:01"}},
}


def main():
    told = []
    for provider, function, positional, settings, grains in json.load(sys.stdin):
        module = importlib.import_module(f"salt.modules.{provider}")
        module.__salt__, module.__grains__ = _SALT, {"osrelease_info": [12], **grains}
        for name in ("_DEB_NETWORK_FILE", "_DEB_NETWORK_DIR", "_NETPLAN_DIR"):
            setattr(module, name, os.path.join(_HOST, name))
        try:
            told.append(getattr(module, function)(*positional, **settings, test=True))
        except (AttributeError, SaltException) as error:
            told.append({"error": str(error)})
    json.dump(told, sys.stdout)


main()
