"""Figures of the machine and its processes, read from /proc: Salt's ``status`` execution module.

Processes, mounts, logins and network counters are those of the mounted host, as far as /proc is mounted in it. Load,
processors, memory and disks belong to the kernel and are the same in every /proc.
"""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from statecore.host.rooted_path import file_system
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import mount_table, processes

ALIASES = {"time": "time_"}


def uptime(ctx: Context) -> dict[str, object]:
    """Return a map with the time since the boot (``seconds``, ``days``, ``time`` as hours:minutes) and the time of the
    boot (``since_iso`` in UTC, ``since_t`` in seconds since 1970).

    CLI Example:

        salt '*' status.uptime
    """
    seconds = int(float(processes.text(ctx.host, "uptime").split()[0]))
    start = time.time() - seconds
    rest = seconds % 86400
    return {
        "seconds": seconds,
        "since_iso": datetime.fromtimestamp(start, UTC).replace(tzinfo=None).isoformat(),
        "since_t": int(start),
        "days": seconds // 86400,
        "time": f"{rest // 3600}:{rest % 3600 // 60}",
    }


def loadavg(ctx: Context) -> dict[str, float]:
    """Return a map with the machine's load averages: 1-min, 5-min and 15-min."""
    return dict(zip(("1-min", "5-min", "15-min"), os.getloadavg(), strict=True))


def meminfo(ctx: Context) -> dict[str, dict[str, str]]:
    """Return a map of each name in /proc/meminfo to {"value": number as text, "unit": unit, if the line has one}."""
    rows = (line.split() for line in lines_of(processes.text(ctx.host, "meminfo")) if line.split())
    return {row[0].rstrip(":"): {"value": row[1], **({"unit": row[2]} if len(row) > 2 else {})} for row in rows}


def cpuinfo(ctx: Context) -> dict[str, object]:
    """Return a map of each name in /proc/cpuinfo to its value for the last processor; flags are a list."""
    pairs = (line.split(":", 1) for line in lines_of(processes.text(ctx.host, "cpuinfo")) if ":" in line)
    found = {name.strip(): value.strip() for name, value in pairs}
    return {name: value.split() if name == "flags" else value for name, value in found.items()}


def nproc(ctx: Context) -> int:
    """Return the number of processors that the minion's process may use."""
    return len(os.sched_getaffinity(0))


def diskusage(ctx: Context, *args: str) -> dict[str, dict[str, int | None]]:
    """Return a map of path to {"available": bytes, "total": bytes} of its file system; both are None if it cannot be
    read.

    Arguments are paths of the host, and types of file systems (globs). Without arguments all mounted file systems are
    returned.
    """
    paths = {each for each in args if each.startswith("/")}
    kinds = [each for each in args if not each.startswith("/")] or ([] if args else ["*"])
    table = mount_table.parse(ctx.host.mount_table()).values()
    paths |= {each.point for each in table if any(fnmatch.fnmatch(each.fstype, kind) for kind in kinds)}
    found: dict[str, dict[str, int | None]] = {}
    for path in sorted(paths):
        real_path = ctx.host.path(path)
        if not real_path.exists():
            continue
        try:
            stats = file_system(real_path)
        except OSError:
            found[path] = {"available": None, "total": None}
            continue
        found[path] = {"available": stats.f_bavail * stats.f_bsize, "total": stats.f_blocks * stats.f_bsize}
    return found


def pid(ctx: Context, sig: str) -> str:
    """Return the ids of the processes whose command line contains a match of the shell pattern, one in a line; "" if
    there are none.
    """
    found = [
        str(each.pid)
        for each in processes.all_of(ctx.host)
        if each.words and each.pid != os.getpid() and fnmatch.fnmatch(" ".join(each.words), f"*{sig}*")
    ]
    return "\n".join(found)


def procs(ctx: Context) -> dict[str, dict[str, str]]:
    """Return a map of process id to a map with user and cmd for all processes of the host. The names of kernel threads
    are in brackets.

    CLI Example:

        salt '*' status.procs
    """
    return {
        str(each.pid): {
            "user": ctx.host.user_name(each.uids[1]),
            "cmd": " ".join(each.words) if each.words else f"[{each.name}]",
        }
        for each in processes.all_of(ctx.host)
    }


def cpustats(ctx: Context) -> dict[str, object]:
    """Return a map of the counters in /proc/stat: cpu, each processor, intr, softirq, ctxt, btime, processes, ...

    CLI Example:

        salt '*' status.cpustats
    """
    found: dict[str, object] = {}
    for row in (line.split() for line in lines_of(processes.text(ctx.host, "stat")) if line):
        numbers = [int(word) for word in row[1:]]
        if row[0] == "cpu":
            found["cpu"] = {name: numbers[at] for name, at in _CPU.items()}
        elif row[0] in ("intr", "softirq"):
            found[row[0]] = {"total": numbers[0], "irqs" if row[0] == "intr" else "softirqs": numbers[1:]}
        else:
            found[row[0]] = numbers[0]
    return found


