"""States that remove old files and empty directories: ``tidied``, ``retention_schedule`` and ``pruned``."""

from __future__ import annotations

import re
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from pathlib import Path

from statecore.builtin.states.file.arguments import Refused, local_path, step
from statecore.host.content import managed_file
from statecore.host.rooted_path import lexists
from statecore.model.context import Context
from statecore.model.errors import HostError, InvocationError
from statecore.model.types import Outcome, Plan
from statecore.model.values import to_int

_TIMES = ("atime", "ctime", "mtime")


_UNITS = "bkmgtpezy"


#: Seconds of a day.
_DAY = 86400


def tidied(
    ctx: Context,
    name: str,
    age: int = 0,
    matches: object = None,
    rmdirs: bool = False,
    size: object = 0,
    exclude: object = None,
    full_path_match: bool = False,
    followlinks: bool = False,
    time_comparison: str = "atime",
    age_size_logical_operator: str = "OR",
    age_size_only: str | None = None,
    rmlinks: bool = True,
) -> Plan:
    """Remove files below a directory that are old or large.

    age
        minimum age in days of a file to remove
    size
        minimum size of a file to remove, in bytes, or text with a unit such as ``10MB``
    matches, exclude
        lists of regular expressions for file names (full paths with ``full_path_match``). A file is removed only if
        one of
        ``matches`` and none of ``exclude`` fits. By default all names match.
    rmdirs, rmlinks
        True: also remove directories with their content; also remove symbolic links
    followlinks
        True: also search directories behind symbolic links
    time_comparison
        timestamp that gives the age: atime, ctime or mtime
    age_size_logical_operator
        ``OR``: a file is removed if it is old or large. ``AND``: only if it is both.
    age_size_only
        ``age`` or ``size``: ignore the other condition
    """
    try:
        top = local_path(ctx, name)
        if not top.is_dir():
            raise Refused(f"{name} does not exist or is not a directory.")
        rule = _Rule(
            today=date.today(),
            age=int(age),
            size=_bytes(size),
            may=_patterns([".*"] if matches is None else matches),
            stay=_patterns(exclude or []),
            time=_one_of(time_comparison, _TIMES, "atime"),
            both=_one_of(age_size_logical_operator, ("or", "and"), "or") == "and",
            only=_one_of(age_size_only, ("age", "size"), ""),
            directories=rmdirs,
            links=rmlinks,
        )
        found = [
            path
            for path, place in _below(ctx, name.rstrip("/"), followlinks)
            if rule.matches_entry(place, path if full_path_match else Path(path).name)
        ]
    except (Refused, HostError, InvocationError) as error:
        return Plan.failed(str(error))
    except (TypeError, ValueError) as error:
        return Plan.failed(f"age and size of file.tidied are numbers: {error}")
    if not found:
        return Plan.unchanged(f"Nothing to remove from directory {name}")

    def work() -> Outcome:
        for path in found:
            place = ctx.host.path(path, follow=False)
            # Entries below a removed directory are already gone.
            if lexists(place):
                managed_file.remove(place)
        return Outcome(f"Removed {len(found)} files or directories from directory {name}", {"removed": found})

    return Plan.change(f"{name} is set for tidy", (step(f"tidy {name}", work),), {"removed": found})


def retention_schedule(
    ctx: Context, name: str, retain: Mapping[str, object], strptime_format: str | None = None, timezone: object = None
) -> Plan:
    """Remove old backups from a directory, keeping a number of backups for each period.

    retain
        map of rule to the number of backups to keep, or ``all``. Rules: most_recent, first_of_hour, first_of_day,
        first_of_week, first_of_month, first_of_year.
    strptime_format
        format of the time in the backups' names. Entries whose names do not match are ignored. By default the
        modification time is used.
    timezone
        a tzinfo object for modification times
    """
    try:
        top = local_path(ctx, name)
        if not top.is_dir():
            raise Refused("Name provided to file.retention must be a directory")
        counts = _counts(retain)
        entries = sorted([".", "..", *(entry.name for entry in top.iterdir())])
        times = {entry: _time_of(top, entry, strptime_format, timezone) for entry in entries}
    except (Refused, HostError) as error:
        return Plan.failed(str(error))
    known = {entry: when for entry, when in times.items() if when is not None}
    kept = {entry for rule, count in counts.items() for entry in _kept(known, rule, count)}
    gone = sorted(set(known) - kept, reverse=True)
    if not gone:
        return Plan.unchanged(
            f"0 backups were removed from {name}.\n", in_test=f"0 backups would have been removed from {name}.\n"
        )
    changes = {
        "retained": sorted(kept, reverse=True),
        "deleted": gone,
        "ignored": sorted(set(entries) - set(known), reverse=True),
    }

    def work() -> Outcome:
        for entry in gone:
            managed_file.remove(top / entry)
        return Outcome(f"{len(gone)} backups were removed from {name}.\n", changes)

    would = f"{len(gone)} backups would have been removed from {name}.\n"
    return Plan.change(would, (step(f"remove old backups from {name}", work),), changes)


