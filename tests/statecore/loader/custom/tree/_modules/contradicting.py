__virtualname__ = "declared"


def __virtual__():
    return "returned"


def f():
    return 1