def diskstats(ctx: Context) -> dict[str, dict[str, object]]:
    """Return a map of disk device to a map with major, minor, device and the counters of its line in /proc/diskstats."""
    rows = (line.split() for line in lines_of(processes.text(ctx.host, "diskstats")))
    return {
        row[2]: {
            "major": int(row[0]),
            "minor": int(row[1]),
            "device": row[2],
            **{name: int(word) for name, word in zip(_DISK, row[3:], strict=False)},
        }
        for row in rows
        if len(row) > len(_DISK) + 2
    }


def vmstats(ctx: Context) -> dict[str, int]:
    """Return a map of the counters in /proc/vmstat."""
    rows = (line.split() for line in lines_of(processes.text(ctx.host, "vmstat")))
    return {row[0]: int(row[1]) for row in rows if len(row) > 1}


def netstats(ctx: Context) -> dict[str, dict[str, int]]:
    """Return a map of network protocol to its counters in /proc/net/netstat."""
    found: dict[str, dict[str, int]] = {}
    names: list[str] = []
    for row in (line.split() for line in lines_of(processes.text(ctx.host, f"{processes.network(ctx.host)}/netstat"))):
        if names and row[0] == names[0]:
            found[row[0].rstrip(":")] = dict(zip(names[1:], map(int, row[1:]), strict=False))
            names = []
        else:
            names = row
    return found


def netdev(ctx: Context) -> dict[str, dict[str, object]]:
    """Return a map of network interface to its counters of received and sent bytes, packets and errors."""
    found = {}
    for line in lines_of(processes.text(ctx.host, f"{processes.network(ctx.host)}/dev"))[2:]:
        name, _, rest = line.partition(":")
        numbers = dict(zip(_NETWORK, map(int, rest.split()), strict=False))
        found[name.strip()] = {"iface": name.strip(), **numbers}
    return found


def w(ctx: Context) -> list[dict[str, str]]:
    """Return a list of maps, one for each login on the host: idle, jcpu, login, pcpu, tty, user, what. Raise
    CommandError if the host does not have the program ``w``.
    """
    if ctx.host.which("w") is None:
        raise CommandError("the host does not have the program w")
    rows = (line.split(None, 6) for line in lines_of(ctx.host.run(["w", "-fh"], env={"LC_ALL": "C"}).stdout))
    names = ("user", "tty", "login", "idle", "jcpu", "pcpu", "what")
    return [dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names)]


def version(ctx: Context) -> str:
    """Return the text of /proc/version: the version of the running kernel."""
    return processes.text(ctx.host, "version").strip()


def time_(ctx: Context, format: str = "%A, %d. %B %Y %I:%M%p") -> str:
    """Return the machine's current time as text in a strftime(3) format."""
    return datetime.now().strftime(format)


def custom(ctx: Context) -> dict[str, object]:
    """Return those parts of the results of ``status`` functions that options such as ``status.cpustats.custom: [cpu,
    ctxt]`` select, as one map.

    CLI Example:

        salt '*' status.custom
    """
    found: dict[str, object] = {}
    for option, wanted in ctx.opts.items():
        function, _, last = str(option).rpartition(".")
        if last == "custom" and function.startswith("status."):
            result = ctx.call(function)
            found |= {name: result.get(name, "UNKNOWN") for name in wanted}
    return found


def all_status(ctx: Context) -> dict[str, object]:
    """Return a map of function name to result for cpuinfo, cpustats, diskstats, diskusage, loadavg, meminfo, netdev,
    netstats, uptime, vmstats and w.
    """
    return {name: function(ctx) for name, function in _ALL.items()}


# ----------------------------------------------------------------------------------------------- helpers

#: State of the processors -> column of /proc/stat.
_CPU: Mapping[str, int] = {
    "idle": 3,
    "iowait": 4,
    "irq": 5,
    "nice": 1,
    "softirq": 6,
    "steal": 7,
    "system": 2,
    "user": 0,
}

_DISK = (
    *("reads_issued", "reads_merged", "sectors_read", "ms_spent_reading"),
    *("writes_completed", "writes_merged", "sectors_written", "ms_spent_writing"),
    *("io_in_progress", "ms_spent_in_io", "weighted_ms_spent_in_io"),
)

_NETWORK = (
    *("rx_bytes", "rx_packets", "rx_errs", "rx_drop", "rx_fifo", "rx_frame", "rx_compressed", "rx_multicast"),
    *("tx_bytes", "tx_packets", "tx_errs", "tx_drop", "tx_fifo", "tx_colls", "tx_carrier", "tx_compressed"),
)

_ALL: Mapping[str, Callable[[Context], object]] = {
    "cpuinfo": cpuinfo,
    "cpustats": cpustats,
    "diskstats": diskstats,
    "diskusage": diskusage,
    "loadavg": loadavg,
    "meminfo": meminfo,
    "netdev": netdev,
    "netstats": netstats,
    "uptime": uptime,
    "vmstats": vmstats,
    "w": w,
}
