"""Functions of ``ps`` for processors, memory, disks, network and logged-in users."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from statecore.host.rooted_path import file_system
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import mount_table, processes

_CPU = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")

#: Bytes of a sector in /proc/diskstats, independent of the disk's own sector size.
_SECTOR = 512

#: Column of /proc/net/dev after the interface's name -> key of the result.
_NETWORK: Mapping[int, str] = {
    8: "bytes_sent",
    0: "bytes_recv",
    9: "packets_sent",
    1: "packets_recv",
    2: "errin",
    10: "errout",
    3: "dropin",
    11: "dropout",
}

#: Column of /proc/diskstats after the disk's name -> key of the result, and the factor to its unit.
_DISK: Mapping[int, tuple[str, int]] = {
    0: ("read_count", 1),
    4: ("write_count", 1),
    2: ("read_bytes", _SECTOR),
    6: ("write_bytes", _SECTOR),
    3: ("read_time", 1),
    7: ("write_time", 1),
    1: ("read_merged_count", 1),
    5: ("write_merged_count", 1),
    9: ("busy_time", 1),
}

#: An entry of /run/utmp (utmp(5)): type, pid, line, id, user, host, ..., seconds, microseconds, address.
_UTMP = struct.Struct("=hxxi32s4s32s256shhiii16s20x")
_USER = 7


def cpu_times(ctx: Context, per_cpu: bool = False) -> object:
    """Return a map of state (user, system, idle, ...) to the seconds that all processors together spent in it. With
    ``per_cpu`` return a list with one map for each processor.
    """
    together, *each = _cpu_times(ctx)
    return each if per_cpu else together


def cpu_percent(ctx: Context, interval: float = 0.1, per_cpu: bool = False) -> object:
    """Return the percentage of time in which the processors were busy during ``interval`` seconds. With ``per_cpu``
    return a list with one number for each processor.

    CLI Example:

        salt '*' ps.cpu_percent
    """
    before = _cpu_times(ctx)
    time.sleep(float(interval))
    after = _cpu_times(ctx)
    found = [_busy(one, two) for one, two in zip(before, after, strict=True)]
    return found[1:] if per_cpu else found[0]


def num_cpus(ctx: Context) -> int:
    """Return the number of logical processors of the machine."""
    return len(_cpu_times(ctx)[1:])


def virtual_memory(ctx: Context) -> dict[str, object]:
    """Return the use of memory in bytes: a map with total, available, used, free, active, inactive, buffers, cached,
    shared, slab; and ``percent`` in use.
    """
    now = _memory(ctx)
    total, available = now["MemTotal"], now.get("MemAvailable", now["MemFree"])
    return {
        "total": total,
        "available": available,
        "percent": round((total - available) / total * 100, 1) if total else 0.0,
        "used": total - available,
        "free": now["MemFree"],
        "active": now.get("Active", 0),
        "inactive": now.get("Inactive", 0),
        "buffers": now.get("Buffers", 0),
        "cached": now.get("Cached", 0) + now.get("SReclaimable", 0),
        "shared": now.get("Shmem", 0),
        "slab": now.get("Slab", 0),
    }


def total_physical_memory(ctx: Context) -> int:
    """Return the size of the physical memory in bytes."""
    return _memory(ctx)["MemTotal"]


def swap_memory(ctx: Context) -> dict[str, object]:
    """Return the use of swap in bytes: a map with total, used, free, ``sin`` and ``sout`` (moved in and out since
    boot); and ``percent`` in use.
    """
    now = _memory(ctx)
    total, free = now.get("SwapTotal", 0), now.get("SwapFree", 0)
    moved = dict(line.split()[:2] for line in lines_of(processes.text(ctx.host, "vmstat")) if line.count(" "))
    page = os.sysconf("SC_PAGE_SIZE")
    return {
        "total": total,
        "used": total - free,
        "free": free,
        "percent": round((total - free) / total * 100, 1) if total else 0.0,
        "sin": int(moved.get("pswpin", 0)) * page,
        "sout": int(moved.get("pswpout", 0)) * page,
    }


def boot_time(ctx: Context, time_format: str | None = None) -> object:
    """Return the time of the machine's boot in seconds since 1970, or as text in a strftime(3) format."""
    seconds = processes.boot_time(ctx.host)
    return datetime.fromtimestamp(seconds).strftime(str(time_format)) if time_format else seconds


def disk_partitions(ctx: Context, all: bool = False) -> list[dict[str, str]]:
    """Return a list of maps with device, mountpoint, fstype and opts of the mounted disks; with ``all`` of all mounted
    file systems.
    """
    lines = lines_of(processes.text(ctx.host, "filesystems"))
    kinds = {line.strip() for line in lines if not line.startswith("nodev")} | {"zfs"}
    return [
        {"device": each.device, "mountpoint": each.point, "fstype": each.fstype, "opts": ",".join(each.plain_opts())}
        for each in mount_table.parse(ctx.host.mount_table()).values()
        if all or (each.device not in ("", "none") and each.fstype in kinds)
    ]


