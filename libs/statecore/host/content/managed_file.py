"""Files of the managed host as states and the ``file`` module handle them: read, compare, replace atomically.

A file is replaced by a rename in its own directory: an interrupted run leaves the old file or the new one, never half of
it. Owner and mode of the old file stay unless others are wanted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from statecore.host import copies
from statecore.host.content import atomic_file
from statecore.host.rooted_path import lexists, located, remove_tree, walk
from statecore.model.errors import HostError, InvocationError
from statecore.model.ports import ManagedHost

#: Bytes that are copied at a time.
_BLOCK = 1024 * 1024

#: Bytes of a file up to which it is read whole, and its difference shown: nobody reads the difference of larger ones.
WHOLE = 4 * 1024**2


@dataclass(frozen=True, slots=True)
class Attributes:
    """Wanted owner and mode; None leaves what is there (or what the process makes)."""

    user: str | int | None = None
    group: str | int | None = None
    mode: int | None = None


def parse_mode(value: Any) -> int | None:
    """Permission bits of ``644``, ``'0644'``, ``0o644`` read as YAML gives them; None for nothing. Raises InvocationError."""
    if value in (None, ""):
        return None
    text = str(value).strip().removeprefix("0o")
    try:
        mode = int(text, 8)
    except ValueError:
        raise InvocationError(f"'{value}' is no mode: write it in octal digits, such as '0644'") from None
    if not 0 <= mode <= 0o7777:
        raise InvocationError(f"'{value}' is no mode: at most four octal digits")
    return mode


def shown_mode(mode: int) -> str:
    """Four octal digits."""
    return f"{mode:04o}"


def read(path: Path, name: str) -> bytes | None:
    """The bytes of a regular file that the host knows as ``name``; None when there is none. HostError for what is no file."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            # Reading a pipe would wait for ever.
            raise HostError(f"{name} is no regular file")
        return path.read_bytes()
    except FileNotFoundError:
        return None


