"""Files of the managed host (Salt's ``file`` module): what states and templates ask for."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import stat as stat_bits
from pathlib import Path
from typing import Any

from statecore import managed_file
from statecore.context import Context
from statecore.errors import CommandError, HostError, InvocationError
from statecore.managed_file import Attributes


def file_exists(ctx: Context, path: str) -> bool:
    """Whether there is a regular file of this name."""
    return ctx.host.path(path).is_file()


def directory_exists(ctx: Context, path: str) -> bool:
    """Whether there is a directory of this name."""
    return ctx.host.path(path).is_dir()


def path_exists_glob(ctx: Context, path: str) -> bool:
    """Whether anything matches a glob."""
    top = ctx.host.path(str(Path(path).parent))
    return top.is_dir() and any(fnmatch.fnmatchcase(entry.name, Path(path).name) for entry in top.iterdir())


def access(ctx: Context, path: str, mode: str) -> bool:
    """Whether this process may ``f`` find, ``r`` read, ``w`` write or ``x`` execute a file."""
    modes = {"f": os.F_OK, "r": os.R_OK, "w": os.W_OK, "x": os.X_OK}
    if mode not in modes:
        raise InvocationError(f"mode must be one of {', '.join(modes)}, not {mode!r}")
    return os.access(ctx.host.path(path), modes[mode])


def read(ctx: Context, path: str, binary: bool = False) -> Any:
    """The content of a file."""
    data = _read(ctx, path)
    return data if binary else data.decode("utf-8", "replace")


def write(ctx: Context, path: str, *args: Any, **kwargs: Any) -> str:
    """Puts lines in place of a file's content."""
    lines = _lines(args, kwargs)
    managed_file.replace(ctx.host, ctx.host.path(path), "".join(f"{line}\n" for line in lines).encode(), Attributes())
    return f'Wrote {len(lines)} lines to "{path}"'


def append(ctx: Context, path: str, *args: Any, **kwargs: Any) -> str:
    """Puts lines at the end of a file."""
    lines = _lines(args, kwargs)
    place = ctx.host.path(path)
    old = managed_file.read(place, path) or b""
    gap = b"" if not old or old.endswith(b"\n") else b"\n"
    managed_file.replace(ctx.host, place, old + gap + "".join(f"{line}\n" for line in lines).encode(), Attributes())
    return f'Wrote {len(lines)} lines to "{path}"'


def touch(ctx: Context, name: str, atime: Any = None, mtime: Any = None) -> bool:
    """Makes the file, or sets its times (seconds since 1970; what is not given is the other, or now)."""
    place = ctx.host.path(name)
    try:
        place.touch()
        os.utime(place, managed_file.times(atime, mtime))
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from error
    return True


def remove(ctx: Context, path: str) -> bool:
    """Removes a file, a link or a whole directory. Raises CommandError when there is none."""
    if not path.startswith("/"):
        raise InvocationError(f"File path must be absolute: {path}")
    place = ctx.host.path(path, follow=False)
    if not os.path.lexists(place):
        raise CommandError(f"Path not found: {path}")
    managed_file.remove(place)
    return True


def copy(ctx: Context, src: str, dst: str, recurse: bool = False, remove_existing: bool = False) -> bool:
    """Copies a file, or with ``recurse`` a directory."""
    source, target = ctx.host.path(src), ctx.host.path(dst)
    if not source.exists():
        raise CommandError(f"No such file or directory '{src}'")
    if source.is_dir() and not recurse:
        raise InvocationError("Cannot copy overtop of directory unless recurse=True")
    try:
        if not source.is_dir():
            shutil.copy2(source, target)
            return True
        if remove_existing and target.exists():
            managed_file.remove(target)
        _copy_tree(ctx, source, dst.rstrip("/"))
    except OSError as error:
        raise CommandError(f"Could not copy '{src}' to '{dst}': {error.strerror}") from error
    return True


def rename(ctx: Context, src: str, dst: str) -> bool:
    """Renames a file or directory."""
    try:
        ctx.host.path(src, follow=False).rename(ctx.host.path(dst, follow=False))
    except OSError as error:
        raise CommandError(f"Could not rename '{src}' to '{dst}': {error.strerror}") from error
    return True


def symlink(ctx: Context, src: str, path: str, force: bool = False) -> bool:
    """Makes ``path`` a link to ``src``."""
    place = ctx.host.path(path, follow=False)
    if os.path.lexists(place):
        if place.is_symlink() and str(place.readlink()) == src:
            return True
        if not force:
            raise CommandError(f"Found existing {path}; use force=True to replace it")
        managed_file.remove(place)
    try:
        place.symlink_to(src)
    except OSError as error:
        raise CommandError(f"Could not create '{path}': {error.strerror}") from error
    return True


