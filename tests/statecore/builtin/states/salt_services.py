"""Run by the oracle's Python: Salt's service states over services that are played as ``test_service.py`` lays them out.

Standard input: a list of [function, arguments]. Standard output: for each what was told in test mode, applied, and applied again.
"""

import json
import sys

import salt.states.service as states


class Services:
    """up runs and is started at boot, down does neither, dud does not start, stuck does not stop."""

    def __init__(self):
        self.running = {"up", "stuck"}
        self.enabled = {"up"}
        self.all = {"up", "down", "dud", "stuck"}

    def start(self, name):
        if name == "dud":
            return False
        # The script of stuck says yes to everything.
        if name != "stuck":
            self.running.add(name)
        return True

    def stop(self, name):
        if name == "dud":
            return False
        if name != "stuck":
            self.running.discard(name)
        return True

    def again(self, name):
        return name != "dud" and self.start(name)

    def table(self):
        return {
            "service.start": self.start,
            "service.stop": self.stop,
            "service.restart": self.again,
            "service.reload": self.again,
            "service.force_reload": self.again,
            "service.available": lambda name: name in self.all,
            "service.status": lambda name, sig=None: name in self.running,
            "service.enabled": lambda name, **kwargs: name in self.enabled,
            "service.disabled": lambda name, **kwargs: name not in self.enabled,
            "service.enable": lambda name, **kwargs: self.enabled.add(name) or True,
            "service.disable": lambda name, **kwargs: self.enabled.discard(name) or True,
        }


def main():
    told = []
    for function, arguments in json.load(sys.stdin):
        states.__salt__ = Services().table()
        states.__context__ = {}
        answers = []
        for test in (True, False, False):
            states.__opts__ = {"test": test}
            entry = getattr(states, function)(**arguments)
            answers.append([entry["result"], entry["changes"], entry["comment"]])
        told.append(answers)
    json.dump(told, sys.stdout)


main()