def held(path: Path, name: str) -> bytes | Path | None:
    """As ``read``; of a file larger than WHOLE the path itself, to be read in blocks."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return path if stat.S_ISREG(found.st_mode) and found.st_size > WHOLE else read(path, name)


def source(path: Path) -> bytes | Path:
    """The bytes of a file, the path of one larger than WHOLE. Raises OSError."""
    return path if path.stat().st_size > WHOLE else path.read_bytes()


def same(old: bytes | Path | None, new: bytes | Path) -> bool:
    """Whether two contents are one. Raises OSError."""
    if isinstance(old, Path) and isinstance(new, Path):
        return copies.same_content(old, new)
    # A path is one of a file that is larger than any bytes.
    return old == new


def size(content: bytes | Path) -> int:
    """Number of bytes. Raises OSError."""
    return content.stat().st_size if isinstance(content, Path) else len(content)


def times(atime: Any, mtime: Any) -> tuple[float, float] | None:
    """(access, modification) in seconds since 1970: what is not given is the other; None, which is now, for neither.

    Raises InvocationError.
    """
    given = [value for value in (atime, mtime) if value is not None]
    if not given:
        return None
    try:
        return float(given[0]), float(given[-1])
    except (TypeError, ValueError):
        raise InvocationError(f"atime and mtime are seconds since 1970, not {atime!r} and {mtime!r}") from None


def attribute_changes(host: ManagedHost, path: Path, wanted: Attributes) -> dict[str, Any]:
    """Owner, group and mode of an existing file that differ from the wanted ones.

    A name that the host does not know differs: in test mode the state that would make it has not run.
    """
    found = path.lstat()
    changes: dict[str, Any] = {}
    if wanted.user is not None and _number(host.uid, wanted.user) != found.st_uid:
        changes["user"] = wanted.user
    if wanted.group is not None and _number(host.gid, wanted.group) != found.st_gid:
        changes["group"] = wanted.group
    if wanted.mode is not None and not stat.S_ISLNK(found.st_mode) and wanted.mode != stat.S_IMODE(found.st_mode):
        changes["mode"] = shown_mode(wanted.mode)
    return changes


def know_owner(host: ManagedHost, wanted: Attributes) -> None:
    """Raises HostError when the host does not know the wanted user or group."""
    if wanted.user is not None:
        host.uid(wanted.user)
    if wanted.group is not None:
        host.gid(wanted.group)


def set_attributes(host: ManagedHost, path: Path, wanted: Attributes) -> None:
    """Gives a file its owner and mode. Raises HostError that says who could."""
    uid, gid = _numbers(host, wanted)
    found = path.lstat()
    if (uid not in (-1, found.st_uid)) or (gid not in (-1, found.st_gid)):
        try:
            with located(path) as (name, way):
                os.chown(name, uid, gid, dir_fd=way, follow_symlinks=False)
        except PermissionError as error:
            raise _only_root(path, wanted) from error
    if wanted.mode is not None and not stat.S_ISLNK(found.st_mode):
        path.chmod(wanted.mode)


def replace(host: ManagedHost, path: Path, data: bytes | Path, wanted: Attributes) -> None:
    """Puts bytes, or a copy of what another file holds, in place of a file, atomically. Raises HostError when it cannot.

    Owner, mode, ACL, security context and other extended attributes of the old file stay, unless others are wanted.
    """
    try:
        with located(path) as (name, way):
            aside = atomic_file.temporary_name(name)
            # Everything is done through descriptors: whatever the names become meanwhile, it is this file that is made.
            descriptor, named = _made(aside, way)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    _fill(file, data)
                    _attribute(host, file.fileno(), path, _Old.of(name, way), wanted)
                    file.flush()
                    os.fsync(file.fileno())
                    if not named:
                        # The first descriptor means nothing beside a whole path, but without one no link would be followed.
                        own = file.fileno()
                        os.link(f"/proc/self/fd/{own}", aside, src_dir_fd=own, dst_dir_fd=way)
                os.rename(aside, name, src_dir_fd=way, dst_dir_fd=way)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(aside, dir_fd=way)
    except OSError as error:
        raise HostError(f"{path} cannot be written: {error.strerror}") from error


def _made(aside: str, way: int | None) -> tuple[int, bool]:
    """A new file, and whether it has its name: where the file system knows files without, a run that is killed leaves none."""
    directory = os.path.dirname(aside) if way is None else "."  # noqa: PTH120
    if Path("/proc/self/fd").is_dir():
        try:
            return os.open(directory, os.O_WRONLY | os.O_TMPFILE, 0o600, dir_fd=way), False
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
    return os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=way), True


@dataclass(frozen=True, slots=True)
class _Old:
    """What a file's successor takes over."""

    stat: os.stat_result
    extended: Mapping[str, bytes]

    @classmethod
    def of(cls, name: str, way: int | None) -> _Old | None:
        """None of what is not there. A link is like that: what it leads to has no say, and may lie outside the root."""
        try:
            found = os.stat(name, dir_fd=way, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(found.st_mode):
            return None
        if way is None:
            return cls(found, copies.extended(name))
        opened = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=way)
        try:
            return cls(found, copies.extended(f"/proc/self/fd/{opened}"))
        finally:
            os.close(opened)


def _fill(file: IO[bytes], data: bytes | Path) -> None:
    if isinstance(data, bytes):
        file.write(data)
        return
    with data.open("rb") as source:
        shutil.copyfileobj(source, file, _BLOCK)


def _attribute(host: ManagedHost, descriptor: int, path: Path, old: _Old | None, wanted: Attributes) -> None:
    """Gives a new file what the old one had, then what is wanted."""
    mine = os.fstat(descriptor)
    if old is not None:
        if (old.stat.st_uid, old.stat.st_gid) != (mine.st_uid, mine.st_gid):
            try:
                os.fchown(descriptor, old.stat.st_uid, old.stat.st_gid)
            except PermissionError as error:
                raise HostError(f"{path.name}: its owner cannot be kept: only root may give files away") from error
        os.fchmod(descriptor, stat.S_IMODE(old.stat.st_mode))
        for name, value in old.extended.items():
            copies.extend(descriptor, name, value)
    else:
        os.fchmod(descriptor, usual_mode())
    uid, gid = _numbers(host, wanted)
    if (uid, gid) != (-1, -1):
        try:
            os.fchown(descriptor, uid, gid)
        except PermissionError as error:
            raise _only_root(path, wanted) from error
    if wanted.mode is not None:
        os.fchmod(descriptor, wanted.mode)


