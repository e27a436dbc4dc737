"""The file tree of one commit of a Git mirror, as listed by ``git ls-tree``: paths, modes, blobs, and targets of links."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

_LINK = 0o120000

#: Number of links resolved in one path. More means a loop.
_MAX_LINKS = 100


class GitTreeEntry(NamedTuple):
    """A file or a symbolic link in a Git commit: its mode and its blob."""

    mode: int
    blob: str


@dataclass(frozen=True)
class GitTree:
    """The files, directories and symbolic links of one Git commit, by path."""

    files: Mapping[str, GitTreeEntry]
    dirs: frozenset[str]
    #: Path of a link -> its target, relative to the link's directory.
    links: Mapping[str, str]

    def find(self, path: str) -> GitTreeEntry | None:
        """Return the file of the Git commit at a path, with symbolic links resolved inside the repository; None when
        there is no such file.
        """
        for _ in range(_MAX_LINKS):
            linked = self._linked(path)
            if linked is None:
                return self.files.get(path)
            path = linked
            if path.startswith(("/", "../")) or path in (".", ".."):
                return None
        return None

    def _linked(self, path: str) -> str | None:
        """Return the path with its first symbolic link resolved; None when no part of the path is a link."""
        if not self.links:
            return None
        end = path.find("/")
        while True:
            part = path if end < 0 else path[:end]
            if part in self.links:
                target = posixpath.join(posixpath.dirname(part), self.links[part])
                return posixpath.normpath(target + path[len(part) :])
            if end < 0:
                return None
            end = path.find("/", end + 1)


def read_tree(listing: bytes) -> tuple[dict[str, GitTreeEntry], frozenset[str]]:
    """Return ({path: file}, paths of directories) from the output of ``git ls-tree -r -t -z``. Submodules are left out, and
    names such as ``..``, which git's own commands do not write, but which a commit may have.
    """
    files: dict[str, GitTreeEntry] = {}
    dirs: set[str] = set()
    for line in listing.split(b"\0"):
        head, _, name = line.partition(b"\t")
        if not name:
            continue
        mode, kind, blob = head.split()
        path = name.decode("utf-8", "surrogateescape")
        if not {"", ".", ".."}.isdisjoint(path.split("/")):
            continue
        if kind == b"tree":
            dirs.add(path)
        elif kind == b"blob":
            files[path] = GitTreeEntry(int(mode, 8), blob.decode())
    return files, frozenset(dirs)


def is_link(entry: GitTreeEntry) -> bool:
    """Return True if a file of a Git commit is a symbolic link. The blob of a link is its target."""
    return entry.mode & 0o170000 == _LINK
