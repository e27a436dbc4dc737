"""File trees of Git commits as part of the state tree (``ports.Files``): a directory of the repository, served below a
mountpoint.
"""

from __future__ import annotations

import posixpath
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from statecore.model.ports import FileHash
from statecore.sources.gitrepos.mirror import Mirror
from statecore.sources.gitrepos.remotes import salt_url
from statecore.sources.gitrepos.tree import GitTree, GitTreeEntry
from statecore.sources.local_tree import LocalFiles


class View(NamedTuple):
    """The files of one Git commit as the fileserver serves them: those below ``root``, at paths below ``mountpoint``."""

    mirror: Mirror
    tree: GitTree
    #: Served directory of the repository; "": the whole repository.
    root: str = ""
    #: Directory of the served tree that contains the files; "": the top.
    mountpoint: str = ""

    def files(self) -> Iterator[str]:
        """Yield the served paths of the commit's files, and of its links to files."""
        for path in self.tree.files:
            if self._below(path) and (path not in self.tree.links or self.tree.find(path) is not None):
                yield self._mounted(path)

    def dirs(self) -> Iterator[str]:
        """Yield the served paths of the commit's directories, including the mountpoint."""
        yield from (self._mounted(path) for path in self.tree.dirs if self._below(path))
        if self.mountpoint:
            yield self.mountpoint

    def links(self) -> dict[str, str]:
        """Map of the served path of each symbolic link of the commit to its target."""
        return {self._mounted(path): target for path, target in self.tree.links.items() if self._below(path)}

    def find(self, path: str) -> GitTreeEntry | None:
        """Return the commit's file at a served path, with links resolved; None when the commit has no such file."""
        if self.mountpoint and not path.startswith(f"{self.mountpoint}/"):
            return None
        inner = path[len(self.mountpoint) + 1 :] if self.mountpoint else path
        return self.tree.find(posixpath.join(self.root, inner))

    def _below(self, path: str) -> bool:
        return not self.root or path.startswith(f"{self.root}/")

    def _mounted(self, path: str) -> str:
        inner = path[len(self.root) + 1 :] if self.root else path
        return f"{self.mountpoint}/{inner}" if self.mountpoint else inner


class ViewedFiles(ABC):
    """Implementation of ``ports.Files`` over Git commits: each path is served by the first commit (view) that has it.
    Every method raises GitFault when git fails.
    """

    def __init__(self, hash_type: str = "sha256") -> None:
        self._disk = LocalFiles({}, hash_type)
        #: Path of an exported file -> text for messages.
        self._shown: dict[Path, str] = {}

    @abstractmethod
    def views(self, saltenv: str) -> Iterable[View]:
        """Return the views (the files of one commit each) that serve a saltenv, in their order."""

    def paths(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Sorted paths of the files, and of the links to files, that Git commits serve in a saltenv."""
        return _begun(prefix, (path for view in self.views(saltenv) for path in view.files()))

    def dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Sorted paths of the directories that Git commits serve in a saltenv, including mountpoints."""
        return _begun(prefix, (path for view in self.views(saltenv) for path in view.dirs()))

    def empty_dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Always an empty list: git stores no empty directories."""
        return []

    def symlinks(self, saltenv: str = "base", prefix: str = "") -> dict[str, str]:
        """Map of the path of each symbolic link that Git commits serve in a saltenv to its target."""
        found: dict[str, str] = {}
        for view in reversed(list(self.views(saltenv))):
            found |= view.links()
        return {path: found[path] for path in _begun(prefix, found)}

    def hash(self, path: str, saltenv: str = "base") -> FileHash | None:
        """Digest of a file in a Git commit; None when the saltenv has no such file."""
        found = self.fetch(path, saltenv)
        return None if found is None else self._disk.digest(found)

    def mode(self, path: str, saltenv: str = "base") -> int | None:
        """Return the permission bits of a file in a Git commit, 0o644 or 0o755; None when the saltenv has no such file."""
        found = self._entry(path, saltenv)
        return None if found is None else found[1].mode & 0o7777

    def stat(self, path: str, saltenv: str = "base") -> list[int] | None:
        """Return a list with only the mode of a file in a Git commit, because git stores no other stat data; None when
        the saltenv has no such file.
        """
        found = self._entry(path, saltenv)
        return None if found is None else [found[1].mode]

    def fetch(self, path: str, saltenv: str = "base") -> Path | None:
        """Path of a local file with the content of a file in a Git commit; None when the saltenv has no such file."""
        found = self._entry(path, saltenv)
        if found is None:
            return None
        place = found[0].exported(found[1], posixpath.basename(path))
        self._shown[place] = f"{salt_url(path, saltenv)} ({found[0].remote.shown})"
        return place

    def shown(self, fetched: Path) -> str:
        """Name of a fetched file for messages: its ``salt://`` URL and its Git remote, because users do not know the
        mirror's path.
        """
        return self._shown.get(fetched, str(fetched))

    def _entry(self, path: str, saltenv: str) -> tuple[Mirror, GitTreeEntry] | None:
        path = posixpath.normpath(path) if path else ""
        if not path or path.startswith(("/", "..")) or "\0" in path:
            return None
        for view in self.views(saltenv):
            if (entry := view.find(path)) is not None:
                return view.mirror, entry
        return None


class PinnedFiles(ViewedFiles):
    """Files of fixed Git commits in one saltenv. Later fetches of the repositories do not change them."""

    def __init__(self, saltenv: str, views: Iterable[View], hash_type: str = "sha256") -> None:
        super().__init__(hash_type)
        self._env, self._views = saltenv, tuple(views)

    def envs(self) -> list[str]:
        """List with the one saltenv that the fixed commits serve."""
        return [self._env]

    def views(self, saltenv: str) -> Iterable[View]:
        """Return the views of the fixed commits if ``saltenv`` is their saltenv; else an empty list."""
        return self._views if saltenv == self._env else ()


def _begun(prefix: str, found: Iterable[str]) -> list[str]:
    return sorted(path for path in set(found) if path.startswith(prefix))
