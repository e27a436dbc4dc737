"""Shared code, with a __virtual__ of its own"""

__virtualname__ = "racks"


def __virtual__():
    return __virtualname__


def parse(text):
    return dict(part.split(":") for part in text.split())


def grain(name):
    return __grains__[name]


def call(fun, *args):
    return __salt__[fun](*args)


def option(name):
    return __opts__.get(name)
