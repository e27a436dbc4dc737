def __virtual__():
    return (False, "The refusing module needs a reason")


def f():
    return 1