def is_link(ctx: Context, path: str) -> bool:
    """Whether a name is a link."""
    return ctx.host.path(path, follow=False).is_symlink()


def readlink(ctx: Context, path: str, canonicalize: bool = False) -> str:
    """Where a link points."""
    place = ctx.host.path(path, follow=False)
    if not place.is_symlink():
        raise InvocationError(f"A valid link was not specified: {path}")
    if canonicalize:
        return _named(ctx, ctx.host.path(path))
    return str(place.readlink())


def mkdir(ctx: Context, dir_path: str, user: Any = None, group: Any = None, mode: Any = None) -> bool:
    """Makes a directory and its parents."""
    wanted = Attributes(user, group, managed_file.parse_mode(mode))
    managed_file.make_directories(ctx.host, ctx.host.path(dir_path), wanted, ctx.host.root)
    return True


def makedirs(ctx: Context, path: str, user: Any = None, group: Any = None, mode: Any = None) -> bool:
    """Makes the directories that a path needs; what stands behind the last slash is left out."""
    return mkdir(ctx, path if path.endswith("/") else str(Path(path).parent), user, group, mode)


def rmdir(ctx: Context, path: str, recurse: bool = False) -> bool:
    """Removes a directory; one that holds something only with ``recurse``."""
    place = ctx.host.path(path, follow=False)
    if not place.is_dir():
        raise InvocationError(f"{path} is not a directory")
    if recurse:
        managed_file.remove(place)
        return True
    try:
        place.rmdir()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    return True


def readdir(ctx: Context, path: str) -> list[str]:
    """Names in a directory, with ``.`` and ``..``."""
    place = ctx.host.path(path)
    if not place.is_dir():
        raise InvocationError("A valid directory was not specified.")
    return [".", "..", *sorted(entry.name for entry in place.iterdir())]


def find(
    ctx: Context, path: str, name: str | None = None, type: str | None = None, maxdepth: int | None = None
) -> list[str]:
    """Paths below a directory: by a glob of the name, by type (``f`` file, ``d`` directory, ``l`` link), to a depth."""
    kinds = {"f": Path.is_file, "d": Path.is_dir, "l": Path.is_symlink}
    if type is not None and type not in kinds:
        raise InvocationError(f"type must be one of {', '.join(kinds)}, not {type!r}")
    top = ctx.host.path(path)
    found = []
    for place, names, files in os.walk(top):
        for entry in (*names, *files):
            one = Path(place, entry)
            relative = one.relative_to(top)
            if maxdepth is not None and len(relative.parts) > maxdepth:
                continue
            if (name is None or fnmatch.fnmatchcase(entry, name)) and (type is None or kinds[type](one)):
                found.append(f"{path.rstrip('/')}/{relative.as_posix()}")
    return sorted(found)


def stats(ctx: Context, path: str, hash_type: str | None = None, follow_symlinks: bool = True) -> dict[str, Any]:
    """Owner, mode, type, size and times of a file."""
    place = ctx.host.path(path, follow=follow_symlinks)
    found = _lstat(place, path)
    kinds = {
        stat_bits.S_ISDIR: "dir",
        stat_bits.S_ISLNK: "link",
        stat_bits.S_ISREG: "file",
        stat_bits.S_ISBLK: "block",
        stat_bits.S_ISCHR: "char",
        stat_bits.S_ISFIFO: "pipe",
        stat_bits.S_ISSOCK: "socket",
    }
    answer = {
        "inode": found.st_ino,
        "uid": found.st_uid,
        "gid": found.st_gid,
        "group": ctx.host.group_name(found.st_gid),
        "user": ctx.host.user_name(found.st_uid),
        "atime": found.st_atime,
        "mtime": found.st_mtime,
        "ctime": found.st_ctime,
        "size": found.st_size,
        "mode": managed_file.shown_mode(stat_bits.S_IMODE(found.st_mode)),
        "type": next((kind for test, kind in kinds.items() if test(found.st_mode)), "unknown"),
        "target": _named(ctx, place),
    }
    if hash_type and answer["type"] == "file":
        answer["sum"] = get_hash(ctx, path, hash_type)
    return answer


