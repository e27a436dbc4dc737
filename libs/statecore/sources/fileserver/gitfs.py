"""The fileserver backend ``gitfs``: branches, tags and commits of Git repositories as saltenvs.

It reads mirrors that the maintenance role updates and never fetches, so a request never waits for a remote server. A
remote without a mirror is named in the log and serves nothing.

Salt: salt/fileserver/gitfs.py
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from statecore.sources.gitrepos.files import View, ViewedFiles
from statecore.sources.gitrepos.mirror import Mirror, NotFetched, mirrors_directory
from statecore.sources.gitrepos.refs import COMMIT, commit_of, environments
from statecore.sources.gitrepos.remotes import GITFS, GitRemote, gitfs_remotes

log = logging.getLogger(__name__)


class GitFiles(ViewedFiles):
    """The fileserver backend ``gitfs``: files of the Git remotes in their order. When two remotes have the same path,
    the first remote serves it.
    """

    def __init__(self, directory: Path, remotes: Sequence[GitRemote], hash_type: str = "sha256") -> None:
        super().__init__(hash_type)
        self._mirrors = [Mirror(directory, remote) for remote in remotes]
        #: Last logged message about each remote: the same message is logged once.
        self._told: dict[str, str] = {}
        #: Mirror -> (its refs, the saltenvs of these refs).
        self._envs: dict[Path, tuple[Mapping[str, str], set[str]]] = {}

    @classmethod
    def of(cls, opts: Mapping[str, object]) -> GitFiles:
        """Return the fileserver backend ``gitfs`` for the options ``cachedir`` and ``gitfs_*``. Raises GitConfigError
        for invalid options.
        """
        return cls(mirrors_directory(opts, GITFS), gitfs_remotes(opts), str(opts.get("hash_type") or "sha256"))

    def envs(self) -> list[str]:
        """Names of the saltenvs that the Git remotes serve, "base" first."""
        found: set[str] = set()
        for number, mirror in enumerate(self._mirrors):
            found |= self._envs_of(number, mirror)
        return sorted(found, key=lambda name: (name != "base", name))

    def views(self, saltenv: str) -> Iterator[View]:
        """Yield one view (the files of one commit) for each Git remote that serves the saltenv. Raises GitFault if git
        fails.
        """
        known = bool(COMMIT.fullmatch(saltenv)) or saltenv in self.envs()
        for mirror in self._mirrors:
            if not known and not mirror.remote.fallback:
                continue
            try:
                commit = commit_of(mirror.remote, saltenv, mirror.refs(), mirror.lookup)
            except NotFetched:
                continue
            if commit is not None:
                yield View(mirror, mirror.tree(commit), *mirror.remote.place(saltenv))

    def _envs_of(self, number: int, mirror: Mirror) -> set[str]:
        try:
            refs = mirror.refs()
        except NotFetched as missing:
            self._tell(mirror.remote.id, str(missing))
            return set()
        known = self._envs.get(place := mirror.place / str(number))
        if known is None or known[0] is not refs:
            known = self._envs[place] = (refs, environments(mirror.remote, refs))
        return known[1]

    def _tell(self, remote: str, text: str) -> None:
        if self._told.get(remote) != text:
            self._told[remote] = text
            log.error("%s", text)
