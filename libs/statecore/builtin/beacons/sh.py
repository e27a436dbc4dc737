"""Beacon ``sh``: fires an event for each command that users start in an interactive shell of the host. One strace
process follows each shell.

strace writes to a private temporary directory of the host, which each check reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from statecore.host.rooted_path import remove_tree
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import plain_text, processes
from statecore.system.scheduling.beacon_config import listed, merged

#: strace's error for a process that has ended.
_GONE = "No such process"

#: Script that starts strace in the background for the shell with process id $1, and prints strace's directory. The
#: directory gets
#: ``out`` (the trace), ``err`` (strace's errors), ``pid`` (strace's process id), and ``ended`` once strace has ended.
_START = """
umask 077
place=$(mktemp -d) || exit 1
{ strace -f -qq -e trace=execve -e signal=none -s 4096 -o "$place/out" -p "$1" 2>"$place/err" & echo $! >"$place/pid"; wait $!
  touch "$place/ended"; } </dev/null >/dev/null 2>&1 &
echo "$place"
"""

#: An execve call in strace's output. The program and its arguments are C strings.
_CALL = re.compile(r'execve\(("(?:[^"\\]|\\.)*"), \[(.*?)\](?:, |\.\.\.)')
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{2}|.)")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f", "a": "\a", "b": "\b"}


@dataclass(slots=True)
class _Traced:
    """An interactive shell of the host, the strace process that follows it, and the amount of its output that was read."""

    user: str
    #: Directory of the host that strace writes to.
    place: str
    #: Bytes of strace's output that have been read.
    read: int = 0


def available(ctx: Context) -> str | None:
    """Return None if the host has strace, else a sentence with the reason."""
    return None if ctx.host.which("strace") else "strace is missing."


def validate(ctx: Context, config: object) -> tuple[bool, str]:
    """Return (True if the configuration of the beacon ``sh`` is valid, comment). The beacon has no options of its own."""
    if not isinstance(config, list):
        return False, "Configuration for sh beacon must be a list."
    if fault := listed(config, "sh"):
        return False, fault
    if fault := processes.may_be_signalled(ctx.host):
        return False, f"The sh beacon cannot trace shells: {fault}"
    return True, "Valid beacon configuration"


def beacon(ctx: Context, config: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return a list of events ``{"cmd": program, "args": arguments, "user": name}``, one for each command that a user
    started in a shell since the last check. The event's tag is the shell's process id.
    """
    traced, refused = _known(ctx, config)
    every = {each.pid: each for each in processes.all_of(ctx.host)}
    names = _names_of_shells(ctx)
    for pid, process in every.items():
        # strace -f also follows the child processes of a shell.
        followed = pid in traced or any(above in traced for above in _ancestors(pid, every))
        if not followed and pid not in refused and _is_shell(process, names):
            traced[pid] = _Traced(ctx.host.user_name(process.uids[1]), _started(ctx, pid))
    found: list[dict[str, object]] = []
    faults: list[str] = []
    for pid, shell in list(traced.items()):
        ended = ctx.host.path(f"{shell.place}/ended").exists()
        found += [
            {"tag": str(pid), "cmd": words[0], "args": words[1:], "user": shell.user}
            for words in _new_calls(ctx, shell)
        ]
        if ended:
            # A shell that ended before strace could follow it is not an error.
            if pid in every and (reason := _stderr(ctx, shell)) and _GONE not in reason:
                refused.add(pid)
                faults.append(f"strace of {pid}: {reason}")
            remove_tree(ctx.host.path(traced.pop(pid).place))
    refused &= every.keys()
    if faults and not found:
        raise CommandError("; ".join(faults))
    return found


def close(ctx: Context, config: list[dict[str, object]]) -> None:
    """Stop all strace processes of the beacon ``sh`` and remove their output directories."""
    traced, _ = _known(ctx, config)
    for shell in traced.values():
        pid = plain_text.host_text(ctx.host, f"{shell.place}/pid").strip()
        if pid.isdecimal() and not ctx.host.path(f"{shell.place}/ended").exists():
            ctx.host.run(["/bin/sh", "-c", 'kill "$1"', "sh", pid])
        remove_tree(ctx.host.path(shell.place))
    traced.clear()


def _known(ctx: Context, config: list[dict[str, object]]) -> tuple[dict[int, _Traced], set[int]]:
    """Return ({process id: followed shell}, process ids of shells that strace could not follow), as kept between two
    checks of the beacon.
    """
    name = merged(config).get("_beacon_name", "sh")
    known: tuple[dict[int, _Traced], set[int]] = ctx.scratch.setdefault(f"{name}.shells", ({}, set()))
    return known


def _names_of_shells(ctx: Context) -> set[str]:
    lines = (line.strip() for line in lines_of(plain_text.host_text(ctx.host, "/etc/shells")))
    return {PurePosixPath(line).name for line in lines if line.startswith("/")}


def _is_shell(process: processes.Process, names: set[str]) -> bool:
    """Return whether the process is an interactive shell: without a script and without a command in its arguments."""
    if not process.words:
        return False
    first, *options = process.words
    return (
        PurePosixPath(first.lstrip("-")).name in names
        and all(word.startswith("-") for word in options)
        and not any("c" in word for word in options if not word.startswith("--"))
    )


def _ancestors(pid: int, every: Mapping[int, processes.Process]) -> Iterator[int]:
    while pid in every and every[pid].ppid:
        pid = every[pid].ppid
        yield pid


def _started(ctx: Context, pid: int) -> str:
    done = ctx.host.run(["/bin/sh", "-c", _START, "sh", str(pid)])
    if done.retcode:
        raise CommandError(f"strace of {pid} was not started: {done.stderr.strip()}")
    return done.stdout.strip()


def _new_calls(ctx: Context, shell: _Traced) -> Iterator[list[str]]:
    """Yield [program, argument, ...] of each command that was started in the shell since the last check. Failed execve
    calls (program not found) are left out.
    """
    try:
        with ctx.host.path(f"{shell.place}/out").open("rb") as output:
            output.seek(shell.read)
            data = output.read()
    except FileNotFoundError:
        return
    whole, _, _ = data.rpartition(b"\n")
    shell.read += len(whole) + 1 if whole else 0
    for line in lines_of(whole.decode("utf-8", "replace")):
        call = _CALL.search(line)
        if call and " = -1 " not in line:
            yield [_plain(call[1][1:-1]), *(_plain(word) for word in _WORD.findall(call[2]))]


def _plain(text: str) -> str:
    r"""Return the text of a C string of strace's output, with its escapes (``\n``, ``\303``) decoded."""
    raw = _ESCAPED.sub(_letter, text)
    try:
        # strace escapes the bytes of a non-ASCII character one by one.
        return raw.encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return raw


def _letter(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] in "01234567":
        return chr(int(escape, 8) & 0xFF)
    if escape[0] == "x":
        return chr(int(escape[1:], 16))
    return _LETTERS.get(escape, escape)


def _stderr(ctx: Context, shell: _Traced) -> str:
    return plain_text.host_text(ctx.host, f"{shell.place}/err").strip()
