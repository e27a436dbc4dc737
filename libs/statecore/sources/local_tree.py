"""A state tree in local directories: the option ``file_roots`` of the master, or of a masterless minion. Salt's
backend ``roots``.

Lists of files are cached. Each use compares the time stamps of the tree's directories and of the targets of links, and
only a change causes a new walk. Digests are cached until the file changes.
"""

from __future__ import annotations

import fnmatch
import logging
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

from statecore.host.rooted_path import leads_into
from statecore.model.errors import StatecoreError
from statecore.model.ports import FileHash

log = logging.getLogger(__name__)

#: Bytes per read for a digest.
_BLOCK = 1024 * 1024

#: Saltenv whose roots serve every other saltenv without roots of its own.
_ANY_ENV = "__env__"

#: Nanoseconds in which a second change may get the same time stamp: file systems have ticks of up to two seconds.
_TICK = 2_000_000_000


class Listing(NamedTuple):
    """Relative paths of the files, directories, empty directories and links below one root directory of the state tree."""

    files: frozenset[str] = frozenset()
    dirs: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()
    links: Mapping[str, str] = {}


class _Listing(NamedTuple):
    """A cached listing of a root directory, and the time stamps that must be unchanged for its reuse."""

    listing: Listing
    #: Path of a directory or link -> its stamp.
    stamps: Mapping[str, tuple[int, ...] | None]
    #: False: a change directly after the walk could have the same stamps.
    settled: bool
    #: Time of the last comparison, seconds of time.monotonic.
    checked: float


