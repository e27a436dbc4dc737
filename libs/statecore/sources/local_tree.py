"""A state tree in local directories: the option ``file_roots`` of the master, or of a masterless minion. Salt's
backend ``roots``.

Lists of files are cached. Each use compares the time stamps of the tree's directories and of the targets of links, and
only a change causes a new walk. Digests are cached until the file changes. Files and directories are opened beneath their
root (``tree_roots``).
"""

from __future__ import annotations

import fnmatch
import logging
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

from statecore.host import beneath
from statecore.host.beneath import Links
from statecore.model.errors import StatecoreError
from statecore.model.ports import FileHash
from statecore.sources.tree_roots import ANY_ENV, TreePath, TreeRoot

log = logging.getLogger(__name__)

#: Bytes per read for a digest.
_BLOCK = 1024 * 1024

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

    With ``follow_links``, links are followed to any target; without, the target must be in the same root, and the name of
    a saltenv in the place of ``__env__`` must not be a link. A requested path never leads outside a root by ``..``.
    """

    def __init__(
        self,
        roots: Mapping[str, Sequence[str | Path | TreeRoot]],
        hash_type: str = "sha256",
        ignore_glob: Sequence[str] = (),
        *,
        ignore_regex: Sequence[str] = (),
        follow_links: bool = True,
        ignore_links: bool = False,
        list_seconds: float = 0,
    ) -> None:
        """Serve the root directories that ``roots`` maps to each saltenv; those of the saltenv ``__env__`` serve every saltenv
        without roots of its own. ``ignore_*``: patterns of relative or
        absolute paths that are not served. ``list_seconds``: seconds for which a cached list of files is used without
        a check.
        """
        self._roots = {saltenv: list(directories) for saltenv, directories in roots.items()}
        self._hash_type = hash_type
        patterns = [*(fnmatch.translate(glob) for glob in ignore_glob), *(f"(?:{each})" for each in ignore_regex)]
        self._ignore = [
            re.compile(pattern).match if index < len(ignore_glob) else re.compile(pattern).search
            for index, pattern in enumerate(patterns)
        ]
        self._links, self._ignore_links = Links.ANYWHERE if follow_links else Links.BENEATH, ignore_links
        self._list_seconds = list_seconds
        #: Path -> (stat fields of the digested file, digest).
        self._hashes: dict[Path, tuple[tuple[int, ...], FileHash]] = {}
        self._listings: dict[TreeRoot, _Listing] = {}

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
        return sorted((name for name in self._roots if name != ANY_ENV), key=lambda name: (name != "base", name))

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
        found = self._found(path, saltenv)
        if found is None:
            return None
        try:
            return self._known_digest(*found) or self.digest(found[0])
        except OSError as error:
            if error.errno not in beneath.REPLACED:
                raise
            # The file was removed, or replaced by a link or a directory, since it was found.
            return None

    def digest(self, found: Path) -> FileHash:
        """Digest of the file at the path ``found`` on disk, computed again only after the file changed. Raise OSError
        if the file cannot be read.
        """
        with found.open("rb") as file:
            status = os.fstat(file.fileno())
            known = self._known_digest(found, status)
            if known is not None:
                return known
            state = _stamp(status)
            # Imported here: OpenSSL takes milliseconds to load, and most commands compute no digest.
            import hashlib

            digest = hashlib.new(self._hash_type)
            while block := file.read(_BLOCK):
                digest.update(block)
        result = FileHash(self._hash_type, digest.hexdigest())
        if _settled([state], time.time_ns()):
            self._hashes[found] = (state, result)
        return result

    def _known_digest(self, found: Path, status: os.stat_result) -> FileHash | None:
        known = self._hashes.get(found)
        return known[1] if known is not None and known[0] == _stamp(status) else None

    def mode(self, path: str, saltenv: str = "base") -> int | None:
        """Permission bits of a file of the state tree; None when the saltenv has no such file."""
        found = self._found(path, saltenv)
        return None if found is None else found[1].st_mode & 0o7777

    def stat(self, path: str, saltenv: str = "base") -> list[int] | None:
        """Return the ten stat(2) fields of a file of the state tree as integers; None when the saltenv has no such
        file.
        """
        found = self._found(path, saltenv)
        return None if found is None else [int(number) for number in tuple(found[1])]

    def fetch(self, path: str, saltenv: str = "base") -> Path | None:
        """Path of a file of the state tree itself, not of a copy. None when the file does not exist, is not a regular
        file, is ignored, or is behind a forbidden link.

        Each use of the path opens the file beneath its root again. Read it by methods of the path.
        """
        found = self._found(path, saltenv)
        return None if found is None else found[0]

    def _found(self, path: str, saltenv: str) -> tuple[TreePath, os.stat_result] | None:
        """Return (path, status) of the file that the first root with such a file has."""
        if not path or path.startswith("/") or "\0" in path or ".." in path.split("/"):
            return None
        for root in self._roots_of(saltenv):
            found = root.file(path, self._links)
            try:
                status = found.stat()
            except (OSError, ValueError):
                continue
            if stat.S_ISREG(status.st_mode) and not self._ignored(path, str(found)):
                log.debug("Found salt://%s (saltenv %s): %s", path, saltenv, found)
                return found, status
        log.debug("No file salt://%s (saltenv %s) in its roots", path, saltenv)
        return None

    def shown(self, fetched: Path) -> str:
        """Path of a file of the state tree as text, for messages."""
        return str(fetched)

    def _roots_of(self, saltenv: str) -> list[TreeRoot]:
        roots = self._roots.get(saltenv)
        if roots is not None:
            return [root if isinstance(root, TreeRoot) else TreeRoot(str(root)) for root in roots]
        if not is_saltenv_name(saltenv):
            # The name of the saltenv comes from the request and must not lead out of the roots.
            return []
        return [
            root if isinstance(root, TreeRoot) else TreeRoot.of(root, saltenv) for root in self._roots.get(ANY_ENV, [])
        ]

    def _ignored(self, *names: str) -> bool:
        return bool(self._ignore) and any(matches(name) for matches in self._ignore for name in names)

    def _listing(self, root: TreeRoot) -> Listing:
        """Return the current listing of a root directory, from the cache if no directory changed."""
        known = self._listings.get(root)
        now = time.monotonic()
        if known is not None:
            if self._list_seconds and now - known.checked < self._list_seconds:
                return known.listing
            if known.settled and all(_stamp_of(path) == stamp for path, stamp in known.stamps.items()):
                self._listings[root] = known._replace(checked=now)
                return known.listing
        walk = _Walk(root, self._links, self._ignore_links, self._ignored)
        began = time.time_ns()
        listing = walk.listing()
        settled = _settled([stamp for stamp in walk.stamps.values() if stamp], began)
        if root.derived and walk.stamps.get(str(root.path)) is None:
            # The names of saltenvs that do not exist come from requests, and are without number.
            self._listings.pop(root, None)
        else:
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


class _Entry(NamedTuple):
    """An entry of a directory, read from the directory's descriptor."""

    name: str
    #: Text of the symbolic link; None for another file.
    link: str | None
    is_dir: bool
    is_file: bool


