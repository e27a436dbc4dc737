"""An executor that says what it ran"""


def execute(opts, data, func, args, kwargs):
    args = [arg for arg in args]
    kwargs = {key: value for key, value in kwargs.items() if not key.startswith("__")}
    return {"id": opts["id"], "fun": data["fun"], "returned": func(*args, **kwargs)}
