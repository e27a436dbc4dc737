"""Salt's ``status`` states: check figures of the host and change nothing. The figures are in ``data`` of the return."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.values import to_float


def loadavg(ctx: Context, name: str, maximum: object = None, minimum: object = None) -> dict[str, object]:
    """Check that the load average ``name`` (``1-min``, ``5-min`` or ``15-min``) is within limits, limits included; the
    state fails otherwise.
    """
    result: dict[str, object] = {"name": name, "result": False, "comment": "", "changes": {}, "data": {}}
    data = ctx.call("status.loadavg")
    if name not in data:
        return {**result, "comment": f"Requested load average {name} not available "}
    limits = {}
    for which, value in (("minimum", minimum), ("maximum", maximum)):
        try:
            limits[which] = None if value in (None, "") else to_float(value)
        except (TypeError, ValueError):
            return {**result, "comment": f"{which} must be a number, not {value!r}"}
    low, high, now = limits["minimum"], limits["maximum"], float(data[name])
    if low is not None and high is not None and low >= high:
        return {**result, "comment": "Min must be less than max"}
    result["data"] = data[name]
    if low is not None and now < low:
        return {**result, "comment": f"Load avg is below minimum of {minimum} at {now}"}
    if high is not None and now > high:
        return {**result, "comment": f"Load avg above maximum of {maximum} at {now}"}
    return {**result, "comment": "Load avg in acceptable range", "result": True}


def process(ctx: Context, name: str) -> dict[str, object]:
    """Check that a process runs whose command line contains a match of the shell pattern ``name``; the state fails
    otherwise.
    """
    result: dict[str, object] = {"name": name, "result": False, "comment": "", "changes": {}, "data": {}}
    found = ctx.call("status.pid", name)
    if not found:
        return {**result, "comment": f'Process signature "{name}" not found '}
    return {**result, "comment": f'Process signature "{name}" was found ', "result": True, "data": found}
