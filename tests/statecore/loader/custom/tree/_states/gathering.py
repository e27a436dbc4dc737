"""A state with mod_aggregate"""


def gathered(name, names=None, **kwargs):
    return {"name": name, "result": True, "changes": {"names": names or [name]}, "comment": "gathered"}


def mod_aggregate(low, chunks, running):
    names = [chunk["name"] for chunk in chunks if chunk.get("state") == "gathering" and chunk.get("fun") == "gathered"]
    for chunk in chunks:
        if chunk.get("fun") == "gathered":
            chunk["__agg__"] = True
    if names:
        low["names"] = sorted(set(names + [low["name"]]))
    return low
