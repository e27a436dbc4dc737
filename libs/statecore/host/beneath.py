"""Opens files beneath a directory, so that no link leads an open out of the directory, even when links change during
the open.

The caller opens the directory once (``directory``); the path of the directory itself may contain links. Each further path
is relative to that descriptor, and is opened by one call of openat2(2), in which the kernel checks every component.
``Links`` says which links of the relative path are followed.

A kernel without openat2 (before Linux 5.6), and a container whose seccomp filter refuses the call, walk the path in this
process: one openat(2) with O_NOFOLLOW for each component. The text of a link is read and walked in turn, so the kernel
never follows a link. Both ways raise the same errors.

Check the descriptor, never the path: use os.fstat, os.listdir, os.scandir and os.read on what is returned here.
``rooted_path`` has whole paths on top of this module.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import functools
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from statecore.model.lazy import lazy_module

if TYPE_CHECKING:
    import ctypes
else:
    # The import takes milliseconds, and a minion of a master opens no tree.
    ctypes = lazy_module("ctypes")

#: Number of symbolic links that Linux follows in one path.
MAX_LINKS = 40

#: Flags of a directory that is only a starting point.
DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC

#: Flags for reading a file: the open of a FIFO, a device or a terminal returns at once and has no effect.
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

#: Errors of a file that was found, and then was removed or replaced by a link, a directory or a FIFO.
REPLACED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.EPERM, errno.ENXIO})

#: The working directory in place of a descriptor (AT_FDCWD).
_HERE = -100

_STEP = DIRECTORY | os.O_NOFOLLOW


class Links(enum.Enum):
    """Which symbolic links of a relative path are followed."""

    #: None. A link at any component raises OSError with ELOOP.
    REFUSED = enum.auto()
    #: Links that lead to a place beneath the directory. Others raise LeadsOutside.
    BENEATH = enum.auto()
    #: All, as after a chroot into the directory: an absolute link, and ``..`` at the top, lead to the directory.
    IN_ROOT = enum.auto()
    #: All, to any target. Only magic links of /proc (``/proc/self/root``, ``/proc/self/fd/3``) raise OSError with ELOOP,
    #: on a kernel with openat2.
    ANYWHERE = enum.auto()


class LeadsOutside(PermissionError):
    """Error: a path, or a link in it, leads out of the directory."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EPERM, "the path leads outside of the directory", path)