def disk_usage(ctx: Context, path: str) -> dict[str, object]:
    """Return a map with total, used and free bytes, and used ``percent``, of the file system that holds a path of the
    host.

    CLI Example:

        salt '*' ps.disk_usage /home
    """
    try:
        stats = file_system(ctx.host.path(path))
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    total, free = stats.f_blocks * stats.f_frsize, stats.f_bavail * stats.f_frsize
    used = (stats.f_blocks - stats.f_bfree) * stats.f_frsize
    percent = round(used / (used + free) * 100, 1) if used + free else 0.0
    return {"total": total, "used": used, "free": free, "percent": percent}


def disk_partition_usage(ctx: Context, all: bool = False) -> list[dict[str, object]]:
    """Return a list of maps, one for each mounted disk: the keys of ``ps.disk_partitions`` and of ``ps.disk_usage``."""
    return [{**each, **disk_usage(ctx, each["mountpoint"])} for each in disk_partitions(ctx, all)]


def network_io_counters(ctx: Context, interface: str | None = None) -> object:
    """Return a map with bytes, packets, errors and drops of all network interfaces together, or of ``interface``.
    Return False for an unknown interface.
    """
    each = {}
    for line in lines_of(processes.text(ctx.host, f"{processes.network(ctx.host)}/dev"))[2:]:
        name, _, rest = line.partition(":")
        columns = [int(word) for word in rest.split()]
        each[name.strip()] = {key: columns[at] for at, key in _NETWORK.items()}
    return each.get(interface, False) if interface else _sum(each.values(), list(_NETWORK.values()))


def disk_io_counters(ctx: Context, device: str | None = None) -> object:
    """Return a map with reads and writes (counts, bytes, milliseconds) of all disks together, or of ``device``. Return
    False for an unknown device.
    """
    each, whole = {}, []
    for line in lines_of(processes.text(ctx.host, "diskstats")):
        words = line.split()
        columns = [int(word) for word in words[3:]]
        each[words[2]] = {key: columns[at] * unit for at, (key, unit) in _DISK.items()}
        if os.path.isdir(f"/sys/block/{words[2].replace('/', '!')}"):  # noqa: PTH112
            # A partition's figures are part of its disk's.
            whole.append(words[2])
    names = [key for key, _ in _DISK.values()]
    return each.get(device, False) if device else _sum([each[name] for name in whole], names)


def get_users(ctx: Context) -> list[dict[str, object]]:
    """Return a list of maps, one for each login on the host: name, terminal, host, started (seconds since 1970) and
    pid.
    """
    return [
        {"name": name, "terminal": line, "host": host, "started": float(seconds), "pid": pid}
        for name, line, host, seconds, pid in _logins(ctx)
    ]


# ----------------------------------------------------------------------------------------------- helpers


def _logins(ctx: Context) -> Iterator[tuple[str, str, str, int, int]]:
    real_path = ctx.host.path("/run/utmp")
    try:
        data = real_path.read_bytes()
    except OSError:
        return
    for at in range(0, len(data) - _UTMP.size + 1, _UTMP.size):
        kind, pid, line, _, user, host, _, _, _, seconds, *_ = _UTMP.unpack_from(data, at)
        if kind == _USER:
            texts = [each.partition(b"\0")[0].decode("utf-8", "replace") for each in (user, line, host)]
            yield texts[0], texts[1], texts[2], seconds, pid


def _cpu_times(ctx: Context) -> list[dict[str, float]]:
    """Return a list of maps of state (user, system, idle ...) to seconds: first the sum of all processors, then each
    processor.
    """
    rows = [line.split() for line in lines_of(processes.text(ctx.host, "stat")) if line.startswith("cpu")]
    return [_seconds(row) for row in rows]


def _seconds(row: Sequence[str]) -> dict[str, float]:
    return {name: int(word) / processes.TICKS for name, word in zip(_CPU, row[1:], strict=False)}


def _busy(before: Mapping[str, float], after: Mapping[str, float]) -> float:
    # The time of virtual guests is part of user and nice already.
    names = [name for name in before if not name.startswith("guest")]
    total = sum(after[name] - before[name] for name in names)
    idle = sum(after[name] - before[name] for name in ("idle", "iowait"))
    return round(max(0.0, total - idle) / total * 100, 1) if total > 0 else 0.0


def _memory(ctx: Context) -> dict[str, int]:
    rows = (line.split() for line in lines_of(processes.text(ctx.host, "meminfo")))
    found = {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) > 1}
    if "MemTotal" not in found:
        raise CommandError(f"{processes.directory(ctx.host)}/meminfo has no MemTotal")
    return found


def _sum(rows: Iterable[Mapping[str, int]], names: Sequence[str]) -> dict[str, int]:
    return {name: sum(row[name] for row in rows) for name in names}