def lstat(ctx: Context, path: str) -> dict[str, Any]:
    """The numbers of a file or link, {} when there is none."""
    try:
        found = ctx.host.path(path, follow=False).lstat()
    except OSError:
        return {}
    names = ("st_atime", "st_ctime", "st_gid", "st_mode", "st_mtime", "st_nlink", "st_size", "st_uid")
    return {name: getattr(found, name) for name in names}


def get_mode(ctx: Context, path: str, follow_symlinks: bool = True) -> str:
    """Mode as octal digits."""
    return managed_file.shown_mode(stat_bits.S_IMODE(_lstat(ctx.host.path(path, follow=follow_symlinks), path).st_mode))


def get_user(ctx: Context, path: str, follow_symlinks: bool = True) -> str:
    """Name of the owner."""
    return ctx.host.user_name(_lstat(ctx.host.path(path, follow=follow_symlinks), path).st_uid)


def get_group(ctx: Context, path: str, follow_symlinks: bool = True) -> str:
    """Name of the group."""
    return ctx.host.group_name(_lstat(ctx.host.path(path, follow=follow_symlinks), path).st_gid)


def get_uid(ctx: Context, path: str, follow_symlinks: bool = True) -> int:
    """Number of the owner."""
    return _lstat(ctx.host.path(path, follow=follow_symlinks), path).st_uid


def get_gid(ctx: Context, path: str, follow_symlinks: bool = True) -> int:
    """Number of the group."""
    return _lstat(ctx.host.path(path, follow=follow_symlinks), path).st_gid


def set_mode(ctx: Context, path: str, mode: Any) -> str:
    """Gives a file a mode; returns it."""
    place = ctx.host.path(path)
    _lstat(place, path)
    managed_file.set_attributes(ctx.host, place, Attributes(mode=managed_file.parse_mode(mode)))
    return get_mode(ctx, path)


def chown(ctx: Context, path: str, user: Any, group: Any) -> str | None:
    """Gives a file an owner and a group; None when it did, else why not."""
    place = ctx.host.path(path)
    if not place.exists():
        return "File not found"
    try:
        managed_file.set_attributes(ctx.host, place, Attributes(user or None, group or None))
    except HostError as error:
        return str(error)
    return None


def chgrp(ctx: Context, path: str, group: Any) -> str | None:
    """Gives a file a group; None when it did, else why not."""
    return chown(ctx, path, None, group)


def get_hash(ctx: Context, path: str, form: str = "sha256", chunk_size: int = 65536) -> str:
    """Digest of a file, hexadecimal."""
    place = ctx.host.path(path)
    _lstat(place, path)
    return managed_file.digest(place, form, chunk_size)


def get_sum(ctx: Context, path: str, form: str = "sha256") -> str:
    """Digest of a file, or "File not found"."""
    return get_hash(ctx, path, form) if ctx.host.path(path).is_file() else "File not found"


def check_hash(ctx: Context, path: str, file_hash: str) -> bool:
    """Whether a file has a digest, written as ``algorithm=hexadecimal`` or by its length alone."""
    algorithm, digest = managed_file.parse_digest(file_hash)
    return get_hash(ctx, path, algorithm) == digest


def contains(ctx: Context, path: str, text: str) -> bool:
    """Whether a file has a text in one of its lines, surrounding space aside."""
    place = ctx.host.path(path)
    return place.is_file() and str(text).strip() in place.read_text("utf-8", "replace")


def contains_regex(ctx: Context, path: str, regex: str, lchar: str = "") -> bool:
    """Whether a line of a file matches a regular expression."""
    place = ctx.host.path(path)
    pattern = _compiled(regex, 0)
    skipped = lchar.encode()
    return place.is_file() and any(
        pattern.search(line.lstrip(skipped) if skipped else line) for line in place.read_bytes().splitlines()
    )


def search(
    ctx: Context,
    path: str,
    pattern: str,
    flags: Any = 8,
    bufsize: Any = 1,
    ignore_if_missing: bool = False,
    multiline: bool = False,
) -> bool:
    """Whether a file matches a regular expression."""
    place = ctx.host.path(path)
    if ignore_if_missing and not place.is_file():
        return False
    return _compiled(pattern, flags).search(_read(ctx, path)) is not None


