"""Run by the oracle's Python: what functions of Salt's ``x509`` return.

Standard input: policies, and [function, kwargs] of each call. Output:
for each call [returned, null], or [null, what it raised]; bytes as text.
"""

import json
import sys

import salt.modules.match
import salt.modules.x509_v2 as x509

asked = json.load(sys.stdin)
x509.__opts__ = {"fips_mode": False}
x509.__context__ = {}
x509.__salt__ = {
    "pillar.get": lambda name, default=None, **kwargs: {"x509_signing_policies": asked["policies"]}.get(name, default),
    "config.get": lambda name, default=None: default,
    "match.glob": lambda target, minion: salt.modules.match.fnmatch.fnmatch(minion, target),
}
told = []
for function, kwargs in asked["calls"]:
    try:
        told.append([getattr(x509, function)(**kwargs), None])
    except Exception as error:  # noqa: BLE001 - what it raises is the answer
        told.append([None, f"{type(error).__name__}: {error}"])
json.dump(told, sys.stdout, default=lambda value: value.decode() if isinstance(value, bytes) else str(value))
