"""Backups of files in the minion's cache directory, made by ``backup: minion``. The file names are Salt's."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from statecore.host.content import private_files

#: Time at the end of a backup's name. Backups of older Salt releases have no microseconds.
_STAMP = re.compile(r"_[A-Z][a-z]{2}_([A-Z][a-z]{2}_\d\d_\d\d:\d\d:\d\d)_(?:(\d{6})_)?(\d{4})$")

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Backup(NamedTuple):
    """One backup of a file: its time and its path."""

    when: datetime.datetime
    place: Path

    @property
    def shown(self) -> str:
        """The time of the backup as text for users, such as ``Sat Jan 31 2026 10:20:30.123456``."""
        day, month = _DAYS[self.when.weekday()], _MONTHS[self.when.month - 1]
        return self.when.strftime(f"{day} {month} %d %Y %H:%M:%S.%f")


def back_up(path: Path, cache: Path) -> str:
    """Copy a file to the backup directory ``cache``, with the current time in its name. Return the path of the copy.
    Raise OSError if it cannot be copied.
    """
    now = datetime.datetime.now()
    stamp = now.strftime(f"{_DAYS[now.weekday()]}_{_MONTHS[now.month - 1]}_%d_%H:%M:%S_%f_%Y")
    kept = _directory(path.parent, cache) / f"{path.name}_{stamp}"
    private_files.copy(path, kept)
    return str(kept)


def backups_of(path: Path, cache: Path) -> list[Backup]:
    """Return the backups of a file of the managed host in the directory ``cache``, the newest first."""
    return sorted((found for name, found in _kept(path.parent, cache) if name == path.name), reverse=True)


def names_in(directory: Path, cache: Path) -> list[str]:
    """Return the sorted names of the files in a directory of the managed host that have backups."""
    return sorted({name for name, _ in _kept(directory, cache)})


def _directory(directory: Path, cache: Path) -> Path:
    return cache / str(directory).lstrip("/")


def _kept(directory: Path, cache: Path) -> Iterator[tuple[str, Backup]]:
    top = _directory(directory, cache)
    for each in top.iterdir() if top.is_dir() else ():
        found = _STAMP.search(each.name)
        if found is None or not each.is_file():
            continue
        month, day, clock = found[1].split("_")
        if month in _MONTHS:
            hour, minute, second = map(int, clock.split(":"))
            parts = (int(found[3]), _MONTHS.index(month) + 1, int(day), hour, minute, second, int(found[2] or 0))
            yield each.name[: found.start()], Backup(datetime.datetime(*parts), each)