def pruned(
    ctx: Context, name: str, recurse: bool = False, ignore_errors: bool = False, older_than: float | None = None
) -> Plan:
    """Remove a directory if it is empty. The state fails if the directory is not empty.

    recurse
        True: also remove directories below that contain nothing but empty directories
    ignore_errors
        True: directories that are not empty are no failure; implies ``recurse``
    older_than
        minimum number of days since the last modification of a directory; newer directories stay
    """
    recurse = recurse or ignore_errors
    try:
        place = local_path(ctx, name, follow=False)
        if not place.is_dir():
            return Plan.unchanged(f"Directory {name} is not present")
        top = name.rstrip("/") or "/"
        removable = _removable(place, top, recurse, time.time() - older_than * _DAY if older_than else None)
    except (Refused, HostError) as error:
        return Plan.failed(str(error))
    if not removable and ignore_errors:
        return Plan.unchanged(f"Directory {name} holds nothing that may be removed")
    if top not in removable and not ignore_errors:
        return Plan.failed(f"Failed to remove directory {name}: it is not empty, or too young")
    changes = {"deleted": sorted(removable) if recurse else name}

    def work() -> Outcome:
        removal = ctx.call("file.rmdir", name, recurse=recurse, verbose=True, older_than=older_than)
        gone = {"deleted": sorted(removal["deleted"]) if recurse else name} if removal["deleted"] else {}
        if removal["result"] or (ignore_errors and removal["deleted"]):
            comment = f"Recursively removed empty directories under {name}" if recurse else f"Removed directory {name}"
            return Outcome(comment, gone)
        why = "".join(f"\n{path}: {reason}" for path, reason in removal["errors"])
        return Outcome(f"Failed to remove directory {name}{why}", gone, ok=False)

    return Plan.change(f"Directory {name} is set for removal", (step(f"prune {name}", work),), changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """The conditions under which ``file.tidied`` removes a file or directory."""

    today: date
    age: int
    size: int
    may: tuple[re.Pattern[str], ...]
    stay: tuple[re.Pattern[str], ...]
    time: str
    both: bool
    only: str
    directories: bool
    links: bool

    def matches_entry(self, place: Path, name: str) -> bool:
        """Return True if ``file.tidied`` must remove the file or directory at ``place``; False if it must stay or no longer
        exists.
        """
        try:
            found = place.lstat()
        except FileNotFoundError:
            return False
        if not {stat.S_IFDIR: self.directories, stat.S_IFLNK: self.links}.get(stat.S_IFMT(found.st_mode), True):
            return False
        if not any(one.match(name) for one in self.may) or any(one.match(name) for one in self.stay):
            return False
        day = date.fromtimestamp(getattr(found, f"st_{self.time}"))
        old = abs(self.today - day).days >= self.age
        large = (found.st_size if stat.S_ISREG(found.st_mode) else 0) >= self.size
        if self.only:
            return old if self.only == "age" else large
        return old and large if self.both else old or large


def _below(ctx: Context, top: str, follow: bool, depth: int = 0) -> Iterator[tuple[str, Path]]:
    """Yield (host path, this process's path) of every entry below a directory, deepest entries first.

    With ``follow``, links to directories are resolved inside the host's root. Raises Refused at more than 64 levels.
    """
    place = ctx.host.path(top)
    if depth > 64:
        raise Refused(f"{top}: directories too deep, or links in a ring")
    for entry in sorted(place.iterdir()):
        path = f"{top}/{entry.name}"
        inner = ctx.host.path(path) if follow and entry.is_symlink() else entry
        if inner.is_dir() and not inner.is_symlink():
            yield from _below(ctx, path, follow, depth + 1)
        yield path, entry


#: Rule -> (key that is equal for all backups of one period, number of additional periods). Salt keeps one week more than asked.
_SPANS: Mapping[str, tuple[Callable[[datetime], tuple[int, ...]], int]] = {
    "first_of_year": (lambda when: (when.year,), 0),
    "first_of_month": (lambda when: (when.year, when.month), 0),
    "first_of_week": (lambda when: (when.year, when.isocalendar()[1]), 1),
    "first_of_day": (lambda when: (when.year, when.month, when.day), 0),
    "first_of_hour": (lambda when: (when.year, when.month, when.day, when.hour), 0),
    "most_recent": (lambda when: (when.year, when.month, when.day, when.hour, int(when.timestamp() * 1e6)), 0),
}


def _kept(times: Mapping[str, datetime], rule: str, count: int) -> list[str]:
    span, more = _SPANS[rule]
    first: dict[tuple[int, ...], str] = {}
    for entry in sorted(times, key=lambda entry: (times[entry].timestamp(), entry)):
        first.setdefault(span(times[entry]), entry)
    return [first[key] for key in sorted(first, reverse=True)[: count + more]]


def _counts(retain: object) -> dict[str, int]:
    if not isinstance(retain, Mapping) or not retain:
        raise Refused(f"retain of file.retention_schedule is a map of {', '.join(_SPANS)} to numbers")
    if unknown := [str(rule) for rule in retain if rule not in _SPANS]:
        raise Refused(f"retain knows {', '.join(_SPANS)}, not {', '.join(unknown)}")
    try:
        return {rule: sys.maxsize - 1 if count == "all" else int(count) for rule, count in retain.items()}
    except (TypeError, ValueError) as error:
        raise Refused(f"retain of file.retention_schedule counts with numbers, or 'all': {error}") from error


def _time_of(top: Path, entry: str, strptime_format: str | None, timezone: object) -> datetime | None:
    if entry in (".", ".."):
        return None
    if strptime_format:
        try:
            return datetime.strptime(entry, strptime_format).replace(tzinfo=UTC)
        except ValueError:
            return None
    zone = timezone if isinstance(timezone, tzinfo) else None
    return datetime.fromtimestamp((top / entry).lstat().st_mtime, zone)


def _patterns(given: object) -> tuple[re.Pattern[str], ...]:
    found = []
    for regex in given if isinstance(given, list | tuple) else [given]:
        try:
            found.append(re.compile(str(regex)))
        except re.error as error:
            raise Refused(f"'{regex}' is not a valid regular expression: {error}") from error
    return tuple(found)


def _one_of(value: object, known: tuple[str, ...], default: str) -> str:
    """Return an argument's value in lower case, or the default if it is not one of ``known``: Salt ignores unknown
    values.
    """
    return value.lower() if isinstance(value, str) and value.lower() in known else default


def _bytes(size: object) -> int:
    """Return the number of bytes that the argument ``size`` names: ``10``, ``10K``, ``10KiB`` (units of 1024) or
    ``10KB`` (units of 1000).

    Raises Refused for any other text.
    """
    if not isinstance(size, str):
        return to_int(size)
    found = re.fullmatch(rf"([0-9.]+)\s*([{_UNITS}]?)(i?b)?", size.strip().lower())
    if found is None:
        raise Refused(f"size '{size}' is invalid: write a number of bytes, or one with a unit, such as 10MB")
    power = _UNITS.index(found[2] or "b")
    factor: int = 1000**power if found[3] == "b" and power else 1024**power
    return int(float(found[1]) * factor)


def _removable(place: Path, path: str, recurse: bool, before: float | None) -> list[str]:
    """List of the paths of the directories that ``file.pruned`` would remove, deepest first.

    ``before``: latest modification time, in seconds since 1970.
    """
    found: list[str] = []
    left = False
    for entry in sorted(place.iterdir()):
        if not recurse or entry.is_symlink() or not entry.is_dir():
            left = True
            continue
        inner = f"{path.rstrip('/')}/{entry.name}"
        below = _removable(entry, inner, recurse, before)
        found += below
        left = left or inner not in below
    # Removing entries sets the directory's modification time to now.
    young = before is not None and (bool(found) or place.stat().st_mtime >= before)
    return found if left or young else [*found, path]
