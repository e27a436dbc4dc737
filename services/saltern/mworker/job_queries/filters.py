"""Parses the filters of jobs that a command line gives. Error messages name the filter. No I/O.

Times are ISO 8601, Salt's StartTime, a JID (the time in it), or an age such as ``2h`` or ``7d``. Times without a zone are UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import filter as matching
from types import MappingProxyType

from masterstore.job_filter import DEFAULT_LIMIT, STATES, JobFilter, is_glob
from masterstore.store import Store
from saltern.kit.config.durations import seconds_of
from saltwire.jid import is_jid, jid_time
from statecore.model.nearest import close_matches

#: Most jobs in one answer; ``jobs.export`` streams more.
MOST = 100_000

#: Most minions that globs may match; each costs a query of its index.
MOST_MINIONS = 500

#: Most characters of a glob.
_LONGEST_GLOB = 1024

#: Forms of a time besides ISO 8601; the first is that of StartTime.
_TIME_FORMS = (
    *("%Y, %b %d %H:%M:%S.%f", "%Y, %b %d %H:%M:%S", "%Y, %b %d %H:%M", "%Y, %b %d", "%b %d %Y %H:%M:%S"),
    *("%b %d %Y %H:%M", "%b %d %Y", "%b %d, %Y", "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y/%m/%d", "%m/%d/%Y"),
)

_TRUTH: Mapping[str, bool] = {"true": True, "yes": True, "false": False, "no": False}


class FilterFault(Exception):
    """Raised when a filter of jobs cannot be parsed. The message names the filter, its value and the allowed values."""


def filter_of(
    words: Mapping[str, object],
    now_ms: int,
    minions_like: Callable[[Sequence[str]], Sequence[str]],
    others: Sequence[str] = (),
    said: Mapping[str, str] = MappingProxyType({}),
) -> JobFilter:
    """Return the JobFilter for the filters ``words`` (name: value); None and empty values are ignored. Raises FilterFault.

    ``minions_like`` returns the minion ids that globs match. ``others``: names of filters that the caller handles itself, for
    suggestions. ``said``: map of a filter to the name under which the user gave it, for error messages.
    """
    unknown = [name for name in words if name not in NAMES]
    if unknown:
        known = (*others, *NAMES)
        near = close_matches(unknown[0], known, n=1)
        hint = f"; the nearest is '{near[0]}'" if near else ""
        raise FilterFault(f"'{unknown[0]}' is no filter of jobs{hint}. There are {', '.join(known)}")
    given = {name: value for name, value in words.items() if value is not None and value != ""}
    after, before = (
        moment(given[name], now_ms, said.get(name, name)) if name in given else None for name in ("after", "before")
    )
    if after is not None and before is not None and after >= before:
        raise FilterFault(
            f"after ({given['after']}) is not earlier than before ({given['before']}): no job can be between"
        )
    return JobFilter(
        after_ms=after,
        before_ms=before,
        functions=names_of(given.get("function"), said.get("function", "function")),
        minions=_minions(names_of(given.get("minion"), "minion"), minions_like),
        users=names_of(given.get("user"), "user"),
        targets=_targets(given.get("target")),
        success=_truth(given["success"]) if "success" in given else None,
        states=_states(names_of(given.get("state"), "state")),
        limit=whole(given.get("limit", DEFAULT_LIMIT), "limit", MOST),
        cursor=_cursor(given.get("cursor", "")),
    )


#: Words that ``filter_of`` reads.
NAMES = ("after", "before", "limit", "cursor", "function", "minion", "user", "target", "success", "state")


def minions_like(store: Store, globs: Sequence[str]) -> list[str]:
    """Return the accepted minions that any of the globs matches, sorted."""
    known = store.minion_keys.ids("accepted")
    return sorted({name for glob in globs for name in matching(known, glob)})


def moment(given: object, now_ms: int, name: str) -> int:
    """Return milliseconds since 1970 of a time, a JID or an age. Raises FilterFault, which names the filter ``name``."""
    text = str(given).strip()
    if is_jid(text):
        return int(jid_time(text).timestamp() * 1000)
    for form in ("", *_TIME_FORMS):
        try:
            found = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        except ValueError:
            continue
        return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
    try:
        if text.isdecimal():
            # A plain number such as 2026 would be read as an age in seconds.
            raise ValueError(text)
        return now_ms - int(seconds_of(text) * 1000)
    except ValueError:
        raise FilterFault(
            f"{name}: '{text}' is not a time; write it as 2026-11-21T14:00:00, as a JID, or how long ago: 30m, 2h, 7d"
        ) from None


def whole(given: object, name: str, most: int) -> int:
    """Return the value of a filter as a whole number from 1 to ``most``. Raises FilterFault."""
    text = str(given)
    if isinstance(given, bool) or not text.isdecimal() or not text.isascii() or not 1 <= int(text[:20]) <= most:
        raise FilterFault(f"{name} must be a whole number from 1 to {most}, not {given!r}")
    return int(text)


def names_of(given: object, name: str) -> tuple[str, ...]:
    """Return the names in a filter's value: a list, or a text with commas. Raises FilterFault for an empty name."""
    if given is None:
        return ()
    if isinstance(given, Mapping) or (
        isinstance(given, list) and any(isinstance(one, list | Mapping) for one in given)
    ):
        raise FilterFault(f"{name} is a name, names with commas, or a list of names, not {given!r}")
    parts = [str(part).strip() for part in (given if isinstance(given, list) else str(given).split(","))]
    if not all(parts):
        raise FilterFault(f"{name}: a name is empty in {given!r}")
    return tuple(dict.fromkeys(_bounded(name, part) for part in parts))


def _bounded(name: str, glob: str) -> str:
    """Return a name of a filter. Raise FilterFault for a glob that takes long to compile."""
    if len(glob) > _LONGEST_GLOB and is_glob(glob):
        raise FilterFault(f"{name}: a glob has at most {_LONGEST_GLOB} characters, not {len(glob)}")
    return glob


def _targets(given: object) -> tuple[str, ...]:
    # A target is compared as the operator wrote it: a list with commas (-L) is one target.
    if given is None:
        return ()
    if isinstance(given, Mapping):
        raise FilterFault(f"target is a target as it was written, not {given!r}")
    return (_bounded("target", ",".join(map(str, given)) if isinstance(given, list) else str(given)),)


def _minions(names: tuple[str, ...], like: Callable[[Sequence[str]], Sequence[str]]) -> tuple[str, ...]:
    globs = [name for name in names if is_glob(name)]
    if not globs or "*" in globs:
        return () if globs else names
    found = list(dict.fromkeys([*(name for name in names if not is_glob(name)), *like(globs)]))
    if len(found) > MOST_MINIONS:
        raise FilterFault(
            f"minion: {len(found)} minions are like {', '.join(globs)}; at most {MOST_MINIONS} can be asked for"
        )
    # A glob that matches no minion must find no jobs instead of all.
    return tuple(found or globs)


def _truth(given: object) -> bool:
    found = given if isinstance(given, bool) else _TRUTH.get(str(given).lower())
    if found is None:
        raise FilterFault(f"success must be True or False, not {given!r}")
    return found


def _states(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in STATES:
            near = close_matches(name, STATES, n=1)
            hint = f"; the nearest is '{near[0]}'" if near else ""
            raise FilterFault(
                f"state: '{name}' is no state that jobs are found by{hint}. There are {', '.join(STATES)}"
            )
    return names


def _cursor(given: object) -> str:
    if given and not is_jid(str(given)):
        raise FilterFault(f"cursor: '{given}' is not a JID; it is the oldest JID of the page before")
    return str(given)
