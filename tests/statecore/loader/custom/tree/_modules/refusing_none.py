def __virtual__():
    pass


def f():
    return 1
