"""The fileserver behind ``salt://``: the backends of the option ``fileserver_backend``, in their order.

When two backends have the same path, the first backend serves it. A backend implements ``ports.Files`` and also returns
stat(2) data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from statecore.model.errors import StatecoreError
from statecore.model.nearest import close_matches
from statecore.model.ports import FileHash, Files
from statecore.sources.fileserver.gitfs import GitFiles
from statecore.sources.fileserver.minionfs import MinionFiles
from statecore.sources.fileserver.users import BackendLoader, UserFiles, may_be_backend
from statecore.sources.local_tree import LocalFiles

#: Salt's alternative names of backends -> name.
ALIASES: Mapping[str, str] = {"git": "gitfs", "minion": "minionfs"}

_Found = TypeVar("_Found")


class UnknownBackend(StatecoreError):
    """Error: a fileserver backend does not exist, or is not in the option ``fileserver_backend``."""


class Backend(Files, Protocol):
    """Interface of a fileserver backend (roots, gitfs, minionfs, or one written by a user): it delivers files for
    ``salt://``.
    """

    def stat(self, path: str, saltenv: str = "base") -> list[int] | None:
        """Return the ten stat(2) fields of a file, or a list with its mode only; None when the backend has no such
        file.
        """
        ...


#: Name of a backend -> function that builds it from the options. Raises StatecoreError for invalid options.
BACKENDS: Mapping[str, Callable[[Mapping[str, object]], Backend]] = {
    "roots": LocalFiles.of,
    "gitfs": GitFiles.of,
    "minionfs": MinionFiles.of,
}


def backend_name(backend: str, opts: Mapping[str, object]) -> str:
    """Return the name of the fileserver backend that a name or alias (such as ``git``) means: a built-in backend, or a
    user's one. Raise UnknownBackend if there is no such backend.
    """
    found = ALIASES.get(backend, backend)
    if found not in BACKENDS and not may_be_backend(found, opts):
        near = close_matches(backend, BACKENDS, n=1)
        nearest = f"; the nearest is '{near[0]}'" if near else f"; there are {', '.join(BACKENDS)}"
        own = "your own lie in fileserver_dirs, or in extension_modules/fileserver (salt-run saltutil.sync_fileserver)"
        raise UnknownBackend(f"there is no file server backend '{backend}'{nearest}; {own}")
    return found


class FileServer:
    """Implementation of ``ports.Files`` over all fileserver backends: each path is served by the first backend that has
    it.
    """

    def __init__(self, backends: Mapping[str, Backend]) -> None:
        self.backends = backends

    @classmethod
    def of(cls, opts: Mapping[str, Any], load: BackendLoader) -> FileServer:
        """Return a fileserver with the backends that the option ``fileserver_backend`` names, in its order.

        ``load`` loads a user's backend when the backend is first used. Raises StatecoreError for options that cannot be
        used.
        """
        names = dict.fromkeys(backend_name(str(each), opts) for each in opts.get("fileserver_backend") or ["roots"])
        return cls({name: BACKENDS[name](opts) if name in BACKENDS else UserFiles(name, opts, load) for name in names})

    @property
    def users(self) -> list[UserFiles]:
        """List of the fileserver's backends that users wrote."""
        return [backend for backend in self.backends.values() if isinstance(backend, UserFiles)]

    def only(self, wanted: str | Sequence[str] | None) -> FileServer:
        """Return a fileserver with some of this one's backends: the backends that ``wanted`` names, or all except those
        named with a leading minus.

        ``wanted`` is a list, or a text with commas; None means all. Raises UnknownBackend for a backend that is not
        configured.
        """
        names = [str(each) for each in (wanted.split(",") if isinstance(wanted, str) else wanted or [])]
        if not names:
            return self
        without = [name[1:] for name in names if name.startswith("-")]
        chosen = [name for name in names if not name.startswith("-")]
        for name in chosen or without:
            if ALIASES.get(name, name) not in self.backends:
                # For a name that does not exist at all, this raises UnknownBackend with the nearest name.
                backend_name(name, {})
                raise UnknownBackend(f"the backend '{name}' is not in the option fileserver_backend")
        if chosen:
            meant = [ALIASES.get(name, name) for name in chosen]
            return FileServer({name: self.backends[name] for name in meant})
        left_out = {ALIASES.get(name, name) for name in without}
        return FileServer({name: each for name, each in self.backends.items() if name not in left_out})

    def envs(self) -> list[str]:
        """Names of the saltenvs of all fileserver backends, "base" first."""
        found = {env for backend in self.backends.values() for env in backend.envs()}
        return sorted(found, key=lambda name: (name != "base", name))

    def paths(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Sorted paths of the files of a saltenv whose path starts with ``prefix``, from all fileserver backends."""
        return self._all(lambda backend: backend.paths(saltenv, prefix))

    def dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Sorted paths of the directories of a saltenv whose path starts with ``prefix``, from all fileserver backends."""
        return self._all(lambda backend: backend.dirs(saltenv, prefix))

    def empty_dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Sorted paths of the empty directories of a saltenv, from all fileserver backends."""
        return self._all(lambda backend: backend.empty_dirs(saltenv, prefix))

    def symlinks(self, saltenv: str = "base", prefix: str = "") -> dict[str, str]:
        """Map of the path of each symbolic link of a saltenv to its target, from all fileserver backends."""
        found: dict[str, str] = {}
        for backend in reversed(list(self.backends.values())):
            found |= backend.symlinks(saltenv, prefix)
        return dict(sorted(found.items()))

    def hash(self, path: str, saltenv: str = "base") -> FileHash | None:
        """Digest of a file that the fileserver serves; None when there is no such file."""
        return self._first(lambda backend: backend.hash(path, saltenv))

    def mode(self, path: str, saltenv: str = "base") -> int | None:
        """Permission bits of a file that the fileserver serves; None when they are unknown."""
        return self._first(lambda backend: backend.mode(path, saltenv))

    def stat(self, path: str, saltenv: str = "base") -> list[int] | None:
        """Return the ten stat(2) fields of a file that the fileserver serves, or a list with its mode only; None when
        there is no such file.
        """
        return self._first(lambda backend: backend.stat(path, saltenv))

    def fetch(self, path: str, saltenv: str = "base") -> Path | None:
        """Local path with the content of a file that the fileserver serves; None when there is no such file."""
        return self._first(lambda backend: backend.fetch(path, saltenv))

    def source(self, path: str, saltenv: str = "base") -> tuple[str, Path] | None:
        """Return (name of the fileserver backend that serves a file, local path of the file's content); None when there
        is no such file.
        """
        for name, backend in self.backends.items():
            if (found := backend.fetch(path, saltenv)) is not None:
                return name, found
        return None

    def shown(self, fetched: Path) -> str:
        """Name of a fetched file for messages: its path, or its ``salt://`` URL if the path is a cached copy."""
        names = (backend.shown(fetched) for backend in self.backends.values())
        return next((shown for shown in names if shown != str(fetched)), str(fetched))

    def _first(self, ask: Callable[[Backend], _Found | None]) -> _Found | None:
        return next((found for backend in self.backends.values() if (found := ask(backend)) is not None), None)

    def _all(self, ask: Callable[[Backend], list[str]]) -> list[str]:
        lists = [ask(backend) for backend in self.backends.values()]
        return lists[0] if len(lists) == 1 else sorted(set().union(*lists))
