"""Files of the managed host for the ``file`` states and the execution module ``file``: read, compare, replace
atomically.

A file is replaced by a rename in its own directory: an interrupted run leaves the old file or the complete new one. The
owner, the mode, the ACL and the extended attributes of the old file stay, unless other ones are wanted.

It works through directory descriptors, so that nobody on the host can redirect the write by a symbolic link.
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
from typing import IO

from statecore.host import copies
from statecore.host.content import atomic_file
from statecore.host.rooted_path import lexists, located, remove_tree, walk
from statecore.model.errors import HostError, InvocationError
from statecore.model.ports import ManagedHost

#: Bytes per read when a file is copied.
_BLOCK = 1024 * 1024

#: Largest file in bytes that is read into memory and shown as a difference. Larger files are compared in blocks.
WHOLE = 4 * 1024**2


@dataclass(frozen=True, slots=True)
class Attributes:
    """Owner and permissions that a state demands for a file: user, group, mode.

    None keeps the current value. For a new file, None means the default of this process.
    """

    user: str | int | None = None
    group: str | int | None = None
    mode: int | None = None


def parse_mode(value: object) -> int | None:
    """Return the permission bits of ``644``, ``'0644'`` or ``0o644`` as YAML reads them; None for None and "".

    Raises InvocationError for other values.
    """
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
    """Return permission bits as text of four octal digits ("0644")."""
    return f"{mode:04o}"


def read(path: Path, name: str) -> bytes | None:
    """Return the content of a regular file as bytes; None when it does not exist. ``name`` is the host's path, for
    messages.

    Raise HostError when the path is not a regular file.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            # Reading from a pipe would block for ever.
            raise HostError(f"{name} is no regular file")
        return path.read_bytes()
    except FileNotFoundError:
        return None


