"""Run by the oracle's Python: the rules that Salt builds. Standard input: [[module, arguments], ...]; output: their texts."""

import importlib
import json
import sys


def main():
    told = []
    for name, arguments in json.load(sys.stdin):
        module = importlib.import_module(f"salt.modules.{name}")
        told.append(module.build_rule(**arguments))
    json.dump(told, sys.stdout)


main()
