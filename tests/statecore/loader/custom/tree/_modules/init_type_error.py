def __init__(opts):
    raise TypeError("meant for something else")


def f():
    return "used all the same"
