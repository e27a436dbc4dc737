"""JobFilter: which jobs a query wants, and which page of them. ``job_find`` evaluates it. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

#: Characters that make a name a glob.
_GLOB = frozenset("*?[")

#: States that a job is found by: that some minion of it is in one, ``running`` while any is still waited for, ``late`` once a
#: return came after the job had been given up.
STATES = ("running", "late", "offline", "lost", "cancelled", "expired")

#: Default number of jobs of a page.
DEFAULT_LIMIT = 200


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Conditions of a query for jobs (times, functions, minions, users, targets, states), and the page of its results.

    All given fields must match; of several values of one field, one must match. An empty filter matches every job.
    Names and globs are compared as in Salt: case-sensitive, and for the whole name.
    """

    #: Milliseconds since 1970 of the job's creation: not before, and earlier than.
    after_ms: int | None = None
    before_ms: int | None = None
    #: Globs of functions; a job of several functions has each of them.
    functions: tuple[str, ...] = ()
    #: Ids of minions that the job was expected to reach.
    minions: tuple[str, ...] = ()
    #: Globs of the publishing user's name.
    users: tuple[str, ...] = ()
    #: Globs of targets as they were written; the names of a list are joined by commas.
    targets: tuple[str, ...] = ()
    #: True: every minion returned success. False: some minion returned a failure. None: any result.
    success: bool | None = None
    #: Some of STATES; one must match.
    states: tuple[str, ...] = ()
    #: Largest number of jobs in a page.
    limit: int = DEFAULT_LIMIT
    #: JID of the last job of the page before; empty: the newest.
    cursor: str = ""


def is_glob(name: str) -> bool:
    """Return whether the name contains wildcard characters."""
    return not _GLOB.isdisjoint(name)


def load_matches(load: Mapping[str, object], wanted: JobFilter) -> bool:
    """Return True if a job's load matches the filter's globs of users and targets. Other fields are checked by indexes."""
    return _matches(load.get("user"), wanted.users) and _matches(load.get("tgt"), wanted.targets)


def _matches(value: object, globs: tuple[str, ...]) -> bool:
    if not any(map(is_glob, globs)):
        return True
    name = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return any(fnmatchcase(name, glob) for glob in globs)
