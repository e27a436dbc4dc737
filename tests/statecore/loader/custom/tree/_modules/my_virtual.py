__virtualname__ = "renamed"


def __virtual__():
    if __grains__["kernel"] != "Linux":
        return False, "only on Linux"
    return __virtualname__


def whoami():
    return __virtualname__
