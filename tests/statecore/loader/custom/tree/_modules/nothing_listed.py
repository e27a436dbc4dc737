__load__ = []


def f():
    return 1
