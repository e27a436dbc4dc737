"""Commands that are started in the host's interactive shells, seen by strace: one for each shell that is found.

What strace tells goes into a directory of its own below the host's temporary one, and is read at each look.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from statecore.host.rooted_path import remove_tree
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.hostfiles import plain_text, processes
from statecore.system.scheduling.beacon_config import listed, merged

#: What strace says of a process that has ended.
_GONE = "No such process"

#: Starts strace apart from us, says where it writes, and its number; $1 is the shell. What it says of itself is kept,
#: and so is its
#: end, so that nobody has to be asked for it.
_START = """
umask 077
place=$(mktemp -d) || exit 1
{ strace -f -qq -e trace=execve -e signal=none -s 4096 -o "$place/out" -p "$1" 2>"$place/err" & echo $! >"$place/pid"; wait $!
  touch "$place/ended"; } </dev/null >/dev/null 2>&1 &
echo "$place"
"""

#: A call that was made: its words are C strings.
_CALL = re.compile(r'execve\(("(?:[^"\\]|\\.)*"), \[(.*?)\](?:, |\.\.\.)')
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{2}|.)")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f", "a": "\a", "b": "\b"}


@dataclass(slots=True)
class _Traced:
    """One shell that is looked at."""

    user: str
    #: The host's directory that strace writes into.
    place: str
    read: int = 0


def available(ctx: Context) -> str | None:
    """The reason why it cannot work here."""
    return None if ctx.host.which("strace") else "strace is missing."


def validate(ctx: Context, config: Any) -> tuple[bool, str]:
    """It has no options of its own."""
    if not isinstance(config, list):
        return False, "Configuration for sh beacon must be a list."
    if fault := listed(config, "sh"):
        return False, fault
    if fault := processes.may_be_signalled(ctx.host):
        return False, f"The sh beacon cannot look into shells: {fault}"
    return True, "Valid beacon configuration"


def beacon(ctx: Context, config: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``{"cmd": program, "args": its words, "user": who has the shell}`` of each command, with the shell's number as tag."""
    traced, refused = _known(ctx, config)
    every = {each.pid: each for each in processes.all_of(ctx.host)}
    names = _names_of_shells(ctx)
    for pid, process in every.items():
        # One below another is followed with it.
        followed = pid in traced or any(above in traced for above in _ancestors(pid, every))
        if not followed and pid not in refused and _is_shell(process, names):
            traced[pid] = _Traced(ctx.host.user_name(process.uids[1]), _started(ctx, pid))
    found, faults = [], []
    for pid, shell in list(traced.items()):
        ended = ctx.host.path(f"{shell.place}/ended").exists()
        found += [
            {"tag": str(pid), "cmd": words[0], "args": words[1:], "user": shell.user}
            for words in _new_calls(ctx, shell)
        ]
        if ended:
            # One that ended before strace had it is no fault.
            if pid in every and (said := _said(ctx, shell)) and _GONE not in said:
                refused.add(pid)
                faults.append(f"strace of {pid}: {said}")
            remove_tree(ctx.host.path(traced.pop(pid).place))
    refused &= every.keys()
    if faults and not found:
        raise CommandError("; ".join(faults))
    return found


def close(ctx: Context, config: list[dict[str, Any]]) -> None:
    """No shell is looked into any more."""
    traced, _ = _known(ctx, config)
    for shell in traced.values():
        pid = plain_text.host_text(ctx.host, f"{shell.place}/pid").strip()
        if pid.isdecimal() and not ctx.host.path(f"{shell.place}/ended").exists():
            ctx.host.run(["/bin/sh", "-c", 'kill "$1"', "sh", pid])
        remove_tree(ctx.host.path(shell.place))
    traced.clear()


def _known(ctx: Context, config: list[dict[str, Any]]) -> tuple[dict[int, _Traced], set[int]]:
    """Number of a shell -> how it is looked at; those that cannot be."""
    name = merged(config).get("_beacon_name", "sh")
    known: tuple[dict[int, _Traced], set[int]] = ctx.scratch.setdefault(f"{name}.shells", ({}, set()))
    return known


def _names_of_shells(ctx: Context) -> set[str]:
    lines = (line.strip() for line in plain_text.host_text(ctx.host, "/etc/shells").splitlines())
    return {PurePosixPath(line).name for line in lines if line.startswith("/")}


def _is_shell(process: processes.Process, names: set[str]) -> bool:
    """Whether it is one that somebody types into: without a script, and without a command of its own."""
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
    """Words of the commands that were started since the last look; one that was not found was not."""
    try:
        with ctx.host.path(f"{shell.place}/out").open("rb") as told:
            told.seek(shell.read)
            data = told.read()
    except FileNotFoundError:
        return
    whole, _, _ = data.rpartition(b"\n")
    shell.read += len(whole) + 1 if whole else 0
    for line in whole.decode("utf-8", "replace").splitlines():
        call = _CALL.search(line)
        if call and " = -1 " not in line:
            yield [_plain(call[1][1:-1]), *(_plain(word) for word in _WORD.findall(call[2]))]


def _plain(text: str) -> str:
    """A C string without its escapes."""
    raw = _ESCAPED.sub(_letter, text)
    try:
        # Bytes that are no ASCII are escaped one by one.
        return raw.encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return raw


def _letter(match: re.Match[str]) -> str:
    what = match[1]
    if what[0] in "01234567":
        return chr(int(what, 8) & 0xFF)
    if what[0] == "x":
        return chr(int(what[1:], 16))
    return _LETTERS.get(what, what)


def _said(ctx: Context, shell: _Traced) -> str:
    return plain_text.host_text(ctx.host, f"{shell.place}/err").strip()
