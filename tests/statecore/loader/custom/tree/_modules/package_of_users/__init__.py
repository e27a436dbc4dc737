from .inner import VALUE


def inner_value():
    return VALUE


def ids():
    return __grains__["id"]
