def __init__(opts):
    raise ValueError("no")


def f():
    return 1