def copy_into_place(host: ManagedHost, origin: Path, place: Path, wanted: Attributes) -> None:
    """Puts a copy of a file or of a whole directory in place of what is there, whole or not at all.

    What is in a directory gets the wanted owner and keeps its mode. Raises OSError, and HostError.
    """
    aside = _aside(place)
    try:
        if origin.is_dir():
            copies.copy_tree(origin, aside)
            for directory, names, files in walk(aside):
                for name in (*names, *files):
                    set_attributes(host, directory / name, Attributes(wanted.user, wanted.group))
        else:
            copies.copy_content(origin, aside)
            aside.chmod(stat.S_IMODE(origin.stat().st_mode))
        set_attributes(host, aside, wanted)
        move_into_place(aside, place)
    finally:
        if lexists(aside):
            remove(aside)


def move_into_place(origin: Path, place: Path) -> None:
    """Renames a file, link or directory over what is there. Raises OSError, and HostError."""
    if lexists(place) and (_is_directory(place) or _is_directory(origin)):
        # No rename replaces a directory that holds something, nor a file by a directory.
        remove(place)
    try:
        origin.replace(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        aside = _aside(place)
        try:
            if _is_directory(origin):
                copies.copy_tree(origin, aside)
            else:
                copies.copy(origin, aside)
                if not origin.is_symlink():
                    found = origin.stat()
                    with located(aside) as (name, way):
                        os.chown(name, found.st_uid, found.st_gid, dir_fd=way, follow_symlinks=False)
            aside.replace(place)
        finally:
            if lexists(aside):
                remove(aside)
        remove(origin)


def keep_beside(host: ManagedHost, path: Path, suffix: str) -> None:
    """Keeps a copy of a file, with its owner and mode, under its name and a suffix. Raises HostError."""
    found = path.stat()
    kept = Attributes(found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode))
    replace(host, path.with_name(path.name + suffix), path, kept)


def make_directories(host: ManagedHost, path: Path, wanted: Attributes, stop: Path) -> None:
    """Makes a directory and its missing parents below ``stop``, each with the wanted owner and mode. Raises HostError."""
    know_owner(host, wanted)
    missing = []
    at = path
    while not at.is_dir() and at != stop:
        missing.append(at)
        at = at.parent
    try:
        for directory in reversed(missing):
            directory.mkdir()
            set_attributes(host, directory, wanted)
    except OSError as error:
        raise HostError(f"{error.filename} cannot be made: {error.strerror}") from error


def remove(path: Path) -> None:
    """Removes a file, a link or a whole directory. Raises HostError."""
    try:
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink()
    except OSError as error:
        raise HostError(f"{error.filename} cannot be removed: {error.strerror}") from error


def usual_mode() -> int:
    """Mode of a file that this process makes without saying one."""
    current = os.umask(0o022)
    os.umask(current)
    return 0o666 & ~current


def directory_mode(mode: int) -> int:
    """Mode of a directory that files of this mode are made in: whoever may read may enter."""
    return mode | (mode & 0o444) >> 2


def _aside(path: Path) -> Path:
    """A name in the same directory that nobody has."""
    return path.with_name(atomic_file.temporary_name(path.name))


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _numbers(host: ManagedHost, wanted: Attributes) -> tuple[int, int]:
    """(uid, gid) of the wanted owner, -1 for what may stay. Raises HostError."""
    return (
        -1 if wanted.user is None else host.uid(wanted.user),
        -1 if wanted.group is None else host.gid(wanted.group),
    )


def _only_root(path: Path, wanted: Attributes) -> HostError:
    owner = ":".join(str(name) for name in (wanted.user, wanted.group) if name is not None)
    return HostError(f"Failed to change owner of {path} to {owner}: only root may")


def _number(ask: Callable[[str | int], int], name: str | int) -> int | None:
    try:
        return ask(name)
    except HostError:
        return None
