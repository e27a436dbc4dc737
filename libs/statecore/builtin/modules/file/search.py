"""``file.find``: select files below a directory by name, type, owner, size, time or content, and act on them."""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecore.host import globs, rooted_path
from statecore.host.content import digests, managed_file
from statecore.host.rooted_path import lexists
from statecore.model.context import Context
from statecore.model.errors import CallFailed, HostError, InvocationError

#: Letter of the criterion ``type`` -> file type in st_mode.
_KINDS: Mapping[str, int] = {
    "b": stat.S_IFBLK,
    "c": stat.S_IFCHR,
    "d": stat.S_IFDIR,
    "f": stat.S_IFREG,
    "l": stat.S_IFLNK,
    "p": stat.S_IFIFO,
    "s": stat.S_IFSOCK,
}

_UNITS = {"b": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_SECONDS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_INTERVAL = re.compile(r"([+-]?)\s*((?:\d+(?:\.\d*)?\s*[wdhms]\s*)+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _File:
    """A file that ``file.find`` has reached in its search: its path for the host's users, and its path in the
    minion's file system.
    """

    ctx: Context
    #: Path as the host's users know it.
    name: str
    real_path: Path

    @property
    def base(self) -> str:
        return self.name.rpartition("/")[2]

    def stat(self) -> os.stat_result:
        """Return the os.stat_result of the file that a link leads to, as ``find -L`` does. If the link's target does
        not exist, return that of the link.
        """
        target = self.ctx.host.path(self.name)
        return target.stat() if lexists(target) and not target.is_symlink() else self.real_path.lstat()


_Test = Callable[[_File], bool]


def find(ctx: Context, path: str, *args: object, **kwargs: object) -> list[object]:
    """Return the paths of all files below a directory (the directory included) that fit every criterion. With
    ``print``, ``exec`` or ``delete``, return the results of these actions instead.

    ``path`` may be a glob.

    name, iname
        a glob for the file's name, with ``{a,b}`` alternatives; ``iname`` ignores case
    regex, iregex
        a regular expression that has to match at the beginning of the file's name; ``iregex`` ignores case
    type
        letters: b (block device), c (character device), d (directory), f (file), l (link), p (pipe), s (socket)
    owner, user, group
        names or numbers, separated by spaces or commas
    size
        ``10k``: from 10 KiB to below 11 KiB; ``+10m``: at least 10 MiB; ``-1g``: at most 1 GiB; units are b, k, m, g, t
    mtime
        ``3d`` or ``+3d``: last changed at least three days ago; ``-3d``: changed since then; units are w, d, h, m, s
    grep
        a regular expression that has to match a line of the file
    mindepth, maxdepth
        levels below the directory; the directory itself has level 0
    delete
        letters as in ``type``: delete the found files of these types
    exec
        a command to run for each file; ``{}`` in it is replaced by the path
    print
        fields to return for each file: group, md5, mode, mtime, name, path, size, type, user
    test
        True: delete and run nothing

    CLI Example:

        salt '*' file.find /var/log name=*.gz mtime=+30d size=+10m print=path,size
    """
    given: dict[str, Any] = {key: value for key, value in kwargs.items() if not key.startswith("_")}
    if args and args[0] not in ("delete", "print"):
        given = {**dict(zip(("name", "type", "maxdepth"), args, strict=False)), **given}
    elif args:
        given.setdefault(str(args[0]), {"delete": "f", "print": "path"}[str(args[0])])
    low, high = int(given.pop("mindepth", None) or 0), given.pop("maxdepth", None)
    dry = bool(given.pop("test", False)) or ctx.test
    try:
        tests, actions = _tests_and_actions(ctx, given, dry)
    except InvocationError as error:
        # Salt returns the error as a text.
        raise CallFailed(str(error), f"error: {error}") from error
    actions = actions or [_print_fields(ctx, "path", dry)]
    # Collect all files before the first action, so that the walk never meets a directory that an action has deleted.
    found = [
        each
        for top in globs.matching_paths(ctx.host, path)
        for each in _walk(ctx, top, low, None if high is None else int(high))
    ]
    chosen = [each for each in found if all(test(each) for test in tests)]
    answers = [answer for each in chosen for action in actions if (answer := action(each)) is not None]
    return sorted(answers, key=str)


def _tests_and_actions(
    ctx: Context, given: Mapping[str, object], dry: bool
) -> tuple[list[_Test], list[Callable[[_File], object]]]:
    tests: list[_Test] = []
    actions: list[Callable[[_File], object]] = []
    for key, value in given.items():
        if value is None:
            continue
        if key in _CRITERIA:
            tests.append(_CRITERIA[key](ctx, str(value)))
        elif key in _ACTIONS:
            if key == "delete":
                tests.append(_kinds(ctx, "bcdfpls" if "a" in str(value) else str(value)))
            actions.append(_ACTIONS[key](ctx, str(value), dry))
        else:
            raise InvocationError(f"invalid option {key!r}; there are {', '.join([*_CRITERIA, *_ACTIONS])}")
    return tests, actions


def _walk(ctx: Context, path: str, low: int, high: int | None) -> Iterator[_File]:
    name = path.rstrip("/") or "/"
    top = ctx.host.path(path)
    if low < 1:
        yield _File(ctx, name, ctx.host.path(name, follow=False))
    if not top.is_dir():
        return
    for here, names, files in rooted_path.walk(top):
        inside = here.relative_to(top).as_posix()
        depth = 1 if inside == "." else inside.count("/") + 2
        if high is not None and depth > high:
            names[:] = []
        elif depth >= low:
            for each in (*names, *files):
                relative = each if inside == "." else f"{inside}/{each}"
                yield _File(ctx, f"{name.rstrip('/')}/{relative}", here / each)


def _glob(case: int) -> Callable[[Context, str], _Test]:
    def of(ctx: Context, value: str) -> _Test:
        parts = [fnmatch.translate(each) for each in _alternatives(value)]
        pattern = re.compile("|".join(parts), case)
        return lambda file: pattern.match(file.base) is not None

    return of


def _alternatives(text: str) -> list[str]:
    """Return the globs that a glob with ``{a,b}`` alternatives stands for, without braces."""
    found = re.search(r"\{([^{}]*)\}", text)
    if found is None:
        return [text]
    return [
        one for each in found[1].split(",") for one in _alternatives(text[: found.start()] + each + text[found.end() :])
    ]


def _regex(case: int) -> Callable[[Context, str], _Test]:
    def of(ctx: Context, value: str) -> _Test:
        pattern = _compiled(value.encode(), case)
        return lambda file: pattern.match(file.base.encode("utf-8", "surrogateescape")) is not None

    return of


def _kinds(ctx: Context, value: str) -> _Test:
    letters = set(value.replace(",", "").replace(" ", ""))
    if unknown := letters - set(_KINDS):
        raise InvocationError(f"type must be of {', '.join(_KINDS)}, not {''.join(sorted(unknown))!r}")
    kinds = {_KINDS[letter] for letter in letters}
    # A symbolic link matches by its own type, and also by its target's type.
    return lambda file: (
        not kinds.isdisjoint({stat.S_IFMT(file.real_path.lstat().st_mode), stat.S_IFMT(file.stat().st_mode)})
    )


def _owner(field: str, number: Callable[[Context, str], int]) -> Callable[[Context, str], _Test]:
    def of(ctx: Context, value: str) -> _Test:
        try:
            numbers = {number(ctx, each) for each in value.replace(",", " ").split()}
        except HostError as error:
            raise InvocationError(str(error)) from error
        return lambda file: getattr(file.stat(), field) in numbers

    return of


def _size(ctx: Context, value: str) -> _Test:
    text = value.strip()
    sign, scalar = (text[0], text[1:]) if text[:1] in "+-" and text else ("", text)
    shift = _UNITS.get(scalar[-1:].lower())
    try:
        number = int(float(scalar[:-1] if shift is not None else scalar) * 2 ** (shift or 0))
    except ValueError:
        raise InvocationError(f"invalid size: {value!r}") from None
    low, high = {"+": (number, None), "-": (0, number)}.get(sign, (number, number + 2 ** (shift or 0) - 1))
    return lambda file: low <= file.stat().st_size and (high is None or file.stat().st_size <= high)


def _mtime(ctx: Context, value: str) -> _Test:
    found = _INTERVAL.fullmatch(value.strip())
    if found is None:
        raise InvocationError(f"invalid time interval: {value!r}")
    parts = re.findall(r"(\d+(?:\.\d*)?)\s*([wdhms])", found[2].lower())
    moment = time.time() - sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if found[1] == "-":
        return lambda file: file.stat().st_mtime >= moment
    return lambda file: file.stat().st_mtime <= moment


def _content_matches(ctx: Context, value: str) -> _Test:
    pattern = _compiled(value.encode(), 0)

    def test(file: _File) -> bool:
        if not stat.S_ISREG(file.stat().st_mode):
            return False
        with ctx.host.path(file.name).open("rb") as data:
            return any(pattern.search(line) for line in data)

    return test


def _compiled(pattern: bytes, flags: int) -> re.Pattern[bytes]:
    try:
        return re.compile(pattern, flags)
    except re.error as error:
        raise InvocationError(f"invalid regular expression {pattern.decode()!r}: {error}") from error


def _print_fields(ctx: Context, value: str, dry: bool) -> Callable[[_File], object]:
    words = value.replace(",", " ").split() or ["path"]
    if unknown := [word for word in words if word not in _FIELDS]:
        raise InvocationError(f"print must be of {', '.join(_FIELDS)}, not {', '.join(unknown)}")

    def fields(file: _File) -> object:
        found = [_FIELDS[word](file) for word in words]
        return found[0] if len(found) == 1 else found

    return fields


def _delete(ctx: Context, value: str, dry: bool) -> Callable[[_File], object]:
    def act(file: _File) -> str | None:
        # A file in a directory that was deleted before no longer exists.
        if not dry and lexists(file.real_path):
            managed_file.remove(file.real_path)
        return file.name

    return act


def _execute(ctx: Context, value: str, dry: bool) -> Callable[[_File], object]:
    def act(file: _File) -> str:
        command = [word.replace("{}", file.name) for word in shlex.split(value)]
        shown = value.replace("{}", file.name)
        return f"{shown}:\n" if dry else f"{shown}:\n{ctx.host.run(command).stdout}\n"

    return act


def _kind(file: _File) -> str:
    kind = stat.S_IFMT(file.real_path.lstat().st_mode)
    return next((letter for letter, each in _KINDS.items() if each == kind), "?")


def _md5(file: _File) -> str:
    return digests.digest_of(file.ctx.host.path(file.name), "md5") if stat.S_ISREG(file.stat().st_mode) else ""


_FIELDS: Mapping[str, Callable[[_File], object]] = {
    "group": lambda file: file.ctx.host.group_name(file.stat().st_gid),
    "md5": _md5,
    "mode": lambda file: stat.S_IMODE(file.stat().st_mode) & 0o777,
    "mtime": lambda file: int(file.stat().st_mtime),
    "name": lambda file: file.base,
    "path": lambda file: file.name,
    "size": lambda file: file.stat().st_size,
    "type": _kind,
    "user": lambda file: file.ctx.host.user_name(file.stat().st_uid),
}

_CRITERIA: Mapping[str, Callable[[Context, str], _Test]] = {
    "name": _glob(0),
    "iname": _glob(re.IGNORECASE),
    "regex": _regex(0),
    "iregex": _regex(re.IGNORECASE),
    "type": _kinds,
    "owner": _owner("st_uid", lambda ctx, name: ctx.host.uid(name)),
    "user": _owner("st_uid", lambda ctx, name: ctx.host.uid(name)),
    "group": _owner("st_gid", lambda ctx, name: ctx.host.gid(name)),
    "size": _size,
    "mtime": _mtime,
    "grep": _content_matches,
}

_ACTIONS: Mapping[str, Callable[[Context, str, bool], Callable[[_File], object]]] = {
    "delete": _delete,
    "exec": _execute,
    "print": _print_fields,
}
