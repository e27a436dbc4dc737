"""Paths of a mounted host that cannot lead out of it, whatever is swapped while they are used.

``Host.path`` says where a path leads at one moment. Between that and its use somebody on the host may put a link in place of a
directory. A RootedPath is therefore walked anew by each operation, from a descriptor of the root, one component at a time, no
link ever followed by the kernel: a link's text is read and walked in turn, an absolute one from the root again, and ``..``
goes back to the descriptor that we came from, the root's at most. What is found is used through its directory's descriptor.

``os.*`` and ``shutil.*`` know nothing of this: a RootedPath is not a path to them (``os.fspath`` raises TypeError), so that what
is forgotten fails. ``located`` gives them the name and the descriptor instead; for a plain Path too.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import os
import shutil
import stat
from collections.abc import Callable, Generator, Iterator
from functools import lru_cache
from pathlib import Path, PosixPath
from typing import IO, Any, ClassVar, NoReturn

#: As many symlinks as Linux follows in one path.
MAX_LINKS = 40

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

#: What the modes of ``open`` mean to the kernel.
_FLAGS = {
    "r": os.O_RDONLY,
    "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
}


class RootedPath(PosixPath):
    """A path below ``top``; ``below`` makes the class for a root. Its methods are Path's, each inside the root.

    Every operation raises OSError with the whole path; ELOOP for links that lead in circles.
    """

    #: The root, for whoever opens it. Paths made of one another are of one class, so it goes with them.
    top: ClassVar[str]

    def __fspath__(self) -> NoReturn:
        raise TypeError(f"{self} is a path of a mounted host: use its methods, or rooted_path.located")

    @contextlib.contextmanager
    def located(self, *, follow: bool) -> Iterator[tuple[str, int]]:
        """The last component's name and a descriptor of its directory. What has the name is no link if ``follow``, unless
        it became one since: whoever uses the name still says that links are not to be followed."""
        parts = self._parts_below()
        ways = [os.open(self.top, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)]
        try:
            with self._named():
                name = _walked(ways, parts, follow)
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
        """Where the link leads, as it says: a path of the host, or one beside the link."""
        with self.located(follow=False) as (name, way):
            return type(self)(os.readlink(name, dir_fd=way))

    def chmod(self, mode: int, *, follow_symlinks: bool = True) -> None:
        with self.located(follow=follow_symlinks) as (name, way):
            descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=way)
            try:
                if stat.S_ISLNK(os.fstat(descriptor).st_mode):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                # No fchmod for such a descriptor, and no other for a file that may not be read.
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

    def symlink_to(self, target: Any, target_is_directory: bool = False) -> None:
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
        """Host.path resolves."""
        raise TypeError(f"{self} is a path of a mounted host: Host.path resolves the host's own")

    def glob(self, pattern: str) -> Iterator[RootedPath]:  # type: ignore[override]
        """What is in the directory and has a name that matches."""
        return (path for path in self.iterdir() if fnmatch.fnmatchcase(path.name, pattern))

    def rglob(self, pattern: str) -> Iterator[RootedPath]:  # type: ignore[override]
        """What is below the directory and has a name that matches."""
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
    """The class of the paths of one mounted host. A class is never given back, so those of a root share it."""
    return type("RootedPath", (RootedPath,), {"top": str(root), "__slots__": ()})


@contextlib.contextmanager
def located(path: Path, *, follow: bool = False) -> Iterator[tuple[str, int | None]]:
    """``(name, dir_fd)`` for a function of ``os``, which is not to follow links; of a plain Path the path and None."""
    if isinstance(path, RootedPath):
        with path.located(follow=follow) as found:
            yield found
    else:
        yield os.path.realpath(path) if follow else str(path), None


def lexists(path: Path) -> bool:
    """Whether anything has this name: a link that leads nowhere, too."""
    try:
        path.lstat()
    except (OSError, ValueError):
        return False
    return True


def access(path: Path, mode: int) -> bool:
    """Whether this process may do that (``os.R_OK`` and its kin) with what the path leads to."""
    try:
        with located(path, follow=True) as (name, way):
            return os.access(name, mode, dir_fd=way, follow_symlinks=way is None)
    except OSError:
        return False


def file_system(path: Path) -> os.statvfs_result:
    """What statvfs(3) tells of the file system that a path leads to. Raises OSError."""
    with located(path, follow=True) as (name, way):
        descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=way)
    try:
        return os.fstatvfs(descriptor)
    finally:
        os.close(descriptor)


def walk(
    top: Path, onerror: Callable[[OSError], object] | None = None, *, followlinks: bool = False
) -> Iterator[tuple[Path, list[str], list[str]]]:
    """As os.walk, top down: (directory, names of directories and of links to such, other names).

    What cannot be read is passed over, ``onerror`` hears of it; names that the caller takes out are not walked into.
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
    """Removes a directory with all that is in it; links in it go, what they lead to stays. Raises OSError."""
    with located(path) as (name, way):
        shutil.rmtree(name, dir_fd=way)


def _walked(ways: list[int], parts: list[str], follow: bool) -> str:
    """Goes down; the name that is left at the end. ``ways`` are the descriptors from the root to its directory."""
    waiting = parts[::-1]
    links = 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            if len(ways) > 1:
                os.close(ways.pop())
            continue
        if not waiting and not follow:
            return part
        target = _link(part, ways[-1])
        if target is None:
            if not waiting:
                return part
            ways.append(os.open(part, _DIRECTORY, dir_fd=ways[-1]))
            continue
        links += 1
        if links > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith("/"):
            while len(ways) > 1:
                os.close(ways.pop())
        waiting.extend(piece for piece in reversed(target.split("/")) if piece not in ("", "."))
    return "."


def _link(name: str, way: int) -> str | None:
    """A link's text; None for what is no link, or not there."""
    try:
        return os.readlink(name, dir_fd=way)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOENT):
            raise
        return None
