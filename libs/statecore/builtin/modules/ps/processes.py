"""Functions of ``ps`` that list, describe and signal processes."""

from __future__ import annotations

import os
import re
import signal as signals
import time
from collections.abc import Callable, Mapping, Sequence

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import processes
from statecore.system.hostfiles.processes import Process


def get_pid_list(ctx: Context) -> list[int]:
    """Return the process ids of all processes of the host.

    CLI Example:

        salt '*' ps.get_pid_list
    """
    return processes.pids(ctx.host)


def proc_info(ctx: Context, pid: int, attrs: Sequence[str] | None = None) -> dict[str, object]:
    """Return a map that describes a process: pid, ppid, name, cmdline, status, username, memory_info, cpu_times and
    more, or only the keys named in ``attrs``. Raise CommandError for an unknown process id.

    CLI Example:

        salt '*' ps.proc_info 2322 attrs='["pid", "name"]'
    """
    names = list(attrs) if attrs is not None else list(_ATTRIBUTES)
    if unknown := [name for name in names if name not in _ATTRIBUTES]:
        raise InvocationError(
            f"{', '.join(map(str, unknown))} is no attribute of a process; there are {', '.join(_ATTRIBUTES)}"
        )
    process = processes.find(ctx.host, int(pid))
    if process is None:
        raise CommandError(f"process PID not found (pid={pid})")
    return {name: _ATTRIBUTES[name](ctx, process) for name in names}


def kill_pid(ctx: Context, pid: int, signal: int = 15) -> bool:
    """Send a signal to a process. Return True; False for an unknown process id.

    CLI Example:

        salt '*' ps.kill_pid 2000 signal=9
    """
    _may_signal(ctx)
    return int(pid) in processes.pids(ctx.host) and _send(int(pid), _number(signal))


def pkill(
    ctx: Context, pattern: str, user: str | None = None, signal: int = 15, full: bool = False
) -> dict[str, list[int]] | None:
    """Send a signal to all processes whose name (with ``full``: command line) contains the text ``pattern``.

    Return {"killed": process ids}, or None if no process matches.

    CLI Example:

        salt '*' ps.pkill httpd signal=1
    """
    number = _number(signal)
    found = pgrep(ctx, pattern, user, full) or []
    if found:
        _may_signal(ctx)
    killed = [pid for pid in found if _send(pid, number)]
    return {"killed": killed} if killed else None


def pgrep(
    ctx: Context, pattern: str, user: str | None = None, full: bool = False, pattern_is_regex: bool = False
) -> list[int] | None:
    """Return the ids of the processes whose name (with ``full``: command line) contains the text ``pattern``, or
    matches it as a regular expression.

    Return None if no process matches. ``user``: only processes of this user.

    CLI Example:

        salt '*' ps.pgrep httpd
    """
    try:
        matches = re.compile(str(pattern) if pattern_is_regex else re.escape(str(pattern))).search
    except re.error as error:
        raise InvocationError(f"'{pattern}' is not a regular expression: {error}") from error
    return [
        process.pid
        for process in processes.all_of(ctx.host)
        if matches(" ".join(process.words) if full else process.name)
        and (user is None or ctx.host.user_name(process.uids[0]) == user)
    ] or None


def status(ctx: Context, status: str) -> list[dict[str, object]]:
    """Return a list of maps with name and pid of the processes in a state: running, sleeping, disk-sleep, stopped,
    zombie, idle, ...

    CLI Example:

        salt '*' ps.status zombie
    """
    if not status:
        raise InvocationError("Filter is required for ps.status")
    wanted = str(status).replace("_", "-")
    return [{"name": each.name, "pid": each.pid} for each in processes.all_of(ctx.host) if each.status == wanted]


def top(ctx: Context, num_processes: int = 5, interval: float = 3) -> list[dict[str, object]]:
    """Return a list of maps for the processes that used most processor time within ``interval`` seconds.

    Each row has cmd, user, status, pid, create_time, cpu and mem.

    CLI Example:

        salt '*' ps.top 5 10
    """
    before = {(each.pid, each.started): sum(each.times[:2]) for each in processes.all_of(ctx.host)}
    time.sleep(float(interval))
    after = [each for each in processes.all_of(ctx.host) if (each.pid, each.started) in before]
    after.sort(key=lambda each: sum(each.times[:2]) - before[each.pid, each.started], reverse=True)
    return [
        {
            "cmd": list(each.words) or each.name,
            "user": ctx.host.user_name(each.uids[0]),
            "status": each.status,
            "pid": each.pid,
            "create_time": _started(ctx, each),
            "cpu": _times(ctx, each),
            "mem": _memory(ctx, each),
        }
        for each in after[: int(num_processes)]
    ]


