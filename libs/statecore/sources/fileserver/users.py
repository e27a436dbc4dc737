"""Fileserver backends written by users: files in ``fileserver_dirs``, or in ``extension_modules/fileserver``.

The runner ``saltutil.sync_fileserver`` fills the second directory. The backends are written for Salt and are called as
Salt's Fileserver calls them: ``envs``, ``file_list``, ``dir_list``, ``file_list_emptydirs``, ``symlink_list``,
``find_file``, ``serve_file``, ``file_hash``; ``init`` once, ``update`` periodically. An exception in a backend is
logged with its file and line, and the backend serves nothing; the other backends continue.

Salt: salt/fileserver/__init__.py
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from statecore.host.content import private_files
from statecore.model.errors import NotAvailable, StatecoreError
from statecore.model.lazy import lazy_module
from statecore.model.ports import FileHash

if TYPE_CHECKING:
    import tempfile
else:
    tempfile = lazy_module("tempfile")

log = logging.getLogger(__name__)

KIND = "fileserver"

#: Seconds until a copy of an earlier content is removed: another process may be about to open it.
_KEPT = 3600.0

_NOTHING: Mapping[str, object] = {"path": "", "rel": ""}


class LoadedBackend(Protocol):
    """Interface of a loaded fileserver backend that a user wrote: its Python file and its functions."""

    @property
    def path(self) -> Path:
        """Path of the Python file of a user's fileserver backend."""
        ...

    @property
    def functions(self) -> Mapping[str, Callable[..., object]]:
        """Map of function name to callable of a user's fileserver backend. Each callable has the loader's names
        (``__opts__``, ``__salt__``).
        """
        ...


#: Loads the backend of a name with the given master or minion options. Raises NotAvailable with the reason. The loader and the
#: runtime lie above this room, so ``statecore.runtime`` implements the function and its callers pass it in.
BackendLoader = Callable[[str, Mapping[str, object]], LoadedBackend]


class BackendError(StatecoreError):
    """Error: a function of a user's fileserver backend raised an exception. The text names the backend's file and line."""


def may_be_backend(name: str, opts: Mapping[str, object]) -> bool:
    """Return True if a user's Python file may be the fileserver backend ``name``: the file has this name, or contains
    it as a quoted text. Nothing is loaded.
    """
    return any(path.stem == name or path.parent.name == name or _contains_name(path, name) for path in _files(opts))


def _files(opts: Mapping[str, object]) -> Iterator[Path]:
    for directory in _directories(opts):
        yield from directory.glob("[!_.]*.py")
        yield from directory.glob("[!_.]*/__init__.py")


def _directories(opts: Mapping[str, object]) -> list[Path]:
    dirs = opts.get("fileserver_dirs")
    own = [Path(str(each)) for each in (dirs if isinstance(dirs, list | tuple) else ())]
    extensions = opts.get("extension_modules")
    return [*own, *([Path(str(extensions)) / KIND] if extensions else [])]


def _contains_name(path: Path, name: str) -> bool:
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return False
    return f'"{name}"' in text or f"'{name}'" in text


