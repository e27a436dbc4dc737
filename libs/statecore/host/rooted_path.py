"""Paths of a mounted host that cannot lead outside of its root, even when links change during the use.

``Host.path`` resolves a path at one moment. Before its use, somebody on the host may replace a directory by a link.
Therefore each operation of a RootedPath walks the path again, from a descriptor of the root, one component at a time.
The kernel never follows a link: the link's text is read and walked in turn, an absolute link starts at the root again,
and ``..`` returns to the parent's descriptor, at most to the root. The operation then uses the directory's descriptor.

Functions of ``os`` and ``shutil`` do not accept a RootedPath (``os.fspath`` raises TypeError), so that a forgotten use
fails. ``located`` returns the name and the directory descriptor for them; it also accepts a plain Path.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import os
import stat
from collections.abc import Callable, Generator, Iterator
from functools import lru_cache
from pathlib import Path, PosixPath
from typing import IO, TYPE_CHECKING, Any, ClassVar, NoReturn

from statecore.host import beneath
from statecore.host.beneath import Links
from statecore.model.lazy import lazy_module

if TYPE_CHECKING:
    import shutil
else:
    shutil = lazy_module("shutil")

#: Mode of ``open`` -> flags of open(2).
_FLAGS = {
    "r": os.O_RDONLY,
    "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
}


class RootedPath(PosixPath):
    """A path below the directory ``top``. ``below`` makes the class for one root. The methods are those of Path,
    inside the root.

    Every operation raises OSError with the whole path; ELOOP for links in a loop.
    """

    #: The root directory. A path made from another path has the same class and therefore the same root.
    top: ClassVar[str]
    #: Links.IN_ROOT: an absolute link, and ``..`` at the root, mean the root. Links.BENEATH: both raise LeadsOutside.
    links: ClassVar[Links] = Links.IN_ROOT

    def __fspath__(self) -> NoReturn:
        raise TypeError(f"{self} is a path of a mounted host: use its methods, or rooted_path.located")

    @contextlib.contextmanager
    def located(self, *, follow: bool) -> Iterator[tuple[str, int]]:
        """Yield the name of the last component and a descriptor of its directory.

        If ``follow``, links are resolved and the name is not a link. It may become a link later, so the caller must
        still pass O_NOFOLLOW or follow_symlinks=False.
        """
        parts = self._parts_below()
        ways = [os.open(self.top, beneath.DIRECTORY)]
        try:
            with self._named():
                name = beneath.walked(ways, parts, follow=follow, links=self.links)
                yield name, ways[-1]
        finally:
            for way in ways:
                os.close(way)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        with self.located(follow=follow_symlinks) as (name, way):
            found = os.stat(name, dir_fd=way, follow_symlinks=False)
        if follow_symlinks and stat.S_ISLNK(found.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(self))
        return found

    def lstat(self) -> os.stat_result:
        return self.stat(follow_symlinks=False)

    def open(  # type: ignore[override]
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        flags = _FLAGS[next(letter for letter in mode if letter in _FLAGS)]
        if "+" in mode:
            flags = flags & ~os.O_WRONLY | os.O_RDWR
        with self.located(follow=True) as (name, way):
            descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=way)
        return open(descriptor, mode, buffering, encoding, errors, newline)

    def iterdir(self) -> Generator[RootedPath, None, None]:
        for name in self._names():
            yield self / name

    def readlink(self) -> RootedPath:
        """Return the target of the link as it is stored: an absolute path of the host, or a path relative to the
        link.
        """
        with self.located(follow=False) as (name, way):
            return type(self)(os.readlink(name, dir_fd=way))

    def chmod(self, mode: int, *, follow_symlinks: bool = True) -> None:
        with self.located(follow=follow_symlinks) as (name, way):
            descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=way)
            try:
                if stat.S_ISLNK(os.fstat(descriptor).st_mode):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                # fchmod does not accept O_PATH descriptors, and another descriptor needs read permission.
                os.chmod(f"/proc/self/fd/{descriptor}", mode)  # noqa: PTH101
            finally:
                os.close(descriptor)

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        try:
            with self.located(follow=False) as (name, way):
                os.mkdir(name, mode, dir_fd=way)
        except FileNotFoundError:
            if not parents or self.parent == self:
                raise
            self.parent.mkdir(parents=True, exist_ok=True)
            self.mkdir(mode, parents=False, exist_ok=exist_ok)
        except FileExistsError:
            if not exist_ok or not self.is_dir():
                raise

    def rmdir(self) -> None:
        with self.located(follow=False) as (name, way):
            os.rmdir(name, dir_fd=way)

    def unlink(self, missing_ok: bool = False) -> None:
        try:
            with self.located(follow=False) as (name, way):
                os.unlink(name, dir_fd=way)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def rename(self, target: Any) -> Any:
        return self.replace(target)

    def replace(self, target: Any) -> Any:
        with self.located(follow=False) as (name, way), located(target) as (other, there):
            os.rename(name, other, src_dir_fd=way, dst_dir_fd=there)
        return target

    def symlink_to(self, target: object, target_is_directory: bool = False) -> None:
        with self.located(follow=False) as (name, way):
            os.symlink(str(target), name, dir_fd=way)

    def hardlink_to(self, target: Any) -> None:
        with self.located(follow=False) as (name, way), located(target) as (other, there):
            os.link(other, name, src_dir_fd=there, dst_dir_fd=way, follow_symlinks=False)

    def touch(self, mode: int = 0o666, exist_ok: bool = True) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | (0 if exist_ok else os.O_EXCL)
        with self.located(follow=True) as (name, way):
            if exist_ok:
                with contextlib.suppress(FileNotFoundError):
                    os.utime(name, dir_fd=way, follow_symlinks=False)
                    return
            os.close(os.open(name, flags, mode, dir_fd=way))

    def resolve(self, strict: bool = False) -> NoReturn:
        """Raise TypeError: Host.path resolves the paths of a mounted host."""
        raise TypeError(f"{self} is a path of a mounted host: Host.path resolves the host's own")

    def glob(self, pattern: str) -> Iterator[RootedPath]:  # type: ignore[override]
        """Yield the paths of the directory's entries whose names match the glob ``pattern``."""
        return (path for path in self.iterdir() if fnmatch.fnmatchcase(path.name, pattern))

    def rglob(self, pattern: str) -> Iterator[RootedPath]:  # type: ignore[override]
        """Return the files and directories below this directory, at any depth, whose names match the pattern."""
        for place, directories, rest in walk(self):
            yield from (type(self)(place, name) for name in (*directories, *rest) if fnmatch.fnmatchcase(name, pattern))

    def _parts_below(self) -> list[str]:
        try:
            return list(self.relative_to(self.top).parts)
        except ValueError:
            raise PermissionError(errno.EPERM, f"outside the host mounted at {self.top}", str(self)) from None

    def _names(self) -> list[str]:
        with self.located(follow=True) as (name, way):
            descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=way)
            try:
                return os.listdir(descriptor)  # noqa: PTH208 - a descriptor
            finally:
                os.close(descriptor)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            error.filename = str(self)
            raise


