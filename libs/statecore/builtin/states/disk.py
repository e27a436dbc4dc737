"""Salt's ``disk`` state: checks the used space of a file system and changes nothing.

The figures are in ``data`` of the return.
"""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.values import to_int


def status(
    ctx: Context, name: str, maximum: object = None, minimum: object = None, absolute: bool = False, free: bool = False
) -> dict[str, object]:
    """Check that the used space of a mount point's or directory's file system is within limits; the state fails
    otherwise.

    maximum, minimum
        limits in percent, or in kilobytes with ``absolute``
    free
        True: the limits apply to the available space
    """
    result: dict[str, object] = {"name": name, "result": False, "comment": "", "changes": {}, "data": {}}
    limits: dict[str, int | None] = {}
    wrong = ""
    for which, value in (("maximum", maximum), ("minimum", minimum)):
        limits[which], why = (None, "") if value is None else _limit(which, value, absolute=absolute)
        wrong += why
    low, high = limits["minimum"], limits["maximum"]
    if low is not None and high is not None and low >= high:
        wrong += "minimum must be less than maximum "
    if wrong:
        return {**result, "comment": wrong}
    try:
        mounts = ctx.call("disk.usage")
    except CommandError:
        # Without the program df, directories can still be checked.
        mounts = {}
    if name in mounts:
        result["data"], (used, available) = mounts[name], _of_mount(mounts[name], absolute=absolute)
    else:
        if not (str(name).startswith("/") and ctx.host.path(str(name)).is_dir()):
            missing = f"Disk mount {name} not present. Directory {name} does not exist or is not a directory"
            return {**result, "comment": missing}
        data = ctx.call("status.diskusage", name)
        result["comment"] = f"Disk mount {name} not present. "
        result["data"], (used, available) = data, _of_directory(data[name], absolute=absolute)
    wrong = _beyond(low, high, available if free else used, free=free, unit="KB" if absolute else "%")
    return {**result, "comment": wrong or "Disk used space in acceptable range", "result": not wrong}


def _limit(which: str, value: object, *, absolute: bool) -> tuple[int | None, str]:
    text = value.strip(" KB" if absolute else " %") if isinstance(value, str) else value
    try:
        number = to_int(text)
    except (TypeError, ValueError):
        return None, f"{which} must be an integer "
    if not absolute and not 0 <= number <= 100:
        return None, f"{which} must be in the range [0, 100] "
    return number, ""


def _of_mount(row: dict[str, str], *, absolute: bool) -> tuple[float, float]:
    """Return (used, available) space of a file system from its row of ``disk.usage``: in kilobytes if ``absolute``,
    else in percent.
    """
    if absolute:
        return int(row["used"]), int(row["available"])
    used = int(row["capacity"].rstrip("%"))
    return used, 100 - used


def _of_directory(row: dict[str, int], *, absolute: bool) -> tuple[float, float]:
    total, available = int(row["total"]), int(row["available"])
    if absolute:
        return (total - available) // 1024, available // 1024
    if not total:
        return 0, 0
    return round((total - available) / total * 100, 1), round(available / total * 100, 1)


def _beyond(low: int | None, high: int | None, now: float, *, free: bool, unit: str) -> str:
    what = "available" if free else "used"
    if low is not None and now < low:
        return f"Disk {what} space is below minimum of {low} {unit} at {now} {unit}"
    if high is not None and now > high:
        return f"Disk {what} space is above maximum of {high} {unit} at {now} {unit}"
    return ""
