"""Imported by its name"""

VALUE = "from _utils"


def shout(text):
    return text.upper()
