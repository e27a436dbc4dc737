"""Adds to a built-in module by its virtual name"""


def __virtual__():
    return "test"


def fresh():
    return "added"