class NoRegularFile(OSError):
    """Error: the path is a directory, a FIFO, a socket or a device."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EINVAL, "not a regular file", path)


@contextlib.contextmanager
def directory(path: str | Path, *, within: int | None = None, links: Links = Links.REFUSED) -> Iterator[int]:
    """Yield the descriptor of a directory, for the other functions. It is closed after the block.

    Without ``within``, the path is a configured one: all its links are followed. With ``within``, the path is opened
    beneath that descriptor. Raises OSError if it is not a directory.
    """
    if within is None:
        found = os.open(path, DIRECTORY)
    else:
        found = open_beneath(within, str(path), DIRECTORY, links=links)
    try:
        yield found
    finally:
        os.close(found)


def open_beneath(
    top: int, path: str, flags: int, mode: int = 0o600, *, links: Links = Links.REFUSED, known_as: Sequence[str] = ()
) -> int:
    """Open a path beneath the directory ``top`` and return a descriptor, which is not inherited by programs.

    flags, mode
        as for os.open. With O_NOFOLLOW, a link as last component is not followed.
    known_as
        absolute paths of ``top``. With Links.BENEATH, an absolute link to one of them or to a path below is followed.

    An empty path is ``top`` itself. Raises LeadsOutside; OSError with ELOOP for a link that is refused and for links in a
    loop; ValueError for a null byte; OSError as os.open.
    """
    text = _plain(path, links)
    flags |= os.O_CLOEXEC
    try:
        return _openat2(top, text, flags, mode, links)
    except OSError as error:
        outside = isinstance(error, LeadsOutside)
        if error.errno not in _WALKED or (outside and not known_as):
            raise
    return _walk(top, text, flags, mode, links, known_as)


def open_followed(path: str, flags: int) -> int:
    """Open a path whose links are all followed, to any target, and return a descriptor that is not inherited. A magic link at
    any place, also in the directory that is configured, raises OSError with ELOOP, on a kernel with openat2.

    One call instead of the two of ``directory`` and ``open_beneath`` with Links.ANYWHERE. Raises ValueError, OSError.
    """
    if "\0" in path:
        raise ValueError(f"{path!r} has a null byte")
    flags |= os.O_CLOEXEC
    try:
        return _openat2(_HERE, path, flags, 0, Links.ANYWHERE)
    except OSError as error:
        if error.errno not in _WALKED:
            raise
    return os.open(path, flags)


def open_regular(
    top: int, path: str, *, links: Links = Links.REFUSED, known_as: Sequence[str] = (), flags: int = READ
) -> BinaryIO:
    """Open a regular file beneath the directory ``top`` for reading, unbuffered bytes, and return it. Never waits for a
    FIFO or a device.

    Raises NoRegularFile, and the errors of ``open_beneath``.
    """
    descriptor = open_beneath(top, path, flags, links=links, known_as=known_as)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NoRegularFile(path)
        return os.fdopen(descriptor, "rb", buffering=0)
    except BaseException:
        os.close(descriptor)
        raise


@contextlib.contextmanager
def parent(top: int, path: str, *, links: Links = Links.REFUSED) -> Iterator[tuple[int, str]]:
    """Yield (descriptor of the directory that holds the last component of a path, name of the last component).

    Give both to functions of ``os`` with ``dir_fd``, such as os.mkdir, os.unlink and os.rename, which do not follow a link
    with that name. Raises LeadsOutside for a path without a last component, and the errors of ``open_beneath``.
    """
    head, _, name = _plain(path, links).rpartition("/")
    if name in (".", ".."):
        raise LeadsOutside(path)
    with directory(head, within=top, links=links) as way:
        yield way, name


def make_directories(top: int, path: str, mode: int = 0o700, *, links: Links = Links.REFUSED) -> None:
    """Make a directory beneath ``top``, with its missing parents. ``mode`` is reduced by the umask of the process.

    Raises NotADirectoryError if a file is in the way, and the errors of ``open_beneath``.
    """
    pieces = _plain(path, links).split("/")
    for number in range(1, len(pieces) + 1):
        at = "/".join(pieces[:number])
        with contextlib.suppress(FileNotFoundError), directory(at, within=top, links=links):
            continue
        with parent(top, at, links=links) as (way, name), contextlib.suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=way)
        # A link or a file that another process made meanwhile raises here.
        with directory(at, within=top, links=links):
            pass


def walked(ways: list[int], parts: Sequence[str], *, follow: bool, links: Links, known_as: Sequence[str] = ()) -> str:
    """Walk ``parts`` from the last descriptor of ``ways`` to the directory that holds the last part. Return the name of
    the last part there; "." for the top itself.

    ``ways`` gets the descriptor of each directory on the way; the caller closes all of them, also after an error. Without
    ``follow``, the last part may be a link. With it, the name was no link at that moment, so the caller must still open it
    with O_NOFOLLOW. Links.ANYWHERE cannot be walked.
    """
    waiting = list(reversed(parts))
    followed = 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            if len(ways) > 1:
                os.close(ways.pop())
            elif links is not Links.IN_ROOT:
                raise LeadsOutside("..")
            continue
        if not waiting and not follow:
            return part
        target = link_text(part, ways[-1])
        if target is None:
            if not waiting:
                return part
            ways.append(os.open(part, _STEP, dir_fd=ways[-1]))
            continue
        followed += 1
        if followed > MAX_LINKS or links is Links.REFUSED:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), part)
        if target.startswith("/"):
            if links is not Links.IN_ROOT:
                target = _below(target, known_as)
            while len(ways) > 1:
                os.close(ways.pop())
        waiting.extend(piece for piece in reversed(target.split("/")) if piece not in ("", "."))
    return "."


def link_text(name: str, way: int) -> str | None:
    """Return the text of the symbolic link ``name`` in the directory ``way``; None for another file or a missing one."""
    try:
        return os.readlink(name, dir_fd=way)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOENT):
            raise
        return None


def _plain(path: str, links: Links) -> str:
    """Return a relative path without empty components; "." for the top."""
    if "\0" in path:
        raise ValueError(f"{path!r} has a null byte")
    pieces = [piece for piece in path.split("/") if piece not in ("", ".")]
    # Where links are not confined or not followed, nothing but this stops "..".
    if links is not Links.IN_ROOT and (path.startswith("/") or (links is not Links.BENEATH and ".." in pieces)):
        raise LeadsOutside(path)
    return "/".join(pieces) or "."


def _below(target: str, known_as: Sequence[str]) -> str:
    for top in known_as:
        if f"{target}/".startswith(f"{top.rstrip('/')}/"):
            return target[len(top.rstrip("/")) :]
    raise LeadsOutside(target)


def _walk(top: int, text: str, flags: int, mode: int, links: Links, known_as: Sequence[str]) -> int:
    if links is Links.ANYWHERE:
        return os.open(text, flags, mode, dir_fd=top)
    follow = not flags & os.O_NOFOLLOW
    ways = [os.dup(top)]
    try:
        name = walked(ways, text.split("/") if text != "." else (), follow=follow, links=links, known_as=known_as)
        found = os.open(name, flags | os.O_NOFOLLOW, mode, dir_fd=ways[-1])
    finally:
        for way in ways:
            os.close(way)
    # O_PATH with O_NOFOLLOW opens a link itself: another process made it between the look and the open.
    if follow and flags & os.O_PATH and stat.S_ISLNK(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), text)
    return found


#: Number of the system call openat2, the same on every architecture that Python's packages are built for.
_NUMBER = 437

#: Flags of openat2(2), RESOLVE_*.
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH, _IN_ROOT = 0x02, 0x04, 0x08, 0x10
_RESOLVE = {
    Links.REFUSED: _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS,
    Links.BENEATH: _BENEATH | _NO_MAGICLINKS,
    Links.IN_ROOT: _IN_ROOT | _NO_MAGICLINKS,
    Links.ANYWHERE: _NO_MAGICLINKS,
}

#: Errors of openat2 after which the path is walked: no such call, a filter that refuses the call (or a true EPERM, which
#: the walk raises again), and a rename during the resolution of "..".
_WALKED = frozenset({errno.ENOSYS, errno.EPERM, errno.EAGAIN})


@functools.cache
def _system_call() -> Callable[[int, bytes, bytes], int]:
    """Return openat2 as a function of (directory, path, struct open_how). It returns -errno for an error."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    libc.syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)

    def call(top: int, path: bytes, how: bytes) -> int:
        found = int(libc.syscall(_NUMBER, top, path, how, len(how)))
        return found if found >= 0 else -ctypes.get_errno()

    return call


@functools.lru_cache(maxsize=64)
def _open_how(flags: int, mode: int, links: Links) -> bytes:
    """Return the kernel's struct open_how."""
    return b"".join(number.to_bytes(8, sys.byteorder) for number in (flags, mode, _RESOLVE[links]))


def _openat2(top: int, text: str, flags: int, mode: int, links: Links) -> int:
    if not flags & os.O_PATH:
        flags |= os.O_LARGEFILE
    creates = flags & os.O_CREAT or flags & os.O_TMPFILE == os.O_TMPFILE
    # The path and the structure are bytes, so that they live as long as the call.
    how, path = _open_how(flags, mode if creates else 0, links), os.fsencode(text)
    while (found := _system_call()(top, path, how)) == -errno.EINTR:
        continue
    if found == -errno.EXDEV:
        raise LeadsOutside(text)
    if found < 0:
        raise OSError(-found, os.strerror(-found), text)
    return found
