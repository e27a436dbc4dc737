"""Run by the oracle's Python: the parameters of the functions of Salt's modules.

Arguments: names of modules (``salt.states.file``). Standard output: {module: {function: [parameters]}}, as JSON.
"""

import importlib
import inspect
import json
import sys

found = {}
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    aliases = getattr(module, "__func_alias__", {})
    found[name] = {
        aliases.get(own, own): [
            each.name for each in inspect.signature(function).parameters.values() if each.kind is not each.VAR_KEYWORD
        ]
        for own, function in vars(module).items()
        if inspect.isfunction(function) and not own.startswith("_") and function.__module__ == name
    }
json.dump(found, sys.stdout)