class _Walk:
    """One walk through a root directory of the state tree, which lists its content and records time stamps."""

    def __init__(self, root: TreeRoot, links: Links, ignore_links: bool, ignored: Callable[[str, str], bool]) -> None:
        self._root = root
        self._path = str(root.path)
        self._real = os.path.realpath(self._path)
        self._links, self._ignore_links, self._ignored = links, ignore_links, ignored
        self.stamps: dict[str, tuple[int, ...] | None] = {}
        self._files: set[str] = set()
        self._dirs: set[str] = set()
        self._empty: set[str] = set()
        self._seen: dict[str, str] = {}

    def listing(self) -> Listing:
        """Walk the root directory and return the relative paths of its files, directories, empty directories and links."""
        try:
            with self._root.opened(self._links) as top:
                self._walk(top, "", ())
        except OSError:
            self.stamps[self._path] = _stamp_of(self._path) if self._links is Links.ANYWHERE else None
        return Listing(frozenset(self._files), frozenset(self._dirs), frozenset(self._empty), self._seen)

    def _walk(self, top: int, directory: str, above: tuple[tuple[int, int], ...]) -> int:
        """Add everything below a directory, and return its number of entries.

        ``above``: (device, inode) of the directories that contain this one.
        """
        place = f"{self._path}/{directory}".rstrip("/") if directory else self._path
        read = self._read(top, directory)
        self.stamps[place] = _stamp(read[0]) if read is not None else None
        if read is None:
            return 1
        status, entries = read
        here = (status.st_dev, status.st_ino)
        if here in above:
            # A link to a directory that contains the link: its content is already listed.
            return len(entries)
        for entry in entries:
            self._add(top, f"{directory}/{entry.name}" if directory else entry.name, entry, (*above, here))
        return len(entries)

    def _add(self, top: int, relative: str, entry: _Entry, above: tuple[tuple[int, int], ...]) -> None:
        place = f"{self._path}/{relative}"
        is_dir, is_file = entry.is_dir, entry.is_file
        if entry.link is not None:
            if self._ignore_links:
                return
            self.stamps[place] = _stamp_of(place)
            kind = self._kind(relative)
            is_dir, is_file = stat.S_ISDIR(kind), stat.S_ISREG(kind)
        ignored = self._ignored(relative, place)
        if entry.link is not None and not ignored and (self._links is not Links.ANYWHERE or self._inside(place)):
            self._seen[relative] = entry.link
        if is_file and not ignored:
            self._files.add(relative)
        if is_dir:
            if not ignored:
                self._dirs.add(relative)
            if entry.link is None or self._links is Links.ANYWHERE:
                count = self._walk(top, relative, above)
            else:
                read = self._read(top, relative)
                count = 1 if read is None else len(read[1])
            if not count and not ignored:
                self._empty.add(relative)

    def _read(self, top: int, directory: str) -> tuple[os.stat_result, list[_Entry]] | None:
        """Return (status, entries) of a directory below the root; None if it cannot be read."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK
        try:
            descriptor = beneath.open_beneath(top, directory, flags, links=self._links)
        except OSError:
            return None
        try:
            with os.scandir(descriptor) as found:
                entries = [_entry(descriptor, each) for each in found]
            return os.fstat(descriptor), entries
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def _kind(self, relative: str) -> int:
        """Return the type (st_mode) of the target of a link; 0 if there is none, or the link is not followed."""
        try:
            return self._root.file(relative, self._links).stat().st_mode
        except OSError:
            return 0

    def _inside(self, path: str) -> bool:
        real = os.path.realpath(path)
        return real == self._real or real.startswith(f"{self._real}{os.sep}")


def _entry(directory: int, entry: os.DirEntry[str]) -> _Entry:
    link = (beneath.link_text(entry.name, directory) or "") if entry.is_symlink() else None
    is_dir, is_file = entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False)
    return _Entry(entry.name, link, is_dir, is_file)


def is_saltenv_name(name: str) -> bool:
    """Return whether the name of a saltenv is one component of a path, so that it can stand in the place of ``__env__``."""
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name


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
