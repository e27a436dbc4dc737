def __virtual__():
    raise ValueError("no")


def f():
    return 1
