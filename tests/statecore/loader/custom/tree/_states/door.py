"""A state with mod_init and mod_watch"""

import salt.utils.state

DOORS = {}


def mod_init(low):
    __context__["door.initialised"] = __context__.get("door.initialised", 0) + 1
    return True


def open(name, wide=False):
    ret = {"name": name, "result": True, "changes": {}, "comment": ""}
    if __opts__["test"]:
        ret["result"] = None
        ret["comment"] = f"The door {name} would be opened"
        return ret
    ret["changes"] = {name: "opened wide" if wide else "opened"}
    ret["comment"] = "initialised {} time(s) in {} as {}".format(
        __context__["door.initialised"], __env__, __low__["__id__"]
    )
    return ret


def closed(name):
    return {"name": name, "result": True, "changes": {}, "comment": ["is closed", "and locked"]}


def mod_watch(name, sfun=None, **kwargs):
    return {
        "name": name,
        "result": True,
        "changes": {"reacted": sfun},
        "comment": f"Reacted, {len(__running__)} before",
    }


def several(name, doors=None):
    ret = {"name": name, "result": True, "changes": {}, "comment": ""}
    for door in doors or []:
        sub = __states__["door.open"](door)
        ret = salt.utils.state.merge_subreturn(ret, sub)
    ret["comment"] = ret["comment"].strip()
    return ret


def failing(name):
    return {"name": name, "result": False, "changes": {}, "comment": "It is stuck"}


def malformed(name):
    return {"name": name, "result": True}


def serialised(name):
    return {"name": name, "result": True, "changes": {}, "comment": __serializers__["json.serialize"]({"a": 1})}
