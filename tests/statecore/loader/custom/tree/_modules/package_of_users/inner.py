import salt.utils.path

VALUE = salt.utils.path.join("a", "/b")


def where():
    return VALUE
