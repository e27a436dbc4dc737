SEEN = []


def __init__(opts):
    SEEN.append(opts["id"])


def seen():
    return SEEN