@lru_cache(maxsize=16)
def below(root: Path) -> type[RootedPath]:
    """Return the subclass of RootedPath for the paths of one mounted host.

    Cached, because Python never frees a class.
    """
    return type("RootedPath", (RootedPath,), {"top": str(root), "__slots__": ()})


@contextlib.contextmanager
def confined(directory: Path) -> Iterator[RootedPath]:
    """Open a directory and yield its path. No operation of the path, or of a path made from it, leaves the directory.

    A link or a ``..`` that leads out of the directory raises LeadsOutside. The yielded path names an open descriptor
    (/proc/self/fd/N), so it stays the same directory when a component of ``directory`` is replaced. It is valid inside
    the block. Raises OSError when ``directory`` is not a directory.
    """
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    with located(directory, follow=True) as (name, way):
        descriptor = os.open(name, flags if way is None else flags | os.O_NOFOLLOW, dir_fd=way)
    try:
        top = f"/proc/self/fd/{descriptor}"
        yield _confined_class(top)(top)
    finally:
        os.close(descriptor)


@lru_cache(maxsize=16)
def _confined_class(top: str) -> type[RootedPath]:
    return type("ConfinedPath", (RootedPath,), {"top": top, "links": Links.BENEATH, "__slots__": ()})


@contextlib.contextmanager
def located(path: Path, *, follow: bool = False) -> Iterator[tuple[str, int | None]]:
    """Yield ``(name, dir_fd)`` for a function of ``os``, which must not follow links. For a plain Path: the whole
    path and None.
    """
    if isinstance(path, RootedPath):
        with path.located(follow=follow) as found:
            yield found
    else:
        yield os.path.realpath(path) if follow else str(path), None


def lexists(path: Path) -> bool:
    """Return whether the path exists. A link with a missing target exists."""
    try:
        path.lstat()
    except (OSError, ValueError):
        return False
    return True


def access(path: Path, mode: int) -> bool:
    """Return whether this process has a permission (``os.R_OK``, ``os.W_OK``, ``os.X_OK``) for the path, with links
    resolved.
    """
    try:
        with located(path, follow=True) as (name, way):
            return os.access(name, mode, dir_fd=way, follow_symlinks=way is None)
    except OSError:
        return False


def file_system(path: Path) -> os.statvfs_result:
    """Return the size and free space (os.statvfs) of the file system that holds a path. Raise OSError if the path does
    not exist.
    """
    with located(path, follow=True) as (name, way):
        descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=way)
    try:
        return os.fstatvfs(descriptor)
    finally:
        os.close(descriptor)


def walk(
    top: Path, onerror: Callable[[OSError], object] | None = None, *, followlinks: bool = False
) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Walk a directory top down as os.walk. Yield (directory, names of directories and links to directories, other
    names).

    Unreadable directories are skipped and passed to ``onerror``. The caller may remove names, which are then not
    entered.
    """
    if not isinstance(top, RootedPath):
        for place, own, rest in os.walk(top, onerror=onerror, followlinks=followlinks):
            yield Path(place), own, rest
        return
    try:
        names = sorted(path.name for path in top.iterdir())
    except OSError as error:
        if onerror is not None:
            onerror(error)
        return
    directories = [name for name in names if (top / name).is_dir()]
    yield top, directories, [name for name in names if name not in set(directories)]
    for name in directories:
        if followlinks or not (top / name).is_symlink():
            yield from walk(top / name, onerror, followlinks=followlinks)


def remove_tree(path: Path) -> None:
    """Remove a directory with its content. Links are removed, their targets stay. Raise OSError if something cannot be
    removed.
    """
    with located(path) as (name, way):
        shutil.rmtree(name, dir_fd=way)
