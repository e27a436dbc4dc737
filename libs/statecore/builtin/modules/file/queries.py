"""What is there: kinds, owners, modes, names, digests of files of the managed host."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import stat as stat_bits
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from statecore.builtin.modules.file.paths import host_name
from statecore.host import rooted_path
from statecore.host.content import digests, managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError


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
    return rooted_path.access(ctx.host.path(path), modes[mode])


def is_link(ctx: Context, path: str, nostat: bool = False) -> bool:
    """Whether a name is a link."""
    return ctx.host.path(path, follow=False).is_symlink()


def readlink(ctx: Context, path: str, canonicalize: bool = False) -> str:
    """Where a link points."""
    place = ctx.host.path(path, follow=False)
    if not place.is_symlink():
        raise InvocationError(f"A valid link was not specified: {path}")
    if canonicalize:
        return host_name(ctx, ctx.host.path(path))
    return str(place.readlink())


def readdir(ctx: Context, path: str) -> list[str]:
    """Names in a directory, with ``.`` and ``..``."""
    place = ctx.host.path(path)
    if not place.is_dir():
        raise InvocationError("A valid directory was not specified.")
    return [".", "..", *sorted(entry.name for entry in place.iterdir())]


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
        "target": host_name(ctx, place),
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


def get_hash(ctx: Context, path: str, form: str = "sha256", chunk_size: int = 65536) -> str:
    """Digest of a file, hexadecimal."""
    place = ctx.host.path(path)
    _lstat(place, path)
    return digests.digest_of(place, form, chunk_size)


def get_sum(ctx: Context, path: str, form: str = "sha256") -> str:
    """Digest of a file, or "File not found"."""
    return get_hash(ctx, path, form) if ctx.host.path(path).is_file() else "File not found"


def check_hash(ctx: Context, path: str, file_hash: str) -> bool:
    """Whether a file has a digest, written as ``algorithm=hexadecimal`` or by its length alone."""
    algorithm, digest = digests.parse_digest(file_hash)
    return get_hash(ctx, path, algorithm) == digest


def is_hardlink(ctx: Context, path: str) -> bool:
    """Whether a file has more than one name."""
    return int(lstat(ctx, path).get("st_nlink", 0)) > 1


def diskusage(ctx: Context, path: str) -> int:
    """Bytes in a file, or in all files below a directory; a file of several names counts once."""
    place = ctx.host.path(path)
    if place.is_file():
        return place.stat().st_size
    sizes: dict[tuple[int, int], int] = {}
    for here, _names, files in rooted_path.walk(place):
        for each in files:
            found = (here / each).lstat()
            sizes[(found.st_dev, found.st_ino)] = found.st_size
    return sum(sizes.values())


def statvfs(ctx: Context, path: str) -> dict[str, int]:
    """The numbers of the file system that a path is on."""
    place = ctx.host.path(path)
    if not place.exists():
        raise CommandError(f"Could not statvfs '{path}'")
    found = rooted_path.file_system(place)
    names = (
        "f_bavail",
        "f_bfree",
        "f_blocks",
        "f_bsize",
        "f_favail",
        "f_ffree",
        "f_files",
        "f_flag",
        "f_frsize",
        "f_namemax",
    )
    return {name: int(getattr(found, name)) for name in names}


def open_files(ctx: Context, by_pid: bool = False) -> dict[Any, list[Any]]:
    """Files that processes have open: the processes by file, or with ``by_pid`` the files by process."""
    files: dict[str, set[int]] = {}
    pids: dict[int, set[str]] = {}
    for process in ctx.host.path("/proc").iterdir():
        if process.name.isdecimal():
            own = pids.setdefault(int(process.name), set())
            for name in _opened(process):
                own.add(name)
                files.setdefault(name, set()).add(int(process.name))
    if by_pid:
        return {pid: sorted(names) for pid, names in pids.items()}
    return {name: sorted(numbers) for name, numbers in files.items()}


def _opened(process: Path) -> Iterator[str]:
    """What a process has open that has a name; nothing of one that is gone meanwhile, or is somebody else's."""
    try:
        links = [process / "exe", *(process / "fd").iterdir()]
    except OSError:
        return
    for link in links:
        with contextlib.suppress(OSError):
            name = str(link.readlink())
            if name.startswith("/") and not name.endswith(" (deleted)"):
                yield name


def normpath(ctx: Context, path: str) -> str:
    """A path without what it does not need."""
    return os.path.normpath(path)


def pardir(ctx: Context) -> str:
    """The name of the directory above."""
    return os.path.pardir


def basename(ctx: Context, path: str) -> str:
    """What stands behind the last slash."""
    return os.path.basename(path)  # noqa: PTH119 - a trailing slash counts, unlike in Path.name


def dirname(ctx: Context, path: str) -> str:
    """What stands before the last slash."""
    return os.path.dirname(path)  # noqa: PTH120 - as above


def join(ctx: Context, *args: str) -> str:
    """Path components put together."""
    return os.path.join(*args)


def _lstat(place: Path, path: str) -> os.stat_result:
    try:
        return place.lstat()
    except FileNotFoundError as error:
        raise CommandError(f"Path not found: {path}") from error
