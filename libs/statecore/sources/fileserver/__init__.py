"""What a master serves behind ``salt://``: the backends of the option ``fileserver_backend``, in their order.

Of two backends with one path the first wins. A backend is a ``Files`` that knows besides what stat(2) tells of a file.
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
from statecore.sources.fileserver.users import BackendLoader, UserFiles, claimed
from statecore.sources.local_tree import LocalFiles

#: Salt's other names of backends.
ALIASES: Mapping[str, str] = {"git": "gitfs", "minion": "minionfs"}

_Found = TypeVar("_Found")


class UnknownBackend(StatecoreError):
    """A file server backend that is not here, or not switched on."""


class Backend(Files, Protocol):
    """Where files come from."""

    def stat(self, path: str, saltenv: str = "base") -> list[int] | None:
        """What stat(2) tells of a file, or its mode alone; None when there is no such file."""
        ...


#: Name of a backend -> what makes it of options. Raises StatecoreError for options that cannot be used.
BACKENDS: Mapping[str, Callable[[Mapping[str, Any]], Backend]] = {
    "roots": LocalFiles.of,
    "gitfs": GitFiles.of,
    "minionfs": MinionFiles.of,
}


def named(backend: str, opts: Mapping[str, Any]) -> str:
    """The backend that a name means: one of ours, or a user's file. Raises UnknownBackend."""
    found = ALIASES.get(backend, backend)
    if found not in BACKENDS and not claimed(found, opts):
        near = close_matches(backend, BACKENDS, n=1)
        nearest = f"; the nearest is '{near[0]}'" if near else f"; there are {', '.join(BACKENDS)}"
        own = "your own lie in fileserver_dirs, or in extension_modules/fileserver (salt-run saltutil.sync_fileserver)"
        raise UnknownBackend(f"there is no file server backend '{backend}'{nearest}; {own}")
    return found


class FileServer:
    """Implements ports.Files over all backends."""

    def __init__(self, backends: Mapping[str, Backend]) -> None:
        self.backends = backends

    @classmethod
    def of(cls, opts: Mapping[str, Any], load: BackendLoader) -> FileServer:
        """Return a server with the backends that the option ``fileserver_backend`` names, in its order.

        ``load`` loads a user's backend when the backend is first used. Raises StatecoreError for options that cannot be used.
        """
        names = dict.fromkeys(named(str(each), opts) for each in opts.get("fileserver_backend") or ["roots"])
        return cls({name: BACKENDS[name](opts) if name in BACKENDS else UserFiles(name, opts, load) for name in names})

    @property
    def users(self) -> list[UserFiles]:
        """The backends that users wrote."""
        return [backend for backend in self.backends.values() if isinstance(backend, UserFiles)]

    def only(self, wanted: str | Sequence[str] | None) -> FileServer:
        """A server of some of the backends: those that are named, or all without those that are named with a minus.

        Names may be a list, or text with commas. Raises UnknownBackend for one that is not switched on.
        """
        names = [str(each) for each in (wanted.split(",") if isinstance(wanted, str) else wanted or [])]
        if not names:
            return self
        without = [name[1:] for name in names if name.startswith("-")]
        chosen = [name for name in names if not name.startswith("-")]
        for name in chosen or without:
            if ALIASES.get(name, name) not in self.backends:
                # One that is nowhere is told by its nearest.
                named(name, {})
                raise UnknownBackend(f"the backend '{name}' is not in the option fileserver_backend")
        if chosen:
            meant = [ALIASES.get(name, name) for name in chosen]
            return FileServer({name: self.backends[name] for name in meant})
        left_out = {ALIASES.get(name, name) for name in without}
        return FileServer({name: each for name, each in self.backends.items() if name not in left_out})

    def envs(self) -> list[str]:
        """Environments of all backends, "base" first."""
        found = {env for backend in self.backends.values() for env in backend.envs()}
        return sorted(found, key=lambda name: (name != "base", name))

    def paths(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Paths of all files, sorted."""
        return self._all(lambda backend: backend.paths(saltenv, prefix))

    def dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Paths of all directories, sorted."""
        return self._all(lambda backend: backend.dirs(saltenv, prefix))

    def empty_dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Paths of the directories that hold nothing in the backend that has them."""
        return self._all(lambda backend: backend.empty_dirs(saltenv, prefix))

    def symlinks(self, saltenv: str = "base", prefix: str = "") -> dict[str, str]:
        """Path -> target of links."""
        found: dict[str, str] = {}
        for backend in reversed(list(self.backends.values())):
            found |= backend.symlinks(saltenv, prefix)
        return dict(sorted(found.items()))

    def hash(self, path: str, saltenv: str = "base") -> FileHash | None:
        """Digest of a file."""
        return self._first(lambda backend: backend.hash(path, saltenv))

    def mode(self, path: str, saltenv: str = "base") -> int | None:
        """Permission bits of a file."""
        return self._first(lambda backend: backend.mode(path, saltenv))

    def stat(self, path: str, saltenv: str = "base") -> list[int] | None:
        """What stat(2) tells of a file, or its mode alone."""
        return self._first(lambda backend: backend.stat(path, saltenv))

    def fetch(self, path: str, saltenv: str = "base") -> Path | None:
        """A path with the file's bytes."""
        return self._first(lambda backend: backend.fetch(path, saltenv))

    def source(self, path: str, saltenv: str = "base") -> tuple[str, Path] | None:
        """(backend, path with the file's bytes); None when there is no such file."""
        for name, backend in self.backends.items():
            if (found := backend.fetch(path, saltenv)) is not None:
                return name, found
        return None

    def shown(self, fetched: Path) -> str:
        """How people are told of a file."""
        told = (backend.shown(fetched) for backend in self.backends.values())
        return next((shown for shown in told if shown != str(fetched)), str(fetched))

    def _first(self, ask: Callable[[Backend], _Found | None]) -> _Found | None:
        return next((found for backend in self.backends.values() if (found := ask(backend)) is not None), None)

    def _all(self, ask: Callable[[Backend], list[str]]) -> list[str]:
        lists = [ask(backend) for backend in self.backends.values()]
        return lists[0] if len(lists) == 1 else sorted(set().union(*lists))