class LocalFiles:
    """Implementation of ``ports.Files`` over the local root directories of each saltenv. When two roots have the same
    path, the first root serves it.

    With ``follow_links``, links are followed to any target; without, the target must be in the same root. A requested
    path never leads outside a root by ``..``.
    """

    def __init__(
        self,
        roots: Mapping[str, Sequence[str | Path]],
        hash_type: str = "sha256",
        ignore_glob: Sequence[str] = (),
        *,
        ignore_regex: Sequence[str] = (),
        follow_links: bool = True,
        ignore_links: bool = False,
        list_seconds: float = 0,
    ) -> None:
        """Serve the root directories that ``roots`` maps to each saltenv. ``ignore_*``: patterns of relative or
        absolute paths that are not served. ``list_seconds``: seconds for which a cached list of files is used without
        a check.
        """
        self._roots = {saltenv: [Path(root) for root in paths] for saltenv, paths in roots.items()}
        self._hash_type = hash_type
        patterns = [*(fnmatch.translate(glob) for glob in ignore_glob), *(f"(?:{each})" for each in ignore_regex)]
        self._ignore = [
            re.compile(pattern).match if index < len(ignore_glob) else re.compile(pattern).search
            for index, pattern in enumerate(patterns)
        ]
        self._follow, self._ignore_links = follow_links, ignore_links
        self._list_seconds = list_seconds
        #: Path -> (stat fields of the digested file, digest).
        self._hashes: dict[Path, tuple[tuple[int, ...], FileHash]] = {}
        self._listings: dict[Path, _Listing] = {}

    @classmethod
    def of(cls, opts: Mapping[str, object]) -> LocalFiles:
        """Return the local state tree for the options file_roots, hash_type, file_ignore_*, fileserver_followsymlinks
        and fileserver_ignoresymlinks.
        """
        roots = opts.get("file_roots")
        return cls(
            roots if isinstance(roots, Mapping) else {}, str(opts.get("hash_type") or "sha256"), **tree_options(opts)
        )

    def envs(self) -> list[str]:
        """Names of the saltenvs that have root directories, "base" first."""
        return sorted((name for name in self._roots if name != _ANY_ENV), key=lambda name: (name != "base", name))

    def paths(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Sorted relative paths of the files of a saltenv whose path starts with ``prefix``."""
        return _with_prefix(prefix, *(self._listing(root).files for root in self._roots_of(saltenv)))

    def dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Sorted relative paths of the directories of a saltenv whose path starts with ``prefix``."""
        return _with_prefix(prefix, *(self._listing(root).dirs for root in self._roots_of(saltenv)))

    def empty_dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Sorted relative paths of the empty directories of a saltenv whose path starts with ``prefix``."""
        return _with_prefix(prefix, *(self._listing(root).empty for root in self._roots_of(saltenv)))

    def symlinks(self, saltenv: str = "base", prefix: str = "") -> dict[str, str]:
        """Map of the relative path of each symbolic link of a saltenv to its target: links within the state tree; all
        links when links are not followed.
        """
        found: dict[str, str] = {}
        for root in reversed(self._roots_of(saltenv)):
            found |= {path: to for path, to in self._listing(root).links.items() if path.startswith(prefix)}
        return dict(sorted(found.items()))

    def hash(self, path: str, saltenv: str = "base") -> FileHash | None:
        """Digest of a file of the state tree; None when the saltenv has no such file."""
        found = self.fetch(path, saltenv)
        return None if found is None else self.digest(found)

    def digest(self, found: Path) -> FileHash:
        """Digest of the file at the path ``found`` on disk, computed again only after the file changed. Raise OSError
        if the file cannot be read.
        """
        state = _stamp(found.stat())
        known = self._hashes.get(found)
        if known is not None and known[0] == state:
            return known[1]
        # Imported here: OpenSSL takes milliseconds to load, and most commands compute no digest.
        import hashlib

        digest = hashlib.new(self._hash_type)
        with found.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        result = FileHash(self._hash_type, digest.hexdigest())
        if _settled([state], time.time_ns()):
            self._hashes[found] = (state, result)
        return result

    def mode(self, path: str, saltenv: str = "base") -> int | None:
        """Permission bits of a file of the state tree; None when the saltenv has no such file."""
        found = self.fetch(path, saltenv)
        return None if found is None else found.stat().st_mode & 0o7777

    def stat(self, path: str, saltenv: str = "base") -> list[int] | None:
        """Return the ten stat(2) fields of a file of the state tree as integers; None when the saltenv has no such
        file.
        """
        found = self.fetch(path, saltenv)
        return None if found is None else [int(number) for number in tuple(found.stat())]

    def fetch(self, path: str, saltenv: str = "base") -> Path | None:
        """Path of a file of the state tree itself, not of a copy. None when the file does not exist, is not a regular
        file, is ignored, or is behind a forbidden link.
        """
        if not path or path.startswith("/") or "\0" in path or ".." in path.split("/"):
            return None
        for root in self._roots_of(saltenv):
            found = root / path
            try:
                served = found.is_file() and (self._follow or leads_into(found, root))
            except (OSError, RuntimeError):
                continue
            if served and not self._ignored(path, str(found)):
                log.debug("Found salt://%s (saltenv %s): %s", path, saltenv, found)
                return found
        log.debug("No file salt://%s (saltenv %s) in its roots", path, saltenv)
        return None

    def shown(self, fetched: Path) -> str:
        """Path of a file of the state tree as text, for messages."""
        return str(fetched)

    def _roots_of(self, saltenv: str) -> list[Path]:
        roots = self._roots.get(saltenv)
        if roots is not None:
            return roots
        if saltenv in ("", ".", "..") or "/" in saltenv or "\0" in saltenv:
            # The name of the saltenv comes from the request and must not lead out of the roots.
            return []
        return [Path(str(root).replace(_ANY_ENV, saltenv)) for root in self._roots.get(_ANY_ENV, [])]

    def _ignored(self, *names: str) -> bool:
        return bool(self._ignore) and any(matches(name) for matches in self._ignore for name in names)

    def _listing(self, root: Path) -> Listing:
        """Return the current listing of a root directory, from the cache if no directory changed."""
        known = self._listings.get(root)
        now = time.monotonic()
        if known is not None:
            if self._list_seconds and now - known.checked < self._list_seconds:
                return known.listing
            if known.settled and all(_stamp_of(path) == stamp for path, stamp in known.stamps.items()):
                self._listings[root] = known._replace(checked=now)
                return known.listing
        walk = _Walk(str(root), self._follow, self._ignore_links, self._ignored)
        began = time.time_ns()
        listing = walk.listing()
        settled = _settled([stamp for stamp in walk.stamps.values() if stamp], began)
        self._listings[root] = _Listing(listing, walk.stamps, settled, now)
        return listing


class TreeOptions(TypedDict, total=False):
    """Keyword arguments of ``LocalFiles`` that come from the options of the fileserver."""

    ignore_glob: list[str]
    ignore_regex: list[str]
    follow_links: bool
    ignore_links: bool
    list_seconds: float


def tree_options(opts: Mapping[str, object]) -> TreeOptions:
    """Return the keyword arguments of ``LocalFiles`` that the options of the fileserver describe. Raises StatecoreError
    for invalid options.
    """
    expressions = _words(opts.get("file_ignore_regex"))
    for expression in expressions:
        try:
            re.compile(expression)
        except re.error as error:
            raise StatecoreError(
                f"file_ignore_regex: {expression!r} is not a valid regular expression: {error}"
            ) from error
    return {
        "ignore_glob": _words(opts.get("file_ignore_glob")),
        "ignore_regex": expressions,
        "follow_links": bool(opts.get("fileserver_followsymlinks", True)),
        "ignore_links": bool(opts.get("fileserver_ignoresymlinks", False)),
        "list_seconds": float(str(opts.get("fileserver_list_cache_time") or 0)),
    }


def _words(value: object) -> list[str]:
    if isinstance(value, list | tuple | set):
        return [str(each) for each in value]
    return [str(value)] if value else []


class _Walk:
    """One walk through a root directory of the state tree, which lists its content and records time stamps."""

    def __init__(self, root: str, follow: bool, ignore_links: bool, ignored: Callable[[str, str], bool]) -> None:
        self._root = root
        self._real = os.path.realpath(root)
        self._follow, self._ignore_links, self._ignored = follow, ignore_links, ignored
        self.stamps: dict[str, tuple[int, ...] | None] = {}

    def listing(self) -> Listing:
        """Walk the root directory and return the relative paths of its files, directories, empty directories and links."""
        files: set[str] = set()
        dirs: set[str] = set()
        empty: set[str] = set()
        links: dict[str, str] = {}
        for entry, relative, link in self._entries(self._root, "", ()):
            if self._ignored(relative, entry.path):
                continue
            if link is not None and (not self._follow or self._inside(entry.path)):
                links[relative] = link
            if _type_is(entry.is_dir):
                dirs.add(relative)
                if _holds_nothing(entry.path):
                    empty.add(relative)
            elif _type_is(entry.is_file) and (link is None or self._follow or leads_into(entry.path, self._root)):
                files.add(relative)
        return Listing(frozenset(files), frozenset(dirs), frozenset(empty), links)

    def _entries(
        self, directory: str, prefix: str, above: tuple[tuple[int, int], ...]
    ) -> Iterator[tuple[os.DirEntry[str], str, str | None]]:
        """Yield (directory entry, relative path, target if it is a symbolic link else None) of everything below a
        directory.
        """
        status = _stat(directory)
        self.stamps[directory] = _stamp(status) if status is not None else None
        if status is None or (status.st_dev, status.st_ino) in above:
            # A link to a directory that contains the link: its content is already listed.
            return
        try:
            with os.scandir(directory) as found:
                entries = list(found)
        except OSError:
            return
        for entry in entries:
            relative = f"{prefix}{entry.name}"
            link = _target(entry) if entry.is_symlink() else None
            if link is not None:
                if self._ignore_links:
                    continue
                self.stamps[entry.path] = _stamp_of(entry.path)
            yield entry, relative, link
            if _type_is(entry.is_dir) and (link is None or self._follow):
                here = (*above, (status.st_dev, status.st_ino))
                yield from self._entries(entry.path, f"{relative}/", here)

    def _inside(self, path: str) -> bool:
        real = os.path.realpath(path)
        return real == self._real or real.startswith(f"{self._real}{os.sep}")


def _with_prefix(prefix: str, *found: Iterable[str]) -> list[str]:
    """Return the sorted paths of all given collections that start with ``prefix``."""
    return sorted(path for path in set().union(*found) if path.startswith(prefix))


def _stat(path: str) -> os.stat_result | None:
    try:
        # Creating a Path for each of thousands of entries is slower than the system calls.
        return os.stat(path)  # noqa: PTH116
    except OSError:
        return None


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev)


def _stamp_of(path: str) -> tuple[int, ...] | None:
    """Return the stamp (numbers from stat(2)) of a directory, which changes with its entries. For another file, the
    stamp is only its type. None if the path does not exist.
    """
    status = _stat(path)
    if status is None:
        return None
    return _stamp(status) if stat.S_ISDIR(status.st_mode) else (stat.S_IFMT(status.st_mode),)


def _settled(stamps: Iterable[tuple[int, ...]], now: int) -> bool:
    """Return whether all time stamps are so old that a change after ``now`` would get another time stamp.

    Time stamps far in the future come from clocks of other machines and count as old.
    """
    return all(not -_TICK < now - stamp[0] < _TICK for stamp in stamps)


def _target(entry: os.DirEntry[str]) -> str:
    try:
        return os.readlink(entry.path)  # noqa: PTH115 - as above
    except OSError:
        return ""


def _type_is(asked: Callable[[], bool]) -> bool:
    """Return the result of a method such as ``entry.is_dir``; False if the method raises OSError, as for links in a
    loop.
    """
    try:
        return asked()
    except OSError:
        return False


def _holds_nothing(directory: str) -> bool:
    try:
        with os.scandir(directory) as found:
            return next(found, None) is None
    except OSError:
        return False
