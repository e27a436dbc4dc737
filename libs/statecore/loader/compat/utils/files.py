"""``salt.utils.files``: files of this machine. ``__salt__["file.*"]`` works on a managed host's files."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import tempfile
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Literal, SupportsIndex, overload

from statecore.host.content import atomic_file
from statecore.loader.compat.utils import stringutils
from statecore.model.errors import CommandError

HASHES = {"sha512": 128, "sha384": 96, "sha256": 64, "sha224": 56, "sha1": 40, "md5": 32}
HASHES_REVMAP = {length: name for name, length in HASHES.items()}
LOCAL_PROTOS = ("", "file")
REMOTE_PROTOS = ("http", "https", "ftp", "swift", "s3")
VALID_PROTOS = ("salt", "file", *REMOTE_PROTOS)
TEMPFILE_PREFIX = "__salt.tmp."

_ARCHIVES = {
    "tar": ("tar", "tar.gz", "tgz", "tar.bz2", "tbz2", "tbz", "tar.xz", "txz", "tar.lzma", "tlz"),
    "zip": ("zip",),
    "rar": ("rar",),
}
_SIZES = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_BOMS = (
    ("UTF-32-BE", b"\0\0\xfe\xff"),
    ("UTF-32-LE", b"\xff\xfe\0\0"),
    ("UTF-16-BE", b"\xfe\xff"),
    ("UTF-16-LE", b"\xff\xfe"),
    ("UTF-8", b"\xef\xbb\xbf"),
    ("UTF-7", b"+/v"),
)


def fopen(*args: Any, **kwargs: Any) -> IO[Any]:
    """Open a file. Text is UTF-8 with unchanged line ends unless the arguments say otherwise. Standard streams are refused."""
    if args and args[0] in (0, 1, 2):
        raise TypeError(f"{args[0]} is not a permitted file descriptor")
    given = list(args)
    mode = kwargs.pop("mode", None) or (given[1] if len(given) > 1 else "r")
    del given[1:2]
    if kwargs.pop("binary", None) and "b" not in mode:
        mode = mode.replace("t", "") + "b"
    if "b" not in mode:
        kwargs.setdefault("encoding", "utf-8")
        kwargs["newline"] = kwargs.get("newline") or ""
    elif kwargs.get("buffering") == 1:
        kwargs["buffering"] = -1
    path, *rest = given
    opened: IO[Any] = open(path, mode, *rest, **kwargs)  # noqa: SIM115 - the caller closes it
    return opened


@contextlib.contextmanager
def flopen(*args: object, **kwargs: object) -> Iterator[IO[Any]]:
    """Open a file with ``fopen`` and lock it: shared for reading, otherwise exclusive."""
    mode = str(kwargs.get("mode") or (args[1] if len(args) > 1 else "r"))
    with fopen(*args, **kwargs) as opened:
        fcntl.flock(opened.fileno(), fcntl.LOCK_EX if set(mode) & set("wa") else fcntl.LOCK_SH)
        try:
            yield opened
        finally:
            fcntl.flock(opened.fileno(), fcntl.LOCK_UN)


@contextlib.contextmanager
def fpopen(
    *args: object, uid: int | None = -1, gid: int | None = -1, mode: int | None = -1, **kwargs: object
) -> Iterator[IO[Any]]:
    """Open a file with ``fopen`` and set its ``uid``, ``gid`` and ``mode``."""
    with fopen(*args, **kwargs) as opened:
        before = os.fstat(opened.fileno())
        os.chown(
            opened.fileno(),
            before.st_uid if uid is None or uid == -1 else uid,
            before.st_gid if gid is None or gid == -1 else gid,
        )
        if mode is not None and mode != -1:
            os.chmod(opened.fileno(), mode)
        yield opened


@contextlib.contextmanager
def set_umask(mask: int | None) -> Iterator[None]:
    """Set the process's umask while the block runs; None leaves it unchanged."""
    if mask is None:
        yield
        return
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def get_umask() -> int:
    """Return the process's umask."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


@overload
def mkstemp(*args: object, close_fd: Literal[True] = True, **kwargs: object) -> str: ...
@overload
def mkstemp(*args: object, close_fd: bool, **kwargs: object) -> str | tuple[int, str]: ...
def mkstemp(*args: object, close_fd: bool = True, **kwargs: object) -> str | tuple[int, str]:
    """Create a temporary file and return its path; with ``close_fd=False`` return (file descriptor, path)."""
    kwargs.setdefault("prefix", TEMPFILE_PREFIX)
    make: Callable[..., tuple[int, str]] = tempfile.mkstemp
    descriptor, path = make(*args, **kwargs)
    if not close_fd:
        return descriptor, path
    os.close(descriptor)
    return path


def copyfile(source: str, dest: str, backup_mode: str = "", cachedir: str = "") -> None:
    """Replace a file atomically by a copy of another, keeping the replaced file's owner and mode. Raise OSError."""
    target = Path(dest)
    if not Path(source).is_file():
        raise OSError(f"[Errno 2] No such file or directory: {source}")
    if not target.parent.is_dir():
        raise OSError(f"[Errno 2] No such file or directory: {dest}")
    if backup_mode in ("minion", "both") and cachedir and target.exists():
        kept = Path(cachedir, "file_backup", str(target.absolute()).lstrip("/"))
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(target, kept)
    with atomic_file.replacement(target) as new:
        new.touch(0o600, exist_ok=False)
        shutil.copyfile(source, new)
        if target.exists():
            state = target.stat()
            os.chown(new, state.st_uid, state.st_gid)
            os.chmod(new, state.st_mode)


