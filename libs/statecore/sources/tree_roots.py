"""Root directories of trees that are served (state tree, pillar tree, pushed files), and the paths of their files.

A root has two parts. The operator configured the first part: its links are followed. The second part comes from a request,
such as the name of the saltenv where the option has ``__env__``, or the id of a minion that pushed files.

With ``fileserver_followsymlinks: false``, no link of the second part is followed, and a link of the tree leads only to a
place in the same root. Each use of a path opens it again from a descriptor of the first part, so that this holds also when
a file is replaced by a link at that moment. With links that are followed, as is Salt's default, they lead to any target.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PosixPath
from typing import IO, Any, ClassVar

from statecore.host import beneath
from statecore.host.beneath import LeadsOutside, Links
from statecore.host.rooted_path import RootedPath

#: Name in an option's directories that stands for the saltenv.
ANY_ENV = "__env__"


@dataclass(frozen=True, slots=True)
class TreeRoot:
    """One root directory of a tree."""

    #: Directory that the operator configured.
    configured: str
    #: Path below it, which a request has chosen; "" for the configured directory itself.
    derived: str = ""

    @classmethod
    def of(cls, directory: str | Path, saltenv: str) -> TreeRoot:
        """Return the root of a directory whose path has the saltenv's name in the place of ``__env__``."""
        before, name, after = str(directory).partition(ANY_ENV)
        if not name:
            return cls(before)
        configured, slash, begun = before.rpartition("/")
        return cls(f"{configured}{slash}" or ".", f"{begun}{saltenv}{after.replace(ANY_ENV, saltenv)}")

    @property
    def path(self) -> Path:
        """Path of the root directory, for messages and as key."""
        return Path(self.configured, self.derived)

    @contextlib.contextmanager
    def opened(self, links: Links) -> Iterator[int]:
        """Yield a descriptor of the root directory. Raises OSError if it is not a directory, or if a link of the derived
        part is refused.
        """
        with beneath.directory(self.configured) as top:
            if not self.derived:
                yield top
                return
            with beneath.directory(self.derived, within=top, links=_of_root(links)) as root:
                yield root

    def file(self, relative: str, links: Links) -> TreePath:
        """Return the path of a file in the root. Links.BENEATH gives a ConfinedPath, Links.ANYWHERE a TreePath."""
        made = _class(self.configured, len(Path(self.derived).parts) if self.derived else 0, links)
        return made(self.configured, self.derived, relative)


class TreePath(PosixPath):
    """Path of a file in a root of a tree. Reading it opens it beneath the root: regular files only, and never a magic
    link.
    """

    #: The directory that the operator configured.
    top: ClassVar[str]
    #: Beginning of each path: ``top`` with a slash at its end.
    start: ClassVar[str]
    #: Number of components below ``top`` that a request has chosen.
    derived: ClassVar[int]
    links: ClassVar[Links] = Links.ANYWHERE

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        descriptor = self._descriptor(os.O_PATH if follow_symlinks else os.O_PATH | os.O_NOFOLLOW)
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)

    def open(  # type: ignore[override]
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """Open the file for reading. Raises NoRegularFile, LeadsOutside, OSError; ValueError for a mode that writes."""
        if mode not in ("r", "rt", "rb"):
            raise ValueError(f"{self} is a file of a tree: it is only read, not opened with mode {mode!r}")
        descriptor = self._descriptor(beneath.READ)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise beneath.NoRegularFile(str(self))
            return open(descriptor, mode, buffering, encoding and io.text_encoding(encoding), errors, newline)
        except BaseException:
            os.close(descriptor)
            raise

    def _descriptor(self, flags: int) -> int:
        if self.links is Links.ANYWHERE:
            try:
                return beneath.open_followed(str(self), flags)
            except OSError as error:
                # The configured directory may be reached by a magic link, such as /proc/1/root.
                if error.errno != errno.ELOOP:
                    raise
        try:
            derived, relative = self._split()
            if derived:
                with self._opened(derived) as root:
                    return self._beneath(root, derived, relative, flags)
            # Not by ``_opened``: a context manager takes as long as the open, and each request opens a file.
            top = os.open(self.top, beneath.DIRECTORY)
            try:
                return self._beneath(top, "", relative, flags)
            finally:
                os.close(top)
        except OSError as error:
            error.filename = str(self)
            raise

    def _beneath(self, root: int, derived: str, relative: str, flags: int) -> int:
        try:
            return beneath.open_beneath(root, relative, flags, links=self.links)
        except LeadsOutside:
            if self.links is not Links.BENEATH:
                raise
            # Absolute links into the root itself are followed, as in Salt.
            own = os.path.join(self.top, derived).rstrip("/")
            names = (own, os.path.realpath(own))
            return beneath.open_beneath(root, relative, flags, links=self.links, known_as=names)

    def _split(self) -> tuple[str, str]:
        """Return (part of the path below ``top`` that a request has chosen, rest of the path)."""
        text = str(self)
        if self.top == text:
            return "", ""
        if self.top != ".":
            if not text.startswith(self.start):
                raise LeadsOutside(text)
            text = text[len(self.start) :]
        if not self.derived:
            return "", text
        parts = text.split("/")
        return "/".join(parts[: self.derived]), "/".join(parts[self.derived :])

    @contextlib.contextmanager
    def _opened(self, derived: str) -> Iterator[int]:
        with TreeRoot(self.top, derived).opened(self.links) as root:
            yield root


class ConfinedPath(TreePath, RootedPath):
    """Path of a file in a root whose links lead only to places in the same root. Functions of ``os`` do not accept it:
    they would open it by name, and follow a link that was made meanwhile.
    """

    links = Links.BENEATH

    @contextlib.contextmanager
    def located(self, *, follow: bool) -> Iterator[tuple[str, int]]:
        derived, relative = self._split()
        parts = relative.split("/") if relative else []
        with self._opened(derived) as root:
            ways = [os.dup(root)]
            try:
                with self._named():
                    name = beneath.walked(ways, parts, follow=follow, links=self.links)
                    yield name, ways[-1]
            finally:
                for way in ways:
                    os.close(way)


def _of_root(links: Links) -> Links:
    return links if links is Links.ANYWHERE else Links.REFUSED


@lru_cache(maxsize=256)
def _class(top: str, derived: int, links: Links) -> type[TreePath]:
    """Return the class for the files of a root. Python never frees a class, so it does not depend on the saltenv."""
    base = TreePath if links is Links.ANYWHERE else ConfinedPath
    own = str(Path(top))
    return type(base.__name__, (base,), {"top": own, "start": f"{own.rstrip('/')}/", "derived": derived})
