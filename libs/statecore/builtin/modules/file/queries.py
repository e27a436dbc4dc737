"""Read-only functions of the ``file`` module: type, owner, mode, times and digest of files on the managed host."""

from __future__ import annotations

import contextlib
import os
import stat as stat_bits
from collections.abc import Iterator
from pathlib import Path

from statecore.builtin.modules.file.paths import host_name
from statecore.host import globs, rooted_path
from statecore.host.content import digests, managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError


def file_exists(ctx: Context, path: str) -> bool:
    """Return whether the path is a regular file. Symbolic links are followed. False for a relative path."""
    return str(path).startswith("/") and ctx.host.path(path).is_file()


def directory_exists(ctx: Context, path: str) -> bool:
    """Return whether the path is a directory. Symbolic links are followed. False for a relative path."""
    return str(path).startswith("/") and ctx.host.path(path).is_dir()


def path_exists_glob(ctx: Context, path: str) -> bool:
    """Return whether at least one path matches a glob. Each part of the path may hold wildcards."""
    return bool(globs.matching_paths(ctx.host, path))


def access(ctx: Context, path: str, mode: str) -> bool:
    """Return whether the minion's process has access to a file. ``mode`` is ``f`` (the file exists), ``r``, ``w`` or
    ``x``.
    """
    modes = {"f": os.F_OK, "r": os.R_OK, "w": os.W_OK, "x": os.X_OK}
    if mode not in modes:
        raise InvocationError(f"mode must be one of {', '.join(modes)}, not {mode!r}")
    return rooted_path.access(ctx.host.path(path), modes[mode])


def is_link(ctx: Context, path: str, nostat: bool = False) -> bool:
    """Return whether the path is a symbolic link. ``nostat`` is accepted and has no effect."""
    return str(path).startswith("/") and ctx.host.path(path, follow=False).is_symlink()


def readlink(ctx: Context, path: str, canonicalize: bool = False) -> str:
    """Return the target of a symbolic link. With ``canonicalize``, resolve all links and return the final path. Raise
    InvocationError if the path is not a link.
    """
    real_path = ctx.host.path(path, follow=False)
    if not real_path.is_symlink():
        raise InvocationError(f"A valid link was not specified: {path}")
    if canonicalize:
        return host_name(ctx, ctx.host.path(path))
    return str(real_path.readlink())


def readdir(ctx: Context, path: str) -> list[str]:
    """Return the names in a directory, sorted, after ``.`` and ``..``. Raise InvocationError if the path is not a
    directory.
    """
    real_path = ctx.host.path(path)
    if not real_path.is_dir():
        raise InvocationError("A valid directory was not specified.")
    return [".", "..", *sorted(entry.name for entry in real_path.iterdir())]


def stats(ctx: Context, path: str, hash_type: str | None = None, follow_symlinks: bool = True) -> dict[str, object]:
    """Return a map with owner, group, mode, type, size, inode and times (seconds since 1970) of a file.

    hash_type
        name of a digest algorithm: the map of a regular file then also has ``sum``, the hexadecimal digest
    follow_symlinks
        False: describe the symbolic link itself

    Raise CommandError if the path does not exist.
    """
    real_path = ctx.host.path(path, follow=follow_symlinks)
    found = _lstat(real_path, path)
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
        "target": host_name(ctx, real_path),
    }
    if hash_type and answer["type"] == "file":
        answer["sum"] = get_hash(ctx, path, hash_type)
    return answer


def lstat(ctx: Context, path: str) -> dict[str, int | float]:
    """Return the ``st_*`` fields of lstat(2) for a file as a map. A symbolic link is not followed. Return {} if the
    path does not exist.
    """
    try:
        found = ctx.host.path(path, follow=False).lstat()
    except OSError:
        return {}
    names = ("st_atime", "st_ctime", "st_gid", "st_mode", "st_mtime", "st_nlink", "st_size", "st_uid")
    return {name: getattr(found, name) for name in names}


def get_mode(ctx: Context, path: str, follow_symlinks: bool = True) -> str:
    """Return the mode of a file as octal digits, such as "0644". Raise CommandError if the path does not exist."""
    return managed_file.shown_mode(stat_bits.S_IMODE(_lstat(ctx.host.path(path, follow=follow_symlinks), path).st_mode))


