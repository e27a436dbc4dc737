"""The processes of the managed host, from /proc (proc(5)).

A mounted host with a /proc of its own is read from that /proc. Otherwise this machine's /proc is read: the host's
processes are those whose root directory is the host's root. They are visible only if the host shares its process ids
with this container. Kernel-wide figures (processor, memory, disks) are the same in any /proc.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from statecore.model.errors import HostError
from statecore.model.ports import ManagedHost
from statecore.model.text_lines import lines_of, text_of

_OURS = Path("/proc")

#: Path below /proc of this process's own network namespace.
OWN_NETWORK = "net"

#: Letter of a process's state -> its name, as in psutil.
_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "disk-sleep",
    "T": "stopped",
    "t": "tracing-stop",
    "Z": "zombie",
    "X": "dead",
    "x": "dead",
    "K": "wake-kill",
    "W": "waking",
    "I": "idle",
    "P": "parked",
}

#: Indexes of the fields in ``stat`` after the name in parentheses.
_STATE, _PPID, _TTY, _UTIME, _STIME, _CUTIME, _CSTIME, _NICE, _THREADS, _START, _IOWAIT = (
    0,
    1,
    4,
    11,
    12,
    13,
    14,
    16,
    17,
    19,
    39,
)

TICKS = os.sysconf("SC_CLK_TCK")


class Process(NamedTuple):
    """A process of the managed host and its figures at the time it was read from /proc."""

    pid: int
    name: str
    #: Words of the command line; () for a kernel thread.
    words: tuple[str, ...]
    status: str
    ppid: int
    uids: tuple[int, int, int]
    gids: tuple[int, int, int]
    nice: int
    threads: int
    #: Seconds of processor time: user, system, children's user, children's system, waiting for disks.
    times: tuple[float, float, float, float, float]
    #: Start time in ticks since the kernel's start.
    started: int
    terminal: int
    #: Memory in bytes: resident, virtual, shared, text, data.
    memory: tuple[int, int, int, int, int]


def directory(host: ManagedHost) -> Path:
    """Return the path of the /proc that describes the managed host."""
    if host.mounted and (own := host.path("/proc")).joinpath("stat").is_file():
        return own
    return _OURS


def text(host: ManagedHost, name: str) -> str:
    """Return the text of a file in the managed host's /proc; "" if it does not exist."""
    try:
        return text_of(directory(host).joinpath(name))
    except OSError:
        return ""


def network(host: ManagedHost) -> str:
    """Return the path, relative to the host's /proc, of the host's network tables.

    This is "1/net" if the first process there belongs to the host, else "net", the network of this process.
    """
    if directory(host) != _OURS:
        return "1/net"
    return "1/net" if host.mounted and _is_of(_OURS / "1", host) else OWN_NETWORK


def _is_of(process: Path, host: ManagedHost) -> bool:
    try:
        return _is_below(process, host.root.stat())
    except OSError:
        return False


def pids(host: ManagedHost) -> list[int]:
    """Sorted list of the host's process ids, as in its /proc. Raises HostError."""
    top = directory(host)
    found = sorted(int(entry.name) for entry in top.iterdir() if entry.name.isdecimal())
    if not host.mounted or top != _OURS:
        return found
    try:
        root = host.root.stat()
    except OSError as error:
        raise HostError(f"{host.root}: {error.strerror}") from error
    return [pid for pid in found if _is_below(top / str(pid), root)]


def all_of(host: ManagedHost) -> Iterator[Process]:
    """Yield all processes of the managed host. Processes that end meanwhile are left out."""
    for pid in pids(host):
        if (process := find(host, pid)) is not None:
            yield process


def find(host: ManagedHost, pid: int) -> Process | None:
    """Return a process of the managed host by its process id, or None if it does not exist."""
    place = directory(host) / str(pid)
    try:
        stat = text_of(place / "stat")
        words = (place / "cmdline").read_bytes().decode("utf-8", "replace")
        lines = (line.partition(":\t") for line in lines_of(text_of(place / "status")))
        pages = [int(each) * os.sysconf("SC_PAGE_SIZE") for each in (place / "statm").read_text().split()]
    except (OSError, ValueError):
        return None
    status = {name: value for name, _, value in lines}
    fields = stat[stat.rindex(")") + 2 :].split()
    uids, gids = ([int(each) for each in status.get(name, "0 0 0").split()[:3]] for name in ("Uid", "Gid"))
    ticks = [int(fields[at]) / TICKS for at in (_UTIME, _STIME, _CUTIME, _CSTIME)]
    waited = int(fields[_IOWAIT]) / TICKS if len(fields) > _IOWAIT else 0.0
    return Process(
        pid=pid,
        name=_whole_name(stat[stat.index("(") + 1 : stat.rindex(")")], words),
        words=tuple(_split(words)),
        status=_STATES.get(fields[_STATE], fields[_STATE]),
        ppid=int(fields[_PPID]),
        uids=(uids[0], uids[1], uids[2]),
        gids=(gids[0], gids[1], gids[2]),
        nice=int(fields[_NICE]),
        threads=int(fields[_THREADS]),
        times=(ticks[0], ticks[1], ticks[2], ticks[3], waited),
        started=int(fields[_START]),
        terminal=int(fields[_TTY]),
        memory=(pages[1], pages[0], pages[2], pages[3], pages[5]),
    )


def boot_time(host: ManagedHost) -> int:
    """Return the start of the host's kernel in seconds since 1970."""
    rows = (line.split() for line in lines_of(text(host, "stat")))
    return next((int(row[1]) for row in rows if row and row[0] == "btime"), 0)


def may_be_signalled(host: ManagedHost) -> str:
    """Return the reason why a process id of the host's /proc names another process here, so that no signal may be sent;
    "" if it names the same process.
    """
    top = directory(host)
    if top == _OURS:
        return ""
    try:
        same = (top / "1/ns/pid").stat().st_ino == Path("/proc/self/ns/pid").stat().st_ino
    except OSError as error:
        return f"{top}/1/ns/pid cannot be read: {error.strerror}"
    return (
        "" if same else f"processes of the host at {host.root} have other numbers here: its process ids are not shared"
    )


def _is_below(place: Path, root: os.stat_result) -> bool:
    try:
        return os.path.samestat((place / "root").stat(), root)
    except OSError:
        # The process has ended, or may not be read.
        return False


def _split(line: str) -> list[str]:
    """Return the words of a process's command line, from its file ``cmdline`` in /proc.

    If a process overwrote it, words are separated by spaces instead of null bytes.
    """
    if not line:
        return []
    words = line.removesuffix("\0").split("\0")
    return line.rstrip("\0").split(" ") if len(words) == 1 and not line.endswith("\0") else words


def _whole_name(short: str, line: str) -> str:
    """Return the full name of a process. The kernel keeps 15 characters; the command line may have the rest."""
    first = _split(line)[0].rpartition("/")[2] if line else ""
    return first if len(short) >= 15 and first.startswith(short) else short
