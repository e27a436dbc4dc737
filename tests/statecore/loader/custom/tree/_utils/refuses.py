def __virtual__():
    return (False, "the moon is not full")


def f():
    return 1
