"""A bare mirror of a Git repository: one process fetches it, many processes read it. There is no checkout.

Readers use the refs in the file ``refs.json``, which is replaced atomically after a successful fetch: a reader sees all
branches and tags of one moment. A failed fetch changes nothing. git keeps objects without a ref for two weeks, so that
readers of an old tree still find them.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from statecore.host.content import private_files
from statecore.model.errors import StatecoreError
from statecore.model.text_lines import lines_of
from statecore.sources.gitrepos.git import GitFault, git_environment, run_git
from statecore.sources.gitrepos.remotes import GitRemote
from statecore.sources.gitrepos.tree import GitTree, GitTreeEntry, is_link, read_tree

#: Time limit of one fetch in seconds: enough to clone a large repository over a slow connection.
_FETCH_SECONDS = 600.0

#: Number of commit trees in memory: enough for all branches in use.
_TREES = 64

#: Number of short commit ids in memory.
_LOOKUPS = 256

#: Age in seconds from which the time stamp of an exported file is renewed at its use.
_STALE = 86400.0

_REFS = "refs.json"

_LOCKED = "update.lk"


def mirrors_directory(opts: Mapping[str, object], role: str) -> Path:
    """Return the directory of the Git mirrors of ``role`` ("gitfs" or "git_pillar"): below the option ``mirrors_dir``
    if it is set, else below ``cachedir``.
    """
    return Path(str(opts.get("mirrors_dir") or opts.get("cachedir") or "")) / role


class NotFetched(StatecoreError):
    """Error: the Git mirror has not been fetched yet, so its content is unknown."""


class UpdateLocked(StatecoreError):
    """Error: the Git remote is locked against updates (``fileserver.lock``)."""


class Mirror:
    """The local bare mirror of one Git remote. Remotes with the same URL and refspecs share a mirror."""

    def __init__(self, directory: Path, remote: GitRemote) -> None:
        self.remote = remote
        identity = json.dumps([remote.url, list(remote.refspecs), remote.depth, remote.user])
        self._home = directory
        self._blobs = directory / "blobs"
        self.place = directory / "mirrors" / hashlib.sha256(identity.encode()).hexdigest()[:32]
        self._refs: Mapping[str, str] = {}
        self._refs_stamp: tuple[int, ...] | None = None
        self._trees: dict[str, GitTree] = {}
        self._known: dict[str, str | None] = {}

    # ----------------------------------------------------------------------------------------------------------------- reading

    def refs(self) -> Mapping[str, str]:
        """Map of each ref of the Git mirror (branch or tag) to its commit id, as of the last fetch. The map is the same
        object until the next change. Raise NotFetched if the mirror has not been fetched yet, or cannot be read.
        """
        path = self.place / _REFS
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_ino, status.st_size)
            if stamp != self._refs_stamp:
                self._refs = json.loads(path.read_bytes())
                self._refs_stamp = stamp
                self._known.clear()
        except FileNotFoundError:
            raise NotFetched(
                f"{self.remote.role} remote '{self.remote.shown}' has not been fetched yet; "
                "the log of maintenance, or of salt-call --local, says why"
            ) from None
        except (OSError, ValueError) as error:
            raise NotFetched(
                f"{self.remote.role} remote '{self.remote.shown}': {path} cannot be read: {error}"
            ) from error
        return self._refs

    def lookup(self, commit: str) -> str | None:
        """Return the full id of a Git commit (full or abbreviated); None when the mirror does not have it."""
        if commit not in self._known:
            if len(self._known) >= _LOOKUPS:
                self._known.clear()
            found = self._git(["rev-parse", "--verify", "-q", f"{commit}^{{commit}}"], check=False)
            self._known[commit] = found.decode().strip() or None
        return self._known[commit]

    def tree(self, commit: str) -> GitTree:
        """Return the file tree of a Git commit of the mirror. Raises GitFault if git fails."""
        known = self._trees.pop(commit, None)
        if known is None:
            files, dirs = read_tree(self._git(["ls-tree", "-r", "-t", "-z", "--full-tree", commit]))
            known = GitTree(files, dirs, self._targets({path: each for path, each in files.items() if is_link(each)}))
        self._trees[commit] = known
        if len(self._trees) > _TREES:
            del self._trees[next(iter(self._trees))]
        return known

    def exported(self, entry: GitTreeEntry, name: str) -> Path:
        """Return the path of a local file with the content of a Git blob, written at the first call. ``name`` is the
        file's name. Raise GitFault if git cannot read the blob, OSError if the file cannot be written.
        """
        place = self._blobs / entry.blob[:2] / entry.blob[2:] / name
        try:
            if time.time() - place.stat().st_mtime > _STALE:
                # A recent time stamp protects the file from the cleanup of unused files.
                os.utime(place)
            return place
        except FileNotFoundError:
            pass
        with private_files.writer(place, executable=bool(entry.mode & 0o100)) as file:
            # git writes into the file itself: a blob may be larger than memory.
            self._git(["cat-file", "blob", entry.blob], stdout=file.fileno())
        return place

    def _targets(self, links: Mapping[str, GitTreeEntry]) -> dict[str, str]:
        if not links:
            return {}
        wanted = list(links.items())
        output = self._git(["cat-file", "--batch"], stdin="\n".join(each.blob for _, each in wanted).encode() + b"\n")
        found: dict[str, str] = {}
        at = 0
        for path, _ in wanted:
            end = output.index(b"\n", at)
            size = int(output[at:end].split()[2])
            found[path] = output[end + 1 : end + 1 + size].decode("utf-8", "surrogateescape")
            at = end + 1 + size + 1
        return found

    # ---------------------------------------------------------------------------------------------------------------- updating

    def update(self) -> bool:
        """Fetch the Git remote into the mirror. Return True if a branch or tag changed. Raise UpdateLocked if updates
        are locked, GitFault if git fails; the old refs then stay.
        """
        if self.locked():
            raise UpdateLocked(f"Update lock file is present for {self.remote.role} remote '{self.remote.shown}'")
        try:
            private_files.directory(self.place)
            with self._exclusive():
                return self._updated()
        except OSError as error:
            raise GitFault(f"{error.filename or self.place}: {error.strerror}") from error

    def _updated(self) -> bool:
        if not (self.place / "HEAD").is_file():
            self._git(["init", "--bare", "-q", str(self.place)])
        depth = ["--depth", str(self.remote.depth)] if self.remote.depth else []
        words = ["fetch", "--atomic", "--prune", "--no-tags", "--quiet", "--no-write-fetch-head", *depth]
        self._git([*words, "--", self.remote.url, *self.remote.refspecs], timeout=_FETCH_SECONDS)
        output = self._git(["for-each-ref", "--format=%(refname)%00%(objecttype)%00%(objectname)%00%(*objectname)"])
        found: dict[str, str] = {}
        for line in lines_of(output.decode("utf-8", "surrogateescape")):
            ref, kind, own, behind = line.split("\0")
            found[ref] = behind if kind == "tag" else own
        path = self.place / _REFS
        before = path.read_bytes() if path.is_file() else b""
        after = json.dumps(found, sort_keys=True).encode()
        if before == after:
            return False
        private_files.write(path, after)
        return True

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold a lock between processes while the context is open, so that one process fetches the mirror at a time.
        The kernel frees the lock when a process dies.
        """
        with private_files.opened(self.place / "fetch.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def locked(self) -> bool:
        """Return True if updates of the Git mirror are locked (``fileserver.lock``)."""
        return (self.place / _LOCKED).exists()

    def lock(self) -> bool:
        """Lock the Git mirror against updates until ``unlock``, and return True; return False when it was already locked.

        Raises OSError if the lock file cannot be written.
        """
        private_files.directory(self.place)
        try:
            private_files.touch(self.place / _LOCKED, exist_ok=False)
        except FileExistsError:
            return False
        return True

    def unlock(self) -> bool:
        """Allow updates of the Git mirror again, and return True; return False if they were not locked.

        Raises OSError if the lock file cannot be removed.
        """
        try:
            (self.place / _LOCKED).unlink()
        except FileNotFoundError:
            return False
        return True

    def _git(
        self,
        words: Sequence[str],
        *,
        stdin: bytes | None = None,
        stdout: int | None = None,
        check: bool = True,
        timeout: float | None = None,
    ) -> bytes:
        environment = git_environment(self.remote, self.place, self._home)
        return run_git(words, environment, stdin=stdin, stdout=stdout, check=check, timeout=timeout)
