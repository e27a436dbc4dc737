"""How the machine is doing (Salt's ``status`` module): numbers of the kernel, which a mounted host shares with us."""

from __future__ import annotations

import fnmatch
import os
from datetime import UTC, datetime
from pathlib import Path
from time import time as seconds_now
from typing import Any

from statecore.context import Context


def uptime(ctx: Context) -> dict[str, Any]:
    """seconds, days and time (``hours:minutes``) since the start, and when that was (since_iso in UTC, since_t).

    CLI Example:

        salt '*' status.uptime
    """
    seconds = int(float(_text("/proc/uptime").split()[0]))
    start = seconds_now() - seconds
    rest = seconds % 86400
    return {
        "seconds": seconds,
        "since_iso": datetime.fromtimestamp(start, UTC).replace(tzinfo=None).isoformat(),
        "since_t": int(start),
        "days": seconds // 86400,
        "time": f"{rest // 3600}:{rest % 3600 // 60}",
    }


def loadavg(ctx: Context) -> dict[str, float]:
    """1-min, 5-min and 15-min."""
    return dict(zip(("1-min", "5-min", "15-min"), os.getloadavg(), strict=True))


def meminfo(ctx: Context) -> dict[str, dict[str, str]]:
    """name -> value and unit of /proc/meminfo."""
    rows = (line.split() for line in _text("/proc/meminfo").splitlines() if line.split())
    return {row[0].rstrip(":"): {"value": row[1], **({"unit": row[2]} if len(row) > 2 else {})} for row in rows}


def cpuinfo(ctx: Context) -> dict[str, Any]:
    """name -> value of /proc/cpuinfo, of the last processor; flags are a list."""
    pairs = (line.split(":", 1) for line in _text("/proc/cpuinfo").splitlines() if ":" in line)
    found = {name.strip(): value.strip() for name, value in pairs}
    return {name: value.split() if name == "flags" else value for name, value in found.items()}


def cpustats(ctx: Context) -> dict[str, Any]:
    """Rows of /proc/stat: times of all processors together, the numbers of interrupts, of the rest one number."""
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    lists = {"intr": "irqs", "softirq": "softirqs"}
    found: dict[str, Any] = {}
    for name, *values in (line.split() for line in _text("/proc/stat").splitlines() if line.split()):
        numbers = [int(value) for value in values]
        if name == "cpu":
            found[name] = dict(zip(names, numbers, strict=False))
        elif name in lists:
            found[name] = {"total": numbers[0], lists[name]: numbers[1:]}
        else:
            found[name] = numbers[0]
    return found


def vmstats(ctx: Context) -> dict[str, int]:
    """name -> value of /proc/vmstat."""
    rows = (line.split() for line in _text("/proc/vmstat").splitlines() if len(line.split()) == 2)
    return {name: int(value) for name, value in rows}


def time(ctx: Context, format: str = "%A, %d. %B %Y %I:%M%p") -> str:
    """The time here."""
    return datetime.now().strftime(format)


def nproc(ctx: Context) -> int:
    """Processors that may be used."""
    return len(os.sched_getaffinity(0))


def diskusage(ctx: Context, *args: str) -> dict[str, dict[str, int | None]]:
    """path -> available and total bytes: of paths of the host, and of file systems of a type (a glob); none: of all."""
    paths = {each for each in args if each.startswith("/")}
    kinds = [each for each in args if not each.startswith("/")] or ([] if args else ["*"])
    rows = (line.split() for line in _text("/proc/mounts").splitlines())
    paths |= {row[1] for row in rows if len(row) > 2 and any(fnmatch.fnmatch(row[2], kind) for kind in kinds)}
    found: dict[str, dict[str, int | None]] = {}
    for path in sorted(paths):
        place = ctx.host.path(path)
        if not place.exists():
            continue
        try:
            told = os.statvfs(place)
        except OSError:
            found[path] = {"available": None, "total": None}
            continue
        found[path] = {"available": told.f_bavail * told.f_bsize, "total": told.f_blocks * told.f_bsize}
    return found


def pid(ctx: Context, sig: str) -> str:
    """Numbers of the processes whose command line matches (a shell pattern in it), one in a line; "" for none."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().decode("utf-8", "replace").replace("\0", " ").strip()
        except OSError:
            continue
        if path.name != str(os.getpid()) and fnmatch.fnmatch(words, f"*{sig}*"):
            found.append(path.name)
    return "\n".join(sorted(found, key=int))


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""
