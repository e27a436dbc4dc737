"""Custom grains: from nothing, and from the grains so far"""

import salt.modules.cmdmod

__salt__ = {"cmd.run": salt.modules.cmdmod._run_quiet}


def room():
    return {"room": "a1", "nested": {"floor": 3}}


def derived(grains):
    return {"room_of": "{} in {}".format(grains["id"], grains["kernel"])}


def commanded():
    return {"commanded": __salt__["cmd.run"]("echo out")}


def _private():
    return {"private": True}
