"""``salt.cache`` for users' modules: data that a module keeps, as files below the cache directory, as Salt's driver
``localfs`` writes them.

These are the module's own data. The master's data about minions are in Redis and are not among them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from statecore.host.content import private_files
from statecore.loader.compat import payload
from statecore.loader.compat.exceptions import SaltCacheError

_DAY = 86400


class Cache:
    """Named values (keys) in named groups (banks): the file ``<cachedir>/<bank>/<key>.p``."""

    def __init__(self, opts: Mapping[str, Any], cachedir: str | None = None, **kwargs: object) -> None:
        """Use the directory ``cachedir``, by default that of the option ``cachedir``. Other drivers than ``localfs`` do
        not exist.
        """
        self.opts = opts
        self.driver = "localfs"
        self.cachedir = str(cachedir or opts.get("cachedir") or "/var/cache/salt/minion")

    def _bank(self, bank: str) -> Path:
        path = Path(self.cachedir, bank)
        if ".." in path.parts or Path(bank).is_absolute():
            raise SaltCacheError(f"The bank {bank!r} is not below the cache directory")
        return path

    def _file(self, bank: str, key: str) -> Path:
        path = self._bank(bank) / f"{key}.p"
        if ".." in path.parts:
            raise SaltCacheError(f"The key {key!r} is not below its bank")
        return path

    def cache(self, bank: str, key: str, fun: Callable[..., Any], loop_fun: Any = None, **kwargs: Any) -> Any:
        """Return the value of a key. If it is missing, empty or older than ``expire`` seconds (default: a day), first
        call ``fun`` with the other keyword arguments and store its result.

        ``loop_fun`` is applied to each item of the result.
        """
        expire = kwargs.get("expire", _DAY)
        updated = self.updated(bank, key)
        data = None if updated is None or int(time.time()) - updated > expire else self.fetch(bank, key)
        if not data:
            data = fun(**kwargs)
            if loop_fun is not None:
                data = [loop_fun(item) for item in data]
            self.store(bank, key, data)
        return data

    def store(self, bank: str, key: str, data: object, expires: object = None) -> None:
        """Store the value of a key. Raise SaltCacheError if the file cannot be written. ``expires`` is ignored, as by
        ``localfs``.
        """
        path = self._file(bank, key)
        try:
            private_files.write(path, payload.dumps(data, use_bin_type=True))
        except OSError as error:
            raise SaltCacheError(f"There was an error writing the cache file, {path}: {error}") from error

    def fetch(self, bank: str, key: str) -> Any:
        """Return the value of a key; {} if there is none. Raise SaltCacheError if the file cannot be read."""
        path = self._file(bank, key)
        try:
            with path.open("rb") as file:
                return payload.load(file)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise SaltCacheError(f'There was an error reading the cache file "{path}": {error}') from error

    def updated(self, bank: str, key: str) -> int | None:
        """Return the time at which the value of a key was stored, in seconds since 1970; None if there is no value."""
        try:
            return int(self._file(bank, key).stat().st_mtime)
        except FileNotFoundError:
            return None

    def flush(self, bank: str, key: str | None = None) -> bool:
        """Delete the value of a key, or without ``key`` the whole bank. Return False if there was none. Raise
        SaltCacheError if it cannot be removed.
        """
        target = self._bank(bank) if key is None else self._file(bank, key)
        try:
            if key is None:
                shutil.rmtree(target)
            else:
                target.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise SaltCacheError(f'There was an error removing "{target}": {error}') from error
        return True

    def list(self, bank: str) -> list[str]:
        """Return the sorted names of the keys and inner banks of a bank; [] if there is no such bank."""
        path = self._bank(bank)
        if not path.is_dir():
            return []
        return sorted(each.name.removesuffix(".p") for each in path.iterdir())

    def contains(self, bank: str, key: str | None = None) -> bool:
        """Return whether the bank has a value under ``key``; without ``key``, whether the bank exists."""
        return self._bank(bank).is_dir() if key is None else self._file(bank, key).is_file()


class MemCache(Cache):
    """Salt's cache with a copy in memory. Here it is the same as Cache: values are read from the files each time."""


def factory(opts: Mapping[str, Any], **kwargs: Any) -> Cache:
    """Return the cache of the options' cache directory, or of the directory ``cachedir``."""
    return Cache(opts, **kwargs)