def recursive_copy(source: str, dest: str) -> None:
    """Copy all files below a directory into another directory."""
    shutil.copytree(source, dest, copy_function=shutil.copyfile, dirs_exist_ok=True)


def rename(src: str, dst: str) -> None:
    """Rename a file, replacing the target."""
    os.replace(src, dst)


def process_read_exception(exc: OSError, path: str, ignore: int | Iterable[int] | None = None) -> None:
    """Raise CommandError for an error while reading a file, unless its errno is in ``ignore``."""
    ignored = (ignore,) if isinstance(ignore, int) else tuple(ignore or ())
    if exc.errno in ignored:
        return
    if exc.errno == errno.ENOENT:
        raise CommandError(f"{path} does not exist")
    if exc.errno == errno.EACCES:
        raise CommandError(f"Permission denied reading from {path}")
    raise CommandError(f"Error {exc.errno} encountered reading from {path}: {exc.strerror}")


def safe_rm(tgt: str) -> None:
    """Remove a file; ignore errors."""
    with contextlib.suppress(OSError):
        os.remove(tgt)


def remove(path: str) -> None:
    """Remove a file; do nothing if it does not exist."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def rm_rf(path: str) -> None:
    """Remove a file, a link, or a directory with its contents."""
    if os.path.islink(path) or not os.path.isdir(path):
        os.remove(path)
    else:
        shutil.rmtree(path)


def safe_walk(
    top: str,
    topdown: bool = True,
    onerror: Callable[[OSError], object] | None = None,
    followlinks: bool = True,
    _seen: set[tuple[int, int]] | None = None,
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk a tree as ``os.walk`` does, following links but entering no directory twice."""
    seen = set() if _seen is None else _seen
    try:
        names = os.listdir(top)
    except OSError as error:
        if onerror is not None:
            onerror(error)
        return
    if followlinks:
        state = os.stat(top)
        if (state.st_dev, state.st_ino) in seen:
            return
        seen.add((state.st_dev, state.st_ino))
    inner = [name for name in names if os.path.isdir(os.path.join(top, name))]
    files = [name for name in names if name not in set(inner)]
    if topdown:
        yield top, inner, files
    for name in inner:
        below = os.path.join(top, name)
        if followlinks or not os.path.islink(below):
            yield from safe_walk(below, topdown, onerror, followlinks, seen)
    if not topdown:
        yield top, inner, files


def list_files(directory: str) -> list[str]:
    """Return the directory and all paths below it."""
    found = {directory}
    for folder, inner, files in safe_walk(directory):
        found.update(os.path.join(folder, name) for name in (*inner, *files))
    return list(found)


def is_empty(filename: str) -> bool:
    """Return whether the file exists and is empty."""
    try:
        return os.stat(filename).st_size == 0
    except OSError:
        return False


def is_text(fp_: str | os.PathLike[str] | IO[str] | IO[bytes], blocksize: int = 512) -> bool:
    """Return whether a file (path or open file) starts with text."""
    if not isinstance(fp_, str | os.PathLike):
        return not stringutils.is_binary(fp_.read(blocksize))
    try:
        with Path(fp_).open("rb") as file:
            return not stringutils.is_binary(file.read(blocksize))
    except OSError:
        return False


def is_binary(path: str) -> bool:
    """Return whether the file exists and does not start with text."""
    return os.path.isfile(path) and not is_text(path, 2048)


def is_fcntl_available(check_sunos: bool = False) -> bool:
    """Return True: Linux has fcntl."""
    return True


def guess_archive_type(name: str) -> str | None:
    """Return "tar", "zip" or "rar" by the file name's suffix; None for other names."""
    lower = name.lower()
    return next((kind for kind, ends in _ARCHIVES.items() if lower.endswith(tuple(f".{end}" for end in ends))), None)


def safe_filename_leaf(file_basename: str | bytes) -> str:
    """Return a file name with characters that some file systems forbid escaped as in URLs."""
    text = file_basename if isinstance(file_basename, str) else str(file_basename, "utf8")
    return re.sub(r'[\\:/*?"<>|]', lambda found: urllib.parse.quote(found[0], safe=""), text)


def safe_filepath(file_path_name: str, dir_sep: str | None = None) -> str:
    """Apply ``safe_filename_leaf`` to each part of a path."""
    separator = dir_sep or os.sep
    return separator.join(safe_filename_leaf(part) for part in file_path_name.split(separator))


def st_mode_to_octal(mode: object) -> str:
    """Return the last four octal digits of a mode as text; "" for an invalid mode."""
    return oct(mode)[-4:] if isinstance(mode, SupportsIndex) else ""


def normalize_mode(mode: object) -> str | None:
    """Return a mode as four digits of text."""
    if mode is None:
        return None
    return str(mode).replace("0o", "0").strip('"').strip("'").lstrip("0").zfill(4)


def human_size_to_bytes(human_size: object) -> int:
    """Return the number of bytes of ``10``, ``10K`` or ``10G``. Raise ValueError."""
    match = re.match(r"^(\d+)([KMGTP])?$", str(human_size))
    if match is None:
        raise ValueError("Size must be all digits, with an optional unit type (K, M, G, T, or P)")
    return int(match[1]) * int(1024 ** _SIZES[match[2] or ""])


def get_encoding(path: str) -> str:
    """Guess a file's encoding from its first bytes. Raise CommandError."""
    if not os.path.isfile(path):
        raise CommandError("Not a file")
    with Path(path).open("rb") as file:
        data = file.read(2048)
    if (found := next((name for name, mark in _BOMS if data.startswith(mark)), None)) is not None:
        return found
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        raise CommandError("Could not detect file encoding") from None
    return "UTF-8"
