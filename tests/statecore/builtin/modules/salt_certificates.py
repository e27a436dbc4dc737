"""Run by the oracle's Python: what functions of Salt's ``x509`` or ``ssh_pki`` return.

Standard input: the module's file, the option of its policies, the policies, and [function, kwargs] of each call. Output:
for each call [returned, null], or [null, what it raised]; bytes as text.
"""

import importlib
import json
import os
import sys

import salt.modules.match

asked = json.load(sys.stdin)
module = importlib.import_module(f"salt.modules.{asked['module']}")
module.__opts__ = {"fips_mode": False}
module.__context__ = {}
module.__salt__ = {
    "pillar.get": lambda name, default=None, **kwargs: {asked["option"]: asked["policies"]}.get(name, default),
    "config.get": lambda name, default=None: default,
    "file.file_exists": os.path.isfile,
    "match.glob": lambda target, minion: salt.modules.match.fnmatch.fnmatch(minion, target),
}
told = []
for function, kwargs in asked["calls"]:
    try:
        told.append([getattr(module, function)(**kwargs), None])
    except Exception as error:  # noqa: BLE001 - what it raises is the answer
        told.append([None, f"{type(error).__name__}: {error}"])
json.dump(told, sys.stdout, default=lambda value: value.decode() if isinstance(value, bytes) else str(value))
