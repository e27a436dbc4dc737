"""The spool: a directory of returns that the master has not acknowledged, one file for each, in order of age.

A file's name is ``<nanoseconds>-<jid>.ret``. It holds the ``_return`` load as msgpack, or another request for the master (then the
command's name replaces the JID). A file that cannot be read back is renamed to ``.bad`` and logged; the other files are still
sent. A file is written under a temporary name with the writer's process id; files of dead writers are removed at the next
start. Source: docs/protocol.md#returns
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgpack

from statecore.host.content import private_files
from statecore.runtime.state_runs.running_jobs import is_alive

_LOG = logging.getLogger("saltern.minion")

_SUFFIX = ".ret"

#: Bytes of a return that is too small to be worth replacing by a failed return.
_WORDS = 2048

#: Nesting levels that are kept; deeper values become text. msgpack itself allows 512 levels.
_DEEPEST = 100


class Spool:
    """A directory of returns that the master has not acknowledged. Any number of processes may write; one reads."""

    def __init__(self, directory: Path, most: int = 0) -> None:
        """Use ``directory`` for the spool. ``most``: bytes of the largest return; a larger one is replaced by a failed return.

        0: no limit.
        """
        self._directory = directory
        self._most = most
        private_files.directory(directory)
        for path in directory.glob(f".*{_SUFFIX}.*"):
            writer = path.name.rpartition(".")[2]
            if not writer.isdecimal() or not is_alive(int(writer)):
                path.unlink(missing_ok=True)

    def put(self, load: Mapping[str, object]) -> Path:
        """Write a return to the spool, completely or not at all, and return its path. Raise OSError (disk full)."""
        path = self._directory / f"{time.time_ns():020d}-{load.get('jid') or load.get('cmd')}{_SUFFIX}"
        private_files.write(path, self.packed(load), sync=True)
        return path

    def packed(self, load: Mapping[str, object]) -> bytes:
        """Return the msgpack bytes of a return.

        If they are more than the spool's largest return, return those of a failed return that names this reason,
        and log an error.
        """
        packed = _packed(load)
        if 0 < self._most < len(packed):
            why = f"more than max_return_bytes of the minion ({self._most})"
            _LOG.error(
                "the return of %s is %d bytes, %s", load.get("fun"), len(packed), why, extra={"jid": load.get("jid")}
            )
            packed = _packed(too_large_return(load, len(packed), why))
        return packed

    def give_up(self, path: Path, why: str) -> None:
        """Replace the return in the spool file ``path``, which the master does not accept, by a failed return with
        the reason. Raise OSError.
        """
        load = self.read(path)
        if load is not None:
            size = path.stat().st_size
            _LOG.error("the return of %s is %d bytes, %s", load.get("fun"), size, why, extra={"jid": load.get("jid")})
            private_files.write(path, _packed(too_large_return(load, size, why)), sync=True)

    def waiting(self) -> list[Path]:
        """Return the paths of the spooled returns, oldest first."""
        return sorted(self._directory.glob(f"*{_SUFFIX}"))

    def read(self, path: Path) -> dict[str, object] | None:
        """Return the load in a spool file; None if the file is gone or invalid (then it is renamed to ``.bad``)."""
        try:
            load = msgpack.unpackb(path.read_bytes(), strict_map_key=False)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            self._set_aside(path, str(error))
            return None
        if isinstance(load, dict):
            return load
        self._set_aside(path, "not a map")
        return None

    def _set_aside(self, path: Path, why: str) -> None:
        aside = path.with_suffix(".bad")
        path.rename(aside)
        _LOG.error("the spooled return %s cannot be read (%s) and was set aside as %s", path.name, why, aside.name)

    def acknowledged(self, path: Path) -> None:
        """Remove a return that the master acknowledged from the spool."""
        path.unlink(missing_ok=True)

    def holds(self, jid: str) -> bool:
        """Return whether a return of the job ``jid`` is in the spool."""
        return any(self._directory.glob(f"*-{jid}{_SUFFIX}"))

    def shed(self, most: int) -> None:
        """Reduce the spool to at most ``most`` bytes, oldest returns first.

        First, results are replaced by a short failed return. If that does not suffice, files are removed. A
        return that is in flight while its file changes is acknowledged like any other.
        """
        total = self.size()
        for drop in (False, True):
            for path in self.waiting():
                if total <= most:
                    return
                size = _size(path)
                if drop:
                    _LOG.error("%s is dropped: the spool has more than spool_max_bytes", path.name)
                    path.unlink(missing_ok=True)
                elif size > _WORDS and (load := self.read(path)) is not None and load.get("cmd") == "_return":
                    _LOG.error(
                        "the result in %s (%d bytes) is dropped for newer ones: spool_max_bytes", path.name, size
                    )
                    private_files.write(path, _packed(dropped_return(load, size)), sync=True)
                total += _size(path) - size

    def size(self) -> int:
        """Return the bytes of all returns in the spool."""
        return sum(_sizes(self._directory))


def dropped_return(load: Mapping[str, object], size: int) -> dict[str, object]:
    """Return the failed return that replaces a result of ``size`` bytes which was dropped from a full spool."""
    kept = {name: load[name] for name in load if name not in ("return", "out", "retcode", "success")}
    text = (
        f"ReturnDropped: what {load.get('fun')} returned ({size} bytes) waited for the master, and was dropped as the oldest when "
        "spool_max_bytes were full (spool_policy: drop_oldest). The job has run."
    )
    return kept | {"return": text, "retcode": 1, "success": False}


def too_large_return(load: Mapping[str, object], size: int, why: str) -> dict[str, object]:
    """Return the failed return that replaces a return of ``size`` bytes which is too large to be sent."""
    kept = {name: load[name] for name in load if name not in ("return", "out", "retcode", "success")}
    text = (
        f"ReturnTooLarge: what {load.get('fun')} returned is {size} bytes, {why}, and was not sent. Write it into a file, return "
        "less, or raise max_return_bytes of the minion and max_request_bytes of the master."
    )
    return kept | {"return": text, "retcode": 1, "success": False}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _sizes(directory: Path) -> Iterator[int]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if not entry.name.endswith(_SUFFIX):
                continue
            try:
                yield entry.stat().st_size
            except FileNotFoundError:
                continue


def _packed(load: Mapping[str, object]) -> bytes:
    """Return the load of a return as msgpack that can be unpacked again, for any value that a function may return."""
    packed: bytes
    try:
        packed = msgpack.packb(load, default=_plain)
        msgpack.unpackb(packed, strict_map_key=False)
    except (ValueError, TypeError, OverflowError, RecursionError):
        # Text that is not UTF-8, keys that are lists, or nesting that is too deep.
        packed = msgpack.packb(_storable(load, _DEEPEST), default=_plain)
    return packed


def _storable(value: object, levels: int) -> object:
    if not levels:
        try:
            return _text(str(value))
        except RecursionError:
            return f"a {type(value).__name__} that nests too deeply"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return {_key(key): _storable(item, levels - 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_storable(item, levels - 1) for item in value]
    return value


def _key(key: object) -> object:
    return key if isinstance(key, int | float | bytes | None) else _text(str(key))


def _text(text: str) -> str:
    """Return the text with bytes that are not UTF-8 (in file names, for example) as backslash escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _plain(value: object) -> object:
    """Return a replacement for a value that msgpack cannot pack: a list for a set, a dict for a mapping, else its text."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return dict(value) if isinstance(value, Mapping) else str(value)
