"""``salt.utils.files`` for users' modules: files of this machine. On a managed host elsewhere, ``__salt__["file.*"]``
is needed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Literal, SupportsIndex, overload

from statecore.host.content import atomic_file
from statecore.loader.compat.exceptions import FileLockError
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
    """Open a file as Python's ``open`` does and return it, with UTF-8 for text and unchanged line ends by default.

    Raise TypeError for the file descriptors 0, 1 and 2.
    """
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
    """Context manager that opens a file with ``fopen`` and locks it with flock: shared for reading, otherwise
    exclusive.
    """
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
    """Context manager that opens a file with ``fopen`` and sets the file's owner, group and permission bits.

    None or -1 leaves the owner, group or permission bits unchanged.
    """
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
    """Context manager that sets the process's umask while its block runs; None leaves the umask unchanged."""
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
    """Create a temporary file and return its path; with ``close_fd=False`` leave it open and return (descriptor, path)."""
    kwargs.setdefault("prefix", TEMPFILE_PREFIX)
    make: Callable[..., tuple[int, str]] = tempfile.mkstemp
    descriptor, path = make(*args, **kwargs)
    if not close_fd:
        return descriptor, path
    os.close(descriptor)
    return path


def copyfile(source: str, dest: str, backup_mode: str = "", cachedir: str = "") -> None:
    """Replace the file ``dest`` atomically by a copy of the file ``source``. The owner and permission bits of ``dest``
    stay.

    With ``backup_mode`` "minion" or "both", the old file is copied to ``file_backup`` in ``cachedir`` first. Raise
    OSError if ``source`` or the directory of ``dest`` does not exist.
    """
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
    """Copy all files and directories below ``source`` into the directory ``dest``."""
    shutil.copytree(source, dest, copy_function=shutil.copyfile, dirs_exist_ok=True)


def rename(src: str, dst: str) -> None:
    """Rename a file. An existing file of the new name is replaced."""
    os.replace(src, dst)


def process_read_exception(exc: OSError, path: str, ignore: int | Iterable[int] | None = None) -> None:
    """Raise CommandError with a message about an error while reading a file, unless the error's errno is in ``ignore``."""
    ignored = (ignore,) if isinstance(ignore, int) else tuple(ignore or ())
    if exc.errno in ignored:
        return
    if exc.errno == errno.ENOENT:
        raise CommandError(f"{path} does not exist")
    if exc.errno == errno.EACCES:
        raise CommandError(f"Permission denied reading from {path}")
    raise CommandError(f"Error {exc.errno} encountered reading from {path}: {exc.strerror}")


def safe_rm(tgt: str) -> None:
    """Remove a file. Errors are ignored."""
    with contextlib.suppress(OSError):
        os.remove(tgt)


def remove(path: str) -> None:
    """Remove a file if it exists. Raise OSError for other errors."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def rm_rf(path: str) -> None:
    """Remove a file, a symbolic link, or a directory with everything in it. Raise OSError if it cannot be removed."""
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
    """Yield (directory, directory names, file names) below ``top`` as ``os.walk`` does.

    Symbolic links are followed, and no directory is visited twice. ``onerror`` is called with each OSError.
    """
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
    """Return the paths of the directory itself and of everything below it, in no order."""
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
    """Return whether a file (path or open file) is text, judged by its first ``blocksize`` bytes. False if it cannot be
    read.
    """
    if not isinstance(fp_, str | os.PathLike):
        return not stringutils.is_binary(fp_.read(blocksize))
    try:
        with Path(fp_).open("rb") as file:
            return not stringutils.is_binary(file.read(blocksize))
    except OSError:
        return False


def is_binary(path: str) -> bool:
    """Return whether the file exists and its first 2048 bytes are not text."""
    return os.path.isfile(path) and not is_text(path, 2048)


def is_fcntl_available(check_sunos: bool = False) -> bool:
    """Return True: Linux has Python's module fcntl."""
    return True


def guess_archive_type(name: str) -> str | None:
    """Return "tar", "zip" or "rar" according to the suffix of the file name; None for other names."""
    lower = name.lower()
    return next((kind for kind, ends in _ARCHIVES.items() if lower.endswith(tuple(f".{end}" for end in ends))), None)


def safe_filename_leaf(file_basename: str | bytes) -> str:
    """Return a file name in which characters that some file systems forbid are escaped as in URLs (``%3A``)."""
    text = file_basename if isinstance(file_basename, str) else str(file_basename, "utf8")
    return re.sub(r'[\\:/*?"<>|]', lambda found: urllib.parse.quote(found[0], safe=""), text)


def safe_filepath(file_path_name: str, dir_sep: str | None = None) -> str:
    """Return a path in which characters that some file systems forbid are escaped as in URLs, in each part of the path."""
    separator = dir_sep or os.sep
    return separator.join(safe_filename_leaf(part) for part in file_path_name.split(separator))


def st_mode_to_octal(mode: object) -> str:
    """Return the last four octal digits of a file's mode as text, such as "0644"; "" for an invalid mode."""
    return oct(mode)[-4:] if isinstance(mode, SupportsIndex) else ""


def normalize_mode(mode: object) -> str | None:
    """Return a file's mode (``644``, ``"0o644"``) as text of four digits, such as "0644"; None for None."""
    if mode is None:
        return None
    return str(mode).replace("0o", "0").strip('"').strip("'").lstrip("0").zfill(4)


def human_size_to_bytes(human_size: object) -> int:
    """Return the number of bytes of a size such as ``10``, ``10K`` or ``10G`` (powers of 1024). Raise ValueError for
    other texts.
    """
    match = re.match(r"^(\d+)([KMGTP])?$", str(human_size))
    if match is None:
        raise ValueError("Size must be all digits, with an optional unit type (K, M, G, T, or P)")
    return int(match[1]) * int(1024 ** _SIZES[match[2] or ""])


def get_encoding(path: str) -> str:
    """Return the encoding of a file, judged by its first 2048 bytes: by a byte order mark, else "UTF-8".

    Raise CommandError if the bytes are not UTF-8, or if the path is not a file.
    """
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


@contextlib.contextmanager
def wait_lock(
    path: str, lock_fn: str | None = None, timeout: float = 5, sleep: float = 0.1, time_start: float | None = None
) -> Iterator[None]:
    """Hold the lock of a file while the block runs: create ``lock_fn`` (default ``<path>.w``), and delete it afterwards.

    If another process holds the lock, try again each ``sleep`` seconds. Raise FileLockError after ``timeout`` seconds
    since ``time_start`` (default now), or if the lock file cannot be created.
    """
    lock = lock_fn or f"{path}.w"
    begun = time.time() if time_start is None else time_start
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            break
        except FileExistsError:
            if not os.path.isfile(lock):
                raise FileLockError(f"lock_fn {lock} exists and is not a file") from None
        except OSError as error:
            raise FileLockError(
                f"Error {error.errno} encountered obtaining file lock {lock}: {error.strerror}"
            ) from error
        if time.time() - begun >= timeout:
            raise FileLockError(f"Timeout of {timeout} seconds exceeded waiting for lock_fn {lock} to be released")
        time.sleep(sleep)
    try:
        yield
    finally:
        os.remove(lock)
