"""A state tree in local directories: ``file_roots`` of the master, or of a minion without one."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from statecore.ports import FileHash

#: Bytes read at a time for a digest.
_BLOCK = 1024 * 1024

#: An environment that serves every other one that is asked for by name and has no roots of its own.
_ANY_ENV = "__env__"


class LocalFiles:
    """Serves files from lists of roots; of two roots with one path, the first wins. Nothing outside a root is ever served."""

    def __init__(
        self, roots: Mapping[str, Sequence[str | Path]], hash_type: str = "sha256", ignore_glob: Sequence[str] = ()
    ) -> None:
        self._roots = {saltenv: [Path(root) for root in paths] for saltenv, paths in roots.items()}
        self._hash_type = hash_type
        self._ignore = tuple(ignore_glob)
        #: (real path) -> (what the digest is of, digest): a file is read again only after it changed.
        self._hashes: dict[Path, tuple[tuple[int, int, int], FileHash]] = {}

    def envs(self) -> list[str]:
        """Environments that exist, "base" first."""
        return sorted((name for name in self._roots if name != _ANY_ENV), key=lambda name: (name != "base", name))

    def paths(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Relative paths of all files, sorted."""
        return sorted({path for path, kind in self._walk(saltenv, prefix) if kind == "file"})

    def dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Relative paths of all directories, sorted."""
        return sorted({path for path, kind in self._walk(saltenv, prefix) if kind != "file"})

    def empty_dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Relative paths of the directories that hold nothing, sorted."""
        return sorted({path for path, kind in self._walk(saltenv, prefix) if kind == "empty"})

    def symlinks(self, saltenv: str = "base", prefix: str = "") -> dict[str, str]:
        """Relative path -> target of every link in the tree, wherever it leads; a link's target is no file's content."""
        found: dict[str, str] = {}
        for root in reversed(self._roots_of(saltenv)):
            for path in _scan(root, prefix):
                relative = path.relative_to(root).as_posix()
                if path.is_symlink() and relative.startswith(prefix) and not self._ignored(relative):
                    found[relative] = str(path.readlink())
        return dict(sorted(found.items()))

    def hash(self, path: str, saltenv: str = "base") -> FileHash | None:
        """Digest of a file."""
        found = self.fetch(path, saltenv)
        if found is None:
            return None
        stat = found.stat()
        state = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        known = self._hashes.get(found)
        if known is not None and known[0] == state:
            return known[1]
        # OpenSSL takes milliseconds to load, and most commands compare no file.
        import hashlib

        digest = hashlib.new(self._hash_type)
        with found.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        result = FileHash(self._hash_type, digest.hexdigest())
        self._hashes[found] = (state, result)
        return result

    def mode(self, path: str, saltenv: str = "base") -> int | None:
        """Permission bits of a file."""
        found = self.fetch(path, saltenv)
        return None if found is None else found.stat().st_mode & 0o7777

    def fetch(self, path: str, saltenv: str = "base") -> Path | None:
        """The file itself; None for one that does not exist, is no file, is ignored, or would lie outside its root."""
        if not path or path.startswith("/") or "\0" in path or ".." in path.split("/") or self._ignored(path):
            return None
        for root in self._roots_of(saltenv):
            candidate = root / path
            try:
                real = candidate.resolve(strict=True)
                if real.is_file() and real.is_relative_to(root.resolve()):
                    return real
            except (OSError, RuntimeError):
                continue
        return None

    def shown(self, fetched: Path) -> str:
        """The path: it is the file itself."""
        return str(fetched)

    def _roots_of(self, saltenv: str) -> list[Path]:
        roots = self._roots.get(saltenv)
        if roots is not None:
            return roots
        if saltenv in ("", ".", "..") or "/" in saltenv or "\0" in saltenv:
            # Whoever asks names the environment: it must not become a way out of the roots.
            return []
        return [Path(str(root).replace(_ANY_ENV, saltenv)) for root in self._roots.get(_ANY_ENV, [])]

    def _ignored(self, relative: str) -> bool:
        return any(fnmatch.fnmatchcase(relative, pattern) for pattern in self._ignore)

    def _walk(self, saltenv: str, prefix: str) -> Iterator[tuple[str, str]]:
        """(relative path, "file" | "dir" | "empty") of everything that is served and begins with ``prefix``."""
        for root in self._roots_of(saltenv):
            if not root.is_dir():
                continue
            real_root = root.resolve()
            for path in _scan(root, prefix):
                relative = path.relative_to(root).as_posix()
                if not relative.startswith(prefix) or self._ignored(relative):
                    continue
                link = path.is_symlink()
                if path.is_dir() and not link:
                    yield relative, "dir" if any(path.iterdir()) else "empty"
                # Links to directories are not walked into, so only a file that is a link itself can lead out.
                elif path.is_file() and (not link or path.resolve().is_relative_to(real_root)):
                    yield relative, "file"


def _scan(root: Path, prefix: str = "") -> Iterator[Path]:
    """Everything below a directory of which the path could begin with ``prefix``; links to directories are not walked into."""
    top = root
    for part in prefix.split("/")[:-1]:
        top = top / part
        if part in ("", ".", "..") or top.is_symlink():
            return
    for directory, names, files in os.walk(top):
        for name in (*names, *files):
            yield Path(directory, name)