def psaux(ctx: Context, name: str) -> list[object]:
    """Return a list: the regular expression, the matching lines of ``ps aux``, and a text with the number of these
    lines.

    CLI Example:

        salt '*' ps.psaux 'www-data.+apache2'
    """
    try:
        pattern = re.compile(str(name))
    except re.error as error:
        raise InvocationError(f"'{name}' is not a regular expression: {error}") from error
    lines = [line for line in _output_lines(ctx, ["ps", "aux"]) if pattern.search(line) and "ps.psaux" not in line]
    return [str(name), lines, f"{len(lines)} occurrence(s)."]


def lsof(ctx: Context, name: str) -> list[str]:
    """Return a list: the name, and the output of ``lsof`` for commands whose name begins with it."""
    return [str(name), "\n".join(_output_lines(ctx, ["lsof", "-c", str(name)]))]


def netstat(ctx: Context, name: str) -> list[object]:
    """Return a list: the text ``name``, and the lines of ``netstat -nap`` that contain it."""
    return [str(name), [line for line in _output_lines(ctx, ["netstat", "-nap"]) if str(name) in line]]


def ss(ctx: Context, name: str) -> list[object]:
    """Return a list: the text ``name``, and the lines of ``ss -neap`` that contain it."""
    return [str(name), [line for line in _output_lines(ctx, ["ss", "-neap"]) if str(name) in line]]


# ----------------------------------------------------------------------------------------------- helpers


def _started(ctx: Context, process: Process) -> float:
    return round(processes.boot_time(ctx.host) + process.started / processes.TICKS, 2)


def _times(ctx: Context, process: Process) -> dict[str, float]:
    names = ("user", "system", "children_user", "children_system", "iowait")
    return dict(zip(names, process.times, strict=True))


def _memory(ctx: Context, process: Process) -> dict[str, int]:
    found = dict(zip(("rss", "vms", "shared", "text", "data"), process.memory, strict=True))
    return {**found, "lib": 0, "dirty": 0}


def _total_memory(ctx: Context) -> int:
    rows = (line.split() for line in lines_of(processes.text(ctx.host, "meminfo")))
    return next((int(row[1]) * 1024 for row in rows if row[0] == "MemTotal:"), 0)


def _link(name: str) -> Callable[[Context, Process], str | None]:
    def read(ctx: Context, process: Process) -> str | None:
        try:
            return str((processes.directory(ctx.host) / str(process.pid) / name).readlink())
        except OSError:
            # A kernel thread, or a process that we may not inspect.
            return None

    return read


def _open(ctx: Context, process: Process) -> int | None:
    try:
        return sum(1 for _ in (processes.directory(ctx.host) / str(process.pid) / "fd").iterdir())
    except OSError:
        return None


#: Attribute of ``proc_info`` -> function that reads it.
_ATTRIBUTES: Mapping[str, Callable[[Context, Process], object]] = {
    "pid": lambda _, process: process.pid,
    "ppid": lambda _, process: process.ppid,
    "name": lambda _, process: process.name,
    "cmdline": lambda _, process: list(process.words),
    "exe": _link("exe"),
    "cwd": _link("cwd"),
    "status": lambda _, process: process.status,
    "username": lambda ctx, process: ctx.host.user_name(process.uids[0]),
    "uids": lambda _, process: dict(zip(("real", "effective", "saved"), process.uids, strict=True)),
    "gids": lambda _, process: dict(zip(("real", "effective", "saved"), process.gids, strict=True)),
    "create_time": _started,
    "cpu_times": _times,
    "memory_info": _memory,
    "memory_percent": lambda ctx, process: process.memory[0] / (_total_memory(ctx) or 1) * 100,
    "nice": lambda _, process: process.nice,
    "num_threads": lambda _, process: process.threads,
    "num_fds": _open,
}


def _may_signal(ctx: Context) -> None:
    if why := processes.may_be_signalled(ctx.host):
        raise CommandError(f"no signal is sent: {why}")


def _send(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        raise CommandError(f"process {pid} cannot be signalled: it is another user's") from error
    return True


def _number(signal: object) -> int:
    """Return the number of a signal that is given by number or name. Raise InvocationError for an unknown signal."""
    text = str(signal).upper()
    if text.isdecimal() and int(text) <= signals.SIGRTMAX:
        return int(text)
    name = text if text.startswith("SIG") else f"SIG{text}"
    if name not in signals.Signals.__members__:
        raise InvocationError(f"'{signal}' is not a signal")
    return signals.Signals[name].value


def _output_lines(ctx: Context, words: list[str]) -> list[str]:
    if ctx.host.which(words[0]) is None:
        raise CommandError(f"the host has no {words[0]}")
    return lines_of(ctx.host.run(words, merge_stderr=True).stdout)