def replace(
    ctx: Context,
    path: str,
    pattern: str,
    repl: str,
    count: int = 0,
    flags: Any = 8,
    bufsize: Any = 1,
    append_if_not_found: bool = False,
    prepend_if_not_found: bool = False,
    not_found_content: str | None = None,
    backup: Any = ".bak",
    dry_run: bool = False,
    search_only: bool = False,
    show_changes: bool = True,
    ignore_if_missing: bool = False,
    backslash_literal: bool = False,
) -> Any:
    """Replaces what a regular expression matches; returns the diff, "" when there is nothing to do.

    search_only
        only says whether anything matches
    show_changes
        False: returns whether there was something to do
    """
    place = ctx.host.path(path)
    if ignore_if_missing and not place.is_file():
        return "" if show_changes and not search_only else False
    old = _read(ctx, path)
    compiled = _compiled(pattern, flags)
    if search_only:
        return compiled.search(old) is not None
    replacement = str(repl).encode()
    try:
        new, matched = compiled.subn((lambda _: replacement) if backslash_literal else replacement, old, count=count)
    except (re.error, IndexError) as error:
        raise InvocationError(f"'{repl}' is no replacement for '{pattern}': {error}") from error
    if not matched and (append_if_not_found or prepend_if_not_found):
        content = not_found_content if not_found_content is not None else repl
        new = _with_line(old, str(content).encode(), at_end=append_if_not_found)
    if new != old and not dry_run:
        if backup and isinstance(backup, str):
            managed_file.keep_beside(ctx.host, place, backup)
        managed_file.replace(ctx.host, place, new, Attributes())
    if not show_changes:
        return new != old
    return managed_file.unified(old, new) if new != old else ""


def get_diff(ctx: Context, file1: str, file2: str) -> str:
    """The difference of two files of the host."""
    return managed_file.unified(_read(ctx, file1), _read(ctx, file2))


def basename(ctx: Context, path: str) -> str:
    """What stands behind the last slash."""
    return os.path.basename(path)  # noqa: PTH119 - a trailing slash counts, unlike in Path.name


def dirname(ctx: Context, path: str) -> str:
    """What stands before the last slash."""
    return os.path.dirname(path)  # noqa: PTH120 - as above


def join(ctx: Context, *args: str) -> str:
    """Path components put together."""
    return os.path.join(*args)


def _read(ctx: Context, path: str) -> bytes:
    data = managed_file.read(ctx.host.path(path), path)
    if data is None:
        raise CommandError(f"File not found: {path}")
    return data


def _named(ctx: Context, place: Path) -> str:
    """The host's name of one of our paths."""
    return "/" + "/".join(place.relative_to(ctx.host.root).parts)


def _copy_tree(ctx: Context, source: Path, dst: str) -> None:
    """Each target is looked up by itself: a link in what is there already must not lead the copy out of the host."""
    for place, names, files in os.walk(source):
        here = f"{dst}/{Path(place).relative_to(source).as_posix()}"
        directory = ctx.host.path(here)
        directory.mkdir(parents=True, exist_ok=True)
        shutil.copystat(place, directory)
        for name in (*files, *(name for name in names if Path(place, name).is_symlink())):
            target = ctx.host.path(f"{here}/{name}", follow=False)
            if target.is_symlink():
                target.unlink()
            shutil.copy2(Path(place, name), target, follow_symlinks=False)


def _lstat(place: Path, path: str) -> os.stat_result:
    try:
        return place.lstat()
    except FileNotFoundError as error:
        raise CommandError(f"Path not found: {path}") from error


def _lines(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    given = kwargs.get("args", args)
    flat = given if isinstance(given, list | tuple) else [given]
    return [str(line) for part in flat for line in (part if isinstance(part, list) else [part])]


def _with_line(data: bytes, content: bytes, *, at_end: bool) -> bytes:
    """The bytes with a line, or lines, at one end, unless they have them."""
    if re.search(rb"^" + re.escape(content) + rb"$", data, re.MULTILINE):
        return data
    if at_end:
        return data + (b"" if not data or data.endswith(b"\n") else b"\n") + content + b"\n"
    return content + b"\n" + data


def _compiled(pattern: str, flags: Any) -> re.Pattern[bytes]:
    """A pattern for bytes, as in Salt: a file need not be text."""
    try:
        return re.compile(str(pattern).encode(), _flags(flags))
    except re.error as error:
        raise InvocationError(f"'{pattern}' is no regular expression: {error}") from error


def _flags(flags: Any) -> int:
    """Flags by number (8, Salt's default, is MULTILINE) or by names."""
    if isinstance(flags, int):
        return flags & ~re.UNICODE
    total = 0
    for name in flags if isinstance(flags, list) else [flags]:
        flag = getattr(re, str(name).upper(), None)
        if not isinstance(flag, re.RegexFlag):
            raise CommandError(f"Invalid re flag given: {name}")
        total |= int(flag)
    return total & ~re.UNICODE