def read_or_path(path: Path, name: str) -> bytes | Path | None:
    """Return the content of a regular file, or its path if the file is larger than 4 MiB (``WHOLE``); None if it does
    not exist.

    Raise HostError if the path is not a regular file.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return path if stat.S_ISREG(found.st_mode) and found.st_size > WHOLE else read(path, name)


def source(path: Path) -> bytes | Path:
    """Return the content of a file as bytes, or its path if the file is larger than 4 MiB (``WHOLE``). Raise OSError if
    the file cannot be read.
    """
    return path if path.stat().st_size > WHOLE else path.read_bytes()


def same(old: bytes | Path | None, new: bytes | Path) -> bool:
    """Return True if two contents (bytes, or the path of a large file) are equal. Raise OSError if a file cannot be
    read.
    """
    if isinstance(old, Path) and isinstance(new, Path):
        return copies.same_content(old, new)
    # A Path is a file larger than WHOLE, bytes are never larger: they differ.
    return old == new


def size(content: bytes | Path) -> int:
    """Return the number of bytes of a content, which is bytes or the path of a large file. Raise OSError if there is no
    such file.
    """
    return content.stat().st_size if isinstance(content, Path) else len(content)


def times(atime: object, mtime: object) -> tuple[float, float] | None:
    """Return (access time, modification time) for the arguments of ``file.touch``, in seconds since 1970.

    If only one time is given, both get its value. None if both are missing. Raises InvocationError for other values.
    """
    given = [value for value in (atime, mtime) if value is not None]
    if not given:
        return None
    seconds = [_seconds(value) for value in given]
    if seconds[0] is None or seconds[-1] is None:
        raise InvocationError(f"atime and mtime are seconds since 1970, not {atime!r} and {mtime!r}")
    return seconds[0], seconds[-1]


def _seconds(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, str | int | float) else None
    except ValueError:
        return None


def attribute_changes(host: ManagedHost, path: Path, wanted: Attributes) -> dict[str, object]:
    """Map of "user", "group" and "mode" to the wanted value, for those that differ on an existing file.

    A user or group that the host does not know counts as different: in test mode an earlier state may create it.
    """
    found = path.lstat()
    changes: dict[str, object] = {}
    if wanted.user is not None and _number(host.uid, wanted.user) != found.st_uid:
        changes["user"] = wanted.user
    if wanted.group is not None and _number(host.gid, wanted.group) != found.st_gid:
        changes["group"] = wanted.group
    if wanted.mode is not None and not stat.S_ISLNK(found.st_mode) and wanted.mode != stat.S_IMODE(found.st_mode):
        changes["mode"] = shown_mode(wanted.mode)
    return changes


def check_owner(host: ManagedHost, wanted: Attributes) -> None:
    """Raise HostError, which names both, when the host does not know the wanted user or group."""
    unknown: list[str] = []
    for number, name in ((host.uid, wanted.user), (host.gid, wanted.group)):
        try:
            if name is not None:
                number(name)
        except HostError as error:
            unknown.append(str(error))
    if unknown:
        raise HostError(" ".join(unknown))


def set_attributes(host: ManagedHost, path: Path, wanted: Attributes) -> None:
    """Set the owner and the mode of a file. Raises HostError when only root may change the owner."""
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
    """Replace a file atomically by one with the given bytes, or with the content of another file. Raise HostError if
    the file cannot be written; the old file then stays.

    Owner, mode, ACL, security context and other extended attributes of the old file stay, unless ``wanted`` has other
    values.
    """
    try:
        with located(path) as (name, way):
            aside = atomic_file.temporary_name(name)
            # All steps use descriptors, so that a renamed directory or a new link cannot redirect them.
            descriptor, named = _made(aside, way)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    _fill(file, data)
                    _attribute(host, file.fileno(), path, _Old.of(name, way), wanted)
                    file.flush()
                    os.fsync(file.fileno())
                    if not named:
                        # os.link follows the /proc link only with src_dir_fd, which is ignored for absolute paths.
                        own = file.fileno()
                        os.link(f"/proc/self/fd/{own}", aside, src_dir_fd=own, dst_dir_fd=way)
                os.rename(aside, name, src_dir_fd=way, dst_dir_fd=way)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(aside, dir_fd=way)
    except OSError as error:
        raise HostError(f"{path} cannot be written: {error.strerror}") from error


def _made(aside: str, way: int | None) -> tuple[int, bool]:

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
    """Owner, mode, ACL and extended attributes of a file that is replaced. The new file takes them over."""

    stat: os.stat_result
    extended: Mapping[str, bytes]

    @classmethod
    def of(cls, name: str, way: int | None) -> _Old | None:
        """Return the attributes of a file; None when it does not exist, or is a symbolic link (its target may be
        outside the root).
        """
        try:
            found = os.stat(name, dir_fd=way, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(found.st_mode):
            return None
        if way is None:
            return cls(found, copies.extended_attributes(name))
        opened = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=way)
        try:
            return cls(found, copies.extended_attributes(f"/proc/self/fd/{opened}"))
        finally:
            os.close(opened)


def _fill(file: IO[bytes], data: bytes | Path) -> None:
    if isinstance(data, bytes):
        file.write(data)
        return
    with data.open("rb") as source:
        shutil.copyfileobj(source, file, _BLOCK)


def _attribute(host: ManagedHost, descriptor: int, path: Path, old: _Old | None, wanted: Attributes) -> None:

    mine = os.fstat(descriptor)
    if old is not None:
        if (old.stat.st_uid, old.stat.st_gid) != (mine.st_uid, mine.st_gid):
            try:
                os.fchown(descriptor, old.stat.st_uid, old.stat.st_gid)
            except PermissionError as error:
                raise HostError(f"{path.name}: its owner cannot be kept: only root may give files away") from error
        os.fchmod(descriptor, stat.S_IMODE(old.stat.st_mode))
        for name, value in old.extended.items():
            copies.set_extended_attribute(descriptor, name, value)
    else:
        os.fchmod(descriptor, default_mode())
    uid, gid = _numbers(host, wanted)
    if (uid, gid) != (-1, -1):
        try:
            os.fchown(descriptor, uid, gid)
        except PermissionError as error:
            raise _only_root(path, wanted) from error
    if wanted.mode is not None:
        os.fchmod(descriptor, wanted.mode)


def copy_into_place(host: ManagedHost, origin: Path, place: Path, wanted: Attributes) -> None:
    """Replace ``place`` by a copy of a file or of a whole directory, completely or not at all. Raise OSError or
    HostError if that fails; the old ``place`` then stays.

    Files in a copied directory get the wanted owner and keep their modes.
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
    """Move a file, link or directory to ``place``, replacing an existing one. Also works between file systems.

    Raise OSError if it cannot be moved, HostError if the existing one cannot be removed.
    """
    if lexists(place) and (_is_directory(place) or _is_directory(origin)):
        # A rename cannot replace a directory that is not empty, nor a file by a directory.
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


def copy_beside(host: ManagedHost, path: Path, suffix: str) -> None:
    """Copy a file, with its owner and mode, to its name plus ``suffix``. Raise HostError if the copy cannot be written."""
    found = path.stat()
    kept = Attributes(found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode))
    replace(host, path.with_name(path.name + suffix), path, kept)


def make_directories(host: ManagedHost, path: Path, wanted: Attributes, stop: Path) -> None:
    """Create a directory and its missing parents below ``stop``, each with the wanted owner and mode.

    Raises HostError if a directory cannot be created or the host does not know the owner.
    """
    check_owner(host, wanted)
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
    """Remove a file, a link, or a directory with its content. Raise HostError if it cannot be removed."""
    try:
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink()
    except OSError as error:
        raise HostError(f"{error.filename} cannot be removed: {error.strerror}") from error


def default_mode() -> int:
    """Return the mode that the umask of this process gives to a new file."""
    current = os.umask(0o022)
    os.umask(current)
    return 0o666 & ~current


def directory_mode(mode: int) -> int:
    """Return the mode of a directory for files with this mode: everyone with read permission gets search permission."""
    return mode | (mode & 0o444) >> 2


def _aside(path: Path) -> Path:

    return path.with_name(atomic_file.temporary_name(path.name))


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _numbers(host: ManagedHost, wanted: Attributes) -> tuple[int, int]:
    """Return (uid, gid) of the wanted owner; -1 keeps the current one. Raise HostError if the host does not know the
    user or group.
    """
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
