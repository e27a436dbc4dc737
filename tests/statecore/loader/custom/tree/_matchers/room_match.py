"""A matcher of one's own: the room that a minion is in"""


def match(tgt, opts=None, minion_id=None):
    return __grains__.get("room") == tgt
