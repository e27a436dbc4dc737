"""Reads and writes files of a directory in which another user may plant links, hard links, fifos and devices.

Root keeps files in directories that belong to other users, such as the keys of a master that runs as ``salt``. With a
link there, the other user would choose which file root reads, writes or gives away. ``GuardedTree`` therefore opens
each component of a path by the descriptor of its directory. A directory is *foreign* if a user other than root and the
user of this process owns it or may write to it. In a foreign directory no link is followed, and a hard link to
a file of a third user is refused. Only regular files of bounded size are read. A new file gets its owner by its own
descriptor, before it has its name.

``statecore.host.beneath`` confines a path to a directory whatever the owners are. Here the owner of each directory decides
whether its links are followed, from the root of the file system on: openat2 has no such rule, so each component is
a step of its own.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from statecore.host.beneath import DIRECTORY, MAX_LINKS, link_text
from statecore.host.content import atomic_file

#: Bytes of the longest file that ``GuardedTree.read`` returns, unless the caller names another limit.
MOST_BYTES = 1024 * 1024

#: Levels of directories below the top that ``names`` and ``give`` enter.
_DEEPEST = 8

_DIRECTORY = DIRECTORY | os.O_NOFOLLOW

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a fifo",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


class RefusedFile(PermissionError):
    """Raised for a file that root must not read, follow or give away. ``filename`` is its path, ``strerror`` the reason."""

    def __init__(self, why: str, path: Path) -> None:
        super().__init__(errno.EPERM, why, str(path))


class Owner(NamedTuple):
    """The numeric user and group that own a file."""

    uid: int
    gid: int


class GuardedTree:
    """The files below the directory ``top``. A file is named relative to it, such as ``publisher/known/cli.pub``.

    ``owner``: user and group of each new file and directory. None: root gives a new file the owner of its directory;
    files of other users' processes belong to the user. ``links``: False if no link below ``top`` is followed, also in
    directories of this process's user: somebody else made the content. Each method raises OSError with the whole path,
    and RefusedFile for a file that another user may have planted.
    """

    def __init__(self, top: Path, owner: Owner | None = None, *, links: bool = True) -> None:
        self.top = top
        self._owner = owner
        self._links = links

    def make_top(self) -> None:
        """Make the missing directories down to ``top`` itself; they have mode 0755, reduced by the umask."""
        with self._opened(self.top, make=0o755):
            pass

    def exists(self, name: str) -> bool:
        """Return whether there is a file of this name. A link counts as a file, also one without a target."""
        try:
            with self._place(name) as (way, own):
                os.stat(own, dir_fd=way, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def read(self, name: str, most: int = MOST_BYTES) -> bytes:
        """Return the content of a regular file of at most ``most`` bytes."""
        with self._place(name) as (way, own):
            opened, found = self._regular(way, own, self.top / name)
            try:
                if found.st_size > most:
                    raise RefusedFile(f"has {found.st_size} bytes, more than {most}", self.top / name)
                with open(f"/proc/self/fd/{opened}", "rb") as file:
                    content = file.read(most + 1)
            finally:
                os.close(opened)
        if len(content) > most:
            raise RefusedFile(f"has more than {most} bytes", self.top / name)
        return content

    def names(self) -> list[str]:
        """Return the sorted names, relative to ``top``, of all files in it and in its directories; [] if it does not exist."""
        try:
            with self._opened(self.top) as way:
                return sorted(_names(way, "", 0))
        except FileNotFoundError:
            return []

    def put(self, name: str, content: bytes, mode: int = 0o600) -> None:
        """Write a file atomically, with its missing directories (0700). An existing file or link of the name is replaced."""
        with self._place(name, make=True) as (way, own), self._naming(name):
            atomic_file.write(_at(way, own), content, mode, exact=True, owner=self._new_owner(way))

    def create(self, name: str, content: bytes, mode: int = 0o600) -> bool:
        """Write a new file, with its missing directories (0700), and return True. Return False if it exists already."""
        with self._place(name, make=True) as (way, own), self._naming(name):
            return atomic_file.create(_at(way, own), content, mode, owner=self._new_owner(way))

    def make_directory(self, name: str, mode: int) -> None:
        """Make the directory ``name`` and the missing ones above it, if it is missing."""
        with self._opened(self.top / name, make=mode):
            pass

    def linked(self, name: str) -> str | None:
        """Return the target of the link ``name`` as it is stored; None if it is no link, or does not exist."""
        try:
            with self._place(name) as (way, own):
                return link_text(own, way)
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Remove a file; a missing file is ignored."""
        with contextlib.suppress(FileNotFoundError), self._place(name) as (way, own), self._naming(name):
            os.unlink(own, dir_fd=way)

    def give(self) -> list[Path]:
        """Give ``top``, and what is below it, from this process's user to ``owner``. Return the paths that were not given.

        What lies in a foreign directory is not given, because the other user may have moved it there; links are not
        given. Raise RefusedFile for a file that has several names: one of them may be elsewhere.
        """
        if self._owner is None:
            return []
        with self._opened(self.top) as way:
            return list(self._give(way, self.top, self._owner, 0))

    def _give(self, way: int, place: Path, owner: Owner, depth: int) -> Iterator[Path]:
        foreign = _is_foreign(os.fstat(way))
        for name in _listed(way):
            opened = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=way)
            try:
                found = os.fstat(opened)
                if stat.S_ISDIR(found.st_mode) and depth < _DEEPEST:
                    yield from self._give(opened, place / name, owner, depth + 1)
                elif stat.S_ISREG(found.st_mode) and found[stat.ST_UID : stat.ST_GID + 1] != owner:
                    if foreign:
                        yield place / name
                    elif found.st_nlink > 1:
                        raise RefusedFile(
                            "has several names (hard links), so it is not given to another user", place / name
                        )
                    else:
                        _chown(opened, owner, place / name)
            finally:
                os.close(opened)
        found = os.fstat(way)
        if not foreign and found[stat.ST_UID : stat.ST_GID + 1] != owner:
            _chown(way, owner, place)

    def _new_owner(self, way: int) -> Owner | None:
        """Return the owner of a new file in the directory of a descriptor; None if the file keeps its maker."""
        if self._owner is not None:
            return self._owner
        if os.geteuid() != 0:
            return None
        found = os.fstat(way)
        return Owner(found.st_uid, found.st_gid)

    def _regular(self, way: int, name: str, path: Path) -> tuple[int, os.stat_result]:
        """Return a descriptor (O_PATH) of a regular file, and its status. The descriptor does not start a device or wait
        for a fifo.
        """
        directory = os.fstat(way)
        with _naming(path):
            opened = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=way)
            if self._links and stat.S_ISLNK(os.fstat(opened).st_mode) and not _is_foreign(directory):
                os.close(opened)
                opened = os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=way)
        found = os.fstat(opened)
        try:
            if not stat.S_ISREG(found.st_mode):
                raise RefusedFile(f"is {_KINDS[stat.S_IFMT(found.st_mode)]}, not a regular file", path)
            if found.st_nlink > 1 and found.st_uid != directory.st_uid and _is_foreign(directory):
                raise RefusedFile("is a hard link to another user's file", path)
        except RefusedFile:
            os.close(opened)
            raise
        return opened, found

    @contextlib.contextmanager
    def _place(self, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Yield the descriptor of a file's directory, and the file's name in it. ``make``: make missing directories."""
        path = self.top / name
        with self._opened(path.parent, make=0o700 if make else None) as way:
            yield way, path.name

    @contextlib.contextmanager
    def _opened(self, path: Path, *, make: int | None = None) -> Iterator[int]:
        """Yield a descriptor of the directory ``path``. ``make``: mode of the missing directories, which are made."""
        ways = [os.open("/", DIRECTORY)]
        try:
            with _naming(path):
                self._walk(ways, path, list(self.top.absolute().parts[1:]), make, links=True)
                self._walk(ways, path, list(path.relative_to(self.top).parts), make, links=self._links)
            yield ways[-1]
        finally:
            for way in ways:
                os.close(way)

    def _walk(self, ways: list[int], path: Path, parts: list[str], make: int | None, *, links: bool) -> None:
        """Add the descriptors of the directories ``parts`` to ``ways``, from its last one on."""
        waiting = parts[::-1]
        followed = 0
        while waiting:
            part = waiting.pop()
            target = link_text(part, ways[-1])
            if target is None:
                ways.append(self._entered(ways[-1], part, make))
                continue
            followed += 1
            if not links or _is_foreign(os.fstat(ways[-1])):
                raise RefusedFile(f"'{part}' is a symbolic link, and another user may have made it", path)
            if followed > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if target.startswith("/"):
                ways.append(os.open("/", DIRECTORY))
            waiting.extend(piece for piece in reversed(target.split("/")) if piece not in ("", "."))

    def _entered(self, way: int, name: str, make: int | None) -> int:
        """Return a descriptor of a directory in the directory ``way``. ``make``: mode with which a missing one is made."""
        try:
            return os.open(name, _DIRECTORY, dir_fd=way)
        except FileNotFoundError:
            if make is None:
                raise
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, make, dir_fd=way)
        opened = os.open(name, _DIRECTORY, dir_fd=way)
        owner = self._new_owner(way)
        # Another user may have put a directory of this name in the place of the new one. An empty one has nothing to give.
        if owner is not None and os.fstat(opened).st_uid == os.geteuid() and not _listed(opened):
            os.chown(f"/proc/self/fd/{opened}", *owner)
        return opened

    def _naming(self, name: str) -> contextlib.AbstractContextManager[None]:
        return _naming(self.top / name)


def _is_foreign(directory: os.stat_result) -> bool:
    """Return whether a user other than root and this process's user owns a directory, or may write to it."""
    if directory.st_uid not in (0, os.geteuid()) or directory.st_mode & stat.S_IWOTH:
        return True
    return bool(directory.st_mode & stat.S_IWGRP) and directory.st_gid not in (0, os.getegid())


def _at(way: int, name: str) -> Path:
    """Return a path of the file ``name`` that stays in the directory of a descriptor."""
    return Path(f"/proc/self/fd/{way}", name)


def _chown(opened: int, owner: Owner, path: Path) -> None:
    with _naming(path):
        # fchown does not accept O_PATH descriptors, and another descriptor needs read permission.
        os.chown(f"/proc/self/fd/{opened}", *owner)


def _listed(way: int) -> list[str]:
    opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=way)
    try:
        return sorted(os.listdir(opened))  # noqa: PTH208 - a descriptor
    finally:
        os.close(opened)


def _names(way: int, prefix: str, depth: int) -> Iterator[str]:
    for name in _listed(way):
        if not stat.S_ISDIR(os.stat(name, dir_fd=way, follow_symlinks=False).st_mode):
            yield prefix + name
        elif depth < _DEEPEST:
            opened = os.open(name, _DIRECTORY, dir_fd=way)
            try:
                yield from _names(opened, f"{prefix}{name}/", depth + 1)
            finally:
                os.close(opened)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let an OSError of the block name ``path``, not a descriptor."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