def get_user(ctx: Context, path: str, follow_symlinks: bool = True) -> str:
    """Return the name of the user who owns a file. Raise CommandError if the path does not exist."""
    return ctx.host.user_name(_lstat(ctx.host.path(path, follow=follow_symlinks), path).st_uid)


def get_group(ctx: Context, path: str, follow_symlinks: bool = True) -> str:
    """Return the name of the group that owns a file. Raise CommandError if the path does not exist."""
    return ctx.host.group_name(_lstat(ctx.host.path(path, follow=follow_symlinks), path).st_gid)


def get_uid(ctx: Context, path: str, follow_symlinks: bool = True) -> int:
    """Return the uid (a number) of the user who owns a file. Raise CommandError if the path does not exist."""
    return _lstat(ctx.host.path(path, follow=follow_symlinks), path).st_uid


def get_gid(ctx: Context, path: str, follow_symlinks: bool = True) -> int:
    """Return the gid (a number) of the group that owns a file. Raise CommandError if the path does not exist."""
    return _lstat(ctx.host.path(path, follow=follow_symlinks), path).st_gid


def get_hash(ctx: Context, path: str, form: str = "sha256", chunk_size: int = 65536) -> str:
    """Return the digest of a file as hexadecimal text. ``form`` is the algorithm, ``chunk_size`` the bytes per read.
    Raise CommandError if the path does not exist.
    """
    real_path = ctx.host.path(path)
    _lstat(real_path, path)
    return digests.digest_of(real_path, form, chunk_size)


def get_sum(ctx: Context, path: str, form: str = "sha256") -> str:
    """Return the digest of a file as hexadecimal text, or "File not found"."""
    return get_hash(ctx, path, form) if ctx.host.path(path).is_file() else "File not found"


def check_hash(ctx: Context, path: str, file_hash: str) -> bool:
    """Return whether a file has the digest ``file_hash``. Raise CommandError if the path does not exist.

    file_hash
        ``algorithm=hexadecimal``, or hexadecimal digits alone: their number then selects the algorithm
    """
    algorithm, digest = digests.parse_digest(file_hash)
    return get_hash(ctx, path, algorithm) == digest


def is_hardlink(ctx: Context, path: str) -> bool:
    """Return whether a file has more than one name (hard links). Return False if the path does not exist."""
    return int(lstat(ctx, path).get("st_nlink", 0)) > 1


def diskusage(ctx: Context, path: str) -> int:
    """Return the size in bytes of a file, or of all files below a directory. A file with several hard links counts
    once.
    """
    real_path = ctx.host.path(path)
    if real_path.is_file():
        return real_path.stat().st_size
    sizes: dict[tuple[int, int], int] = {}
    for here, _names, files in rooted_path.walk(real_path):
        for each in files:
            found = (here / each).lstat()
            sizes[(found.st_dev, found.st_ino)] = found.st_size
    return sum(sizes.values())


def statvfs(ctx: Context, path: str) -> dict[str, int]:
    """Return the ``f_*`` fields of statvfs(3) for the file system that holds the path. Raise CommandError if the path
    does not exist.
    """
    real_path = ctx.host.path(path)
    if not real_path.exists():
        raise CommandError(f"Could not statvfs '{path}'")
    found = rooted_path.file_system(real_path)
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


def open_files(ctx: Context, by_pid: bool = False) -> dict[str, list[int]] | dict[int, list[str]]:
    """Return the files that processes of the host have open: a map of file to process ids, or with ``by_pid`` of
    process id to files.
    """
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
    """Yield the paths of the files that a process has open, and the path of its program. Yield nothing if the process
    has ended or belongs to another user.
    """
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
    """Return a path without empty, ``.`` and ``..`` components."""
    return os.path.normpath(path)


def pardir(ctx: Context) -> str:
    """Return the name of the parent directory: ``..``."""
    return os.path.pardir


def basename(ctx: Context, path: str) -> str:
    """Return the part of a path after the last slash."""
    return os.path.basename(path)  # noqa: PTH119 - a trailing slash counts, unlike in Path.name


def dirname(ctx: Context, path: str) -> str:
    """Return the part of a path before the last slash."""
    return os.path.dirname(path)  # noqa: PTH120 - as above


def join(ctx: Context, *args: str) -> str:
    """Return path components joined with slashes. An absolute component discards the components before it."""
    return os.path.join(*args)


def _lstat(real_path: Path, path: str) -> os.stat_result:
    try:
        return real_path.lstat()
    except FileNotFoundError as error:
        raise CommandError(f"Path not found: {path}") from error
