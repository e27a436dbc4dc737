"""``salt.utils.path`` for users' modules: programs and paths of this machine."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator

from statecore.loader.compat.exceptions import CommandNotFoundError
from statecore.loader.compat.utils import args, stringutils

#: Directories that are searched for programs in addition to PATH.
_MORE = ("/sbin", "/bin", "/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin")


def which(exe: str | None = None) -> str | None:
    """Return the path of a program on this machine; None if it is not installed.

    The directories of PATH and the usual directories of programs (/sbin, /usr/bin ...) are searched.
    """
    if not exe:
        return None
    directories = [""] if os.path.isabs(exe) else dict.fromkeys([*os.environ.get("PATH", "").split(os.pathsep), *_MORE])
    for directory in directories:
        path = os.path.join(directory, exe)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def which_bin(exes: object) -> str | None:
    """Return the path of the first of these programs that is installed on this machine; None if none is."""
    if not isinstance(exes, Iterable):
        return None
    return next((found for exe in exes if (found := which(exe))), None)


def check_or_die(command: str | None) -> None:
    """Raise CommandNotFoundError if the program is not installed on this machine."""
    if command is None:
        raise CommandNotFoundError("'None' is not a valid command.")
    if not which(command):
        raise CommandNotFoundError(f"'{command}' is not in the path")


def join(*parts: str | bytes, **kwargs: object) -> str:
    """Return the parts joined to one normalized path. A part that begins with a slash is appended too: ``/a`` and
    ``/b`` give ``/a/b``.
    """
    args.invalid_kwargs({name: value for name, value in kwargs.items() if name != "use_posixpath"})
    if not parts:
        return ""
    root, *rest = (os.path.normpath(stringutils.to_unicode(part)) for part in parts)
    return str(os.path.normpath(posixpath.join(root, *(part.lstrip(os.sep) for part in rest))))


def islink(path: str) -> bool:
    """Return whether the path is a symbolic link."""
    return os.path.islink(path)


def readlink(path: str) -> str:
    """Return the target of a symbolic link. Raise OSError if the path is not a link."""
    return os.readlink(path)


def os_walk(
    top: str | bytes,
    topdown: bool = True,
    onerror: Callable[[OSError], object] | None = None,
    followlinks: bool = False,
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield (directory, directory names, file names) below ``top`` as ``os.walk`` does. All names are text."""
    yield from os.walk(stringutils.to_unicode(top), topdown, onerror, followlinks)


def expand(path: str) -> str:
    """Return a path with ``~``, environment variables and symbolic links resolved."""
    return os.path.realpath(os.path.expandvars(os.path.expanduser(path)))


def safe_path(path: str, allow_path: object = None) -> bool:
    """Return True: in Salt this function checks Windows paths only."""
    return True


def sanitize_win_path(winpath: str) -> str:
    """Return a path in which the characters that Windows forbids are replaced by ``_``."""
    return winpath.translate({ord(char): "_" for char in '<>:|?*"'})