class UserFiles:
    """A fileserver backend written by a user: calls the functions of the user's file. The file is loaded at the first
    use.
    """

    def __init__(self, name: str, opts: Mapping[str, object], load: BackendLoader) -> None:
        self.name = name
        self._opts = opts
        self._load = load
        self._copies = Path(str(opts.get("cachedir") or tempfile.gettempdir())) / KIND / name
        self._loaded: LoadedBackend | None = None
        self._load_tried = False

    # The methods of ports.Files: they do not raise.

    def envs(self) -> list[str]:
        """Sorted names of the saltenvs that the user's backend returns from ``envs``."""
        return sorted(map(str, self._listed("envs", **self._envs_wants())))

    def paths(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Sorted paths of the files that the user's backend returns from ``file_list``."""
        return self._names("file_list", saltenv, prefix)

    def dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Sorted paths of the directories that the user's backend returns from ``dir_list``."""
        return self._names("dir_list", saltenv, prefix)

    def empty_dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Sorted paths of the empty directories that the user's backend returns from ``file_list_emptydirs``."""
        return self._names("file_list_emptydirs", saltenv, prefix)

    def symlinks(self, saltenv: str = "base", prefix: str = "") -> dict[str, str]:
        """Map of the path of each symbolic link to its target, as the user's backend returns it from ``symlink_list``."""
        found = self._guarded("symlink_list", {}, {"saltenv": saltenv, "prefix": prefix})
        links = found if isinstance(found, Mapping) else {}
        return {str(path): str(target) for path, target in links.items() if str(path).startswith(prefix.strip("/"))}

    def hash(self, path: str, saltenv: str = "base") -> FileHash | None:
        """Digest of a file, from ``file_hash`` of the user's backend; None when the backend has no such file."""
        found = self._found(path, saltenv)
        return None if found is None else self._hash(found, path, saltenv)

    def mode(self, path: str, saltenv: str = "base") -> int | None:
        """Permission bits of a file, from ``find_file`` of the user's backend; None when it returns no stat data."""
        status = self.stat(path, saltenv)
        return status[0] & 0o7777 if status else None

    def stat(self, path: str, saltenv: str = "base") -> list[int] | None:
        """Return the stat(2) fields of a file, from ``find_file`` of the user's backend; None when it returns none."""
        found = self._found(path, saltenv)
        status = (found or {}).get("stat")
        return [int(each) for each in status] if isinstance(status, Sequence) and status else None

    def fetch(self, path: str, saltenv: str = "base") -> Path | None:
        """Path of a local copy of a file, read in chunks from ``serve_file`` of the user's backend; None when the
        backend has no such file.

        The copy is used again while the backend's ``file_hash`` returns the same digest.
        """
        found = self._found(path, saltenv)
        if found is None:
            return None
        digest = self._hash(found, path, saltenv)
        home = self._copies / hashlib.sha256(f"{saltenv}\0{path}".encode()).hexdigest()
        place = home / (hashlib.sha256(":".join(digest).encode()).hexdigest() if digest else "unhashed")
        try:
            if digest is None or not place.is_file():
                self._copy(found, path, saltenv, place)
            return place
        except BackendError as error:
            log.error("%s", error)
        except OSError as error:
            log.error("%s: no copy of '%s' can be kept: %s: %s", self.name, path, error.filename, error.strerror)
        return None

    def shown(self, fetched: Path) -> str:
        """Path of the local copy of a file as text, for messages: a user's backend has no other name for it."""
        return str(fetched)

    # Operations on the whole backend: they raise BackendError.

    def update(self) -> bool:
        """Call ``update`` of the user's fileserver backend and return True; return False when the backend has no such function.

        Raises BackendError if the function fails.
        """
        if not self._has("update"):
            return False
        self._call("update")
        return True

    def clear_cache(self) -> tuple[list[str], list[str]]:
        """Call ``clear_cache`` of the user's fileserver backend. Return (list of Salt's success sentences, list of errors).

        Both lists are empty when the backend has no such function. Raises BackendError if the function fails.
        """
        if not self._has("clear_cache"):
            return [], []
        if failed := self._call("clear_cache"):
            return [], _texts(failed)
        return [f"The {self.name} fileserver cache was successfully cleared"], []

    def lock(self, remote: str | None) -> tuple[list[str], list[str]]:
        """Call ``lock`` of the user's fileserver backend. Return (names of locked remotes, error texts); both lists are
        empty if the backend has no such function. Raise BackendError if the function fails.
        """
        return self._good_and_bad("lock", remote=remote)

    def clear_lock(self, remote: str | None) -> tuple[list[str], list[str]]:
        """Call ``clear_lock`` of the user's fileserver backend. Return (names of unlocked remotes, error texts); both
        lists are empty if the backend has no such function. Raise BackendError if the function fails.
        """
        return self._good_and_bad("clear_lock", remote=remote, lock_type="update")

    def _good_and_bad(self, function: str, **kwargs: object) -> tuple[list[str], list[str]]:
        if not self._has(function):
            return [], []
        result = self._call(function, **kwargs)
        good, bad = result if isinstance(result, list | tuple) and len(result) == 2 else ((), (result,))
        return _texts(good), _texts(bad)

    # Calls of the backend's functions.

    def _envs_wants(self) -> dict[str, object]:
        """Return the keyword arguments for ``envs`` of the user's backend: on minions Salt passes ``ignore_cache=True``
        when the function accepts it.
        """
        function = self._functions().get("envs")
        if function is None or self._opts.get("__role") != "minion":
            return {}
        return {"ignore_cache": True} if "ignore_cache" in inspect.signature(function).parameters else {}

    def _names(self, function: str, saltenv: str, prefix: str) -> list[str]:
        found = self._listed(function, {"saltenv": saltenv, "prefix": prefix})
        # Some backends ignore the prefix.
        return sorted({str(each) for each in found if str(each).startswith(prefix.strip("/"))})

    def _listed(self, function: str, *args: object, **kwargs: object) -> list[object]:
        found = self._guarded(function, [], *args, **kwargs)
        if isinstance(found, list | tuple | set | frozenset):
            return list(found)
        log.error("file server backend '%s': %s returned no list but a %s", self.name, function, type(found).__name__)
        return []

    def _found(self, path: str, saltenv: str) -> dict[str, object] | None:
        # As in Salt's Fileserver, paths outside of a tree are not passed to the backend.
        inside = path and not path.startswith("/") and "../" not in path
        found = self._guarded("find_file", _NOTHING, path, saltenv) if inside else _NOTHING
        if isinstance(found, Mapping):
            return {**found, "back": self.name} if found.get("path") else None
        log.error("file server backend '%s': find_file returned no map but a %s", self.name, type(found).__name__)
        return None

    def _hash(self, found: Mapping[str, object], path: str, saltenv: str) -> FileHash | None:
        digest = self._guarded("file_hash", {}, {"path": path, "saltenv": saltenv}, dict(found))
        if not isinstance(digest, Mapping) or not digest.get("hsum"):
            return None
        return FileHash(_text(digest.get("hash_type", self._opts.get("hash_type", "sha256"))), _text(digest["hsum"]))

    def _copy(self, found: Mapping[str, object], path: str, saltenv: str, place: Path) -> None:
        with private_files.writer(place) as file:
            while chunk := self._chunk(found, path, saltenv, file.tell()):
                file.write(chunk)
        for other in place.parent.iterdir():
            # Other processes may remove the same file.
            with contextlib.suppress(FileNotFoundError):
                if other != place and time.time() - other.stat().st_mtime > _KEPT:
                    other.unlink()

    def _chunk(self, found: Mapping[str, object], path: str, saltenv: str, loc: int) -> bytes:
        answer = self._call("serve_file", {"path": path, "saltenv": saltenv, "loc": loc}, dict(found))
        data = answer.get("data", b"") if isinstance(answer, Mapping) else b""
        return data.encode() if isinstance(data, str) else bytes(data or b"")

    def _guarded(self, function: str, default: object, *args: object, **kwargs: object) -> object:
        """Call a function of the user's backend and return its result. Return ``default`` when the function does not
        exist or raises an exception, which is logged.
        """
        if not self._has(function):
            return default
        try:
            return self._call(function, *args, **kwargs)
        except BackendError as error:
            log.error("%s", error)
            return default

    def _has(self, function: str) -> bool:
        return function in self._functions()

    def _call(self, function: str, *args: object, **kwargs: object) -> object:
        assert self._loaded is not None
        try:
            return self._loaded.functions[function](*args, **kwargs)
        except (Exception, SystemExit) as error:
            where = _place(error, self._loaded.path)
            reason = f"{type(error).__name__}: {error}"
            raise BackendError(f"file server backend '{self.name}': {function} failed: {reason} ({where})") from error

    def _functions(self) -> Mapping[str, Callable[..., object]]:
        """Map of function name to callable of the user's backend; empty when the backend cannot be loaded. The reason
        is logged once.
        """
        if not self._load_tried:
            self._load_tried = True
            try:
                self._loaded = self._load(self.name, self._opts)
            except NotAvailable as missing:
                log.error("file server backend '%s' is left out: %s", self.name, missing.reason or missing)
            else:
                self._guarded("init", None)
        return self._loaded.functions if self._loaded is not None else {}


def _texts(values: object) -> list[str]:
    return [str(each) for each in values] if isinstance(values, Iterable) else [str(values)]


def _text(value: object) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)


def _place(error: BaseException, path: Path) -> str:
    """Return "FILE:LINE" of the last traceback entry that is in the user's own backend file ``path``."""
    place, traceback = str(path), error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == str(path):
            place = f"{path}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place
