"""Stands for the built-in module of the same name"""


def get_zone():
    return "Mars/Olympus"
