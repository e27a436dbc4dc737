"""The fileserver backend ``minionfs``: files that minions pushed with ``cp.push``, below
``cachedir/minions/<id>/files``.

Minions decide what they push. Therefore links are not followed, and a pushed top file is not served.

Salt: salt/fileserver/minionfs.py
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from statecore.model.ports import FileHash
from statecore.sources.local_tree import LocalFiles, TreeOptions, tree_options
from statecore.sources.tree_roots import TreeRoot

_TOP = "top.sls"


def _patterns(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(map(str, value)) if isinstance(value, Iterable) else ()


class MinionFiles:
    """The fileserver backend ``minionfs``: files that minions pushed, each below its minion's id, in one saltenv."""

    def __init__(
        self,
        directory: Path,
        hash_type: str = "sha256",
        *,
        env: str = "base",
        mountpoint: str = "",
        whitelist: Sequence[str] = (),
        blacklist: Sequence[str] = (),
        tree: TreeOptions | None = None,
    ) -> None:
        """Serve the files below ``directory``, which contains one directory for each minion. ``whitelist`` and
        ``blacklist`` are patterns of the minion ids to serve. ``tree``: further arguments of ``LocalFiles``, such as
        ignored paths.
        """
        self._directory = directory
        self._hash_type = hash_type
        self._env = env
        self._mountpoint = mountpoint.removeprefix("salt://").strip("/")
        self._whitelist, self._blacklist = tuple(whitelist), tuple(blacklist)
        self._tree: TreeOptions = {**(tree or {}), "follow_links": False, "ignore_links": True}
        self._minions: dict[str, LocalFiles] = {}

    @classmethod
    def of(cls, opts: Mapping[str, object]) -> MinionFiles:
        """Return the fileserver backend ``minionfs`` for the options cachedir, minionfs_env, minionfs_mountpoint,
        minionfs_whitelist and minionfs_blacklist.
        """
        return cls(
            Path(str(opts.get("cachedir") or "")) / "minions",
            str(opts.get("hash_type") or "sha256"),
            env=str(opts.get("minionfs_env") or "base"),
            mountpoint=str(opts.get("minionfs_mountpoint") or ""),
            whitelist=_patterns(opts.get("minionfs_whitelist")),
            blacklist=_patterns(opts.get("minionfs_blacklist")),
            tree=tree_options(opts),
        )

    def envs(self) -> list[str]:
        """List with the one saltenv that serves pushed files (option ``minionfs_env``)."""
        return [self._env]

    def paths(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Sorted paths of the files that minions pushed, without top files."""
        found = self._all(saltenv, prefix, lambda files: files.paths())
        return [path for path in found if posixpath.basename(path) != _TOP]

    def dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Sorted paths of the directories of the files that minions pushed."""
        return self._all(saltenv, prefix, lambda files: files.dirs())

    def empty_dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Always an empty list: minions push files only, so no directory is empty."""
        return []

    def symlinks(self, saltenv: str = "base", prefix: str = "") -> dict[str, str]:
        """Always an empty map: the backend ``minionfs`` does not serve symbolic links."""
        return {}

    def hash(self, path: str, saltenv: str = "base") -> FileHash | None:
        """Digest of a pushed file; None when no minion pushed such a file."""
        found = self._found(path, saltenv)
        return found and found[0].hash(found[1])

    def mode(self, path: str, saltenv: str = "base") -> int | None:
        """Permission bits of a pushed file; None when no minion pushed such a file."""
        found = self._found(path, saltenv)
        return found and found[0].mode(found[1])

    def stat(self, path: str, saltenv: str = "base") -> list[int] | None:
        """Return the ten stat(2) fields of a pushed file; None when no minion pushed such a file."""
        found = self._found(path, saltenv)
        return found and found[0].stat(found[1])

    def fetch(self, path: str, saltenv: str = "base") -> Path | None:
        """Path of the pushed file itself in the master's cache directory; None when no minion pushed such a file."""
        found = self._found(path, saltenv)
        return found and found[0].fetch(found[1])

    def shown(self, fetched: Path) -> str:
        """Path of a pushed file as text, for messages."""
        return str(fetched)

    def _found(self, path: str, saltenv: str) -> tuple[LocalFiles, str] | None:
        """Return (pushed files of one minion, path among these files) for a path of the fileserver; None when the path
        does not start with the id of a minion.
        """
        begin = f"{self._mountpoint}/" if self._mountpoint else ""
        if saltenv != self._env or not path.startswith(begin) or posixpath.basename(path) == _TOP:
            return None
        minion, _, pushed = path.removeprefix(begin).partition("/")
        return (self._files_of(minion), pushed) if pushed and self._exposed(minion) else None

    def _all(self, saltenv: str, prefix: str, listed: Callable[[LocalFiles], list[str]]) -> list[str]:
        if saltenv != self._env:
            return []
        begin = f"{self._mountpoint}/" if self._mountpoint else ""
        minions = filter(self._exposed, self._ids())
        found = (f"{begin}{minion}/{path}" for minion in minions for path in listed(self._files_of(minion)))
        return sorted(path for path in found if path.startswith(prefix))

    def _ids(self) -> list[str]:
        try:
            return [each.name for each in self._directory.iterdir() if each.is_dir() and not each.is_symlink()]
        except OSError:
            return []

    def _files_of(self, minion: str) -> LocalFiles:
        known = self._minions.get(minion)
        if known is None:
            root = TreeRoot(str(self._directory), f"{minion}/files")
            known = LocalFiles({"base": [root]}, self._hash_type, **self._tree)
            # The names of minions that do not exist come from requests, and are without number.
            if minion in self._ids():
                self._minions[minion] = known
        return known

    def _exposed(self, minion: str) -> bool:
        if minion in ("", ".", ".."):
            return False
        if self._whitelist and not any(fnmatchcase(minion, each) for each in self._whitelist):
            return False
        return not any(fnmatchcase(minion, each) for each in self._blacklist)
