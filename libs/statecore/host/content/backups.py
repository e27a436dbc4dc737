"""Old copies of files in the minion's cache, as ``backup: minion`` asks for; named as Salt names them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from statecore.host import copies
from statecore.host.content import atomic_file

#: What the name of a copy ends in; those without parts of a second are older.
_STAMP = re.compile(r"_[A-Z][a-z]{2}_([A-Z][a-z]{2}_\d\d_\d\d:\d\d:\d\d)_(?:(\d{6})_)?(\d{4})$")

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Backup(NamedTuple):
    """One copy."""

    when: datetime.datetime
    place: Path

    @property
    def shown(self) -> str:
        """The moment as Salt shows it."""
        day, month = _DAYS[self.when.weekday()], _MONTHS[self.when.month - 1]
        return self.when.strftime(f"{day} {month} %d %Y %H:%M:%S.%f")


def back_up(path: Path, cache: Path) -> str:
    """Keeps a copy of a file below ``cache``; returns where. Raises OSError."""
    now = datetime.datetime.now()
    stamp = now.strftime(f"{_DAYS[now.weekday()]}_{_MONTHS[now.month - 1]}_%d_%H:%M:%S_%f_%Y")
    kept = _directory(path.parent, cache) / f"{path.name}_{stamp}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file.replacement(kept) as new:
        copies.copy(path, new)
    return str(kept)


def kept_of(path: Path, cache: Path) -> list[Backup]:
    """The copies of a file, the newest first."""
    return sorted((found for name, found in _kept(path.parent, cache) if name == path.name), reverse=True)


def names_in(directory: Path, cache: Path) -> list[str]:
    """Names of the files of a directory that there are copies of."""
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
