__virtualname__ = "never_asked"


def f():
    return "under its file name"
