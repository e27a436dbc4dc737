"""A user's cron table in Salt's format: lines above Salt's mark are kept, lines below it are managed.

Entries are dicts with Salt's keys: ``cmd``, ``identifier``, ``comment``, ``commented``, and either ``minute`` ...
``dayweek`` or ``spec`` (``@daily``). An entry's identifier is in the comment above it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from statecore.model.text_lines import lines_of

TAG = "# Lines below here are managed by Salt, do not edit"
_IDENTIFIER = "SALT_CRON_IDENTIFIER"
#: Identifier of an entry that has none.
NO_IDENTIFIER = "NO ID SET"
_DISABLED = "#DISABLED#"

#: Time columns of an entry, in order.
TIMES = ("minute", "hour", "daymonth", "month", "dayweek")

#: Values from which ``random`` draws. Days of the month depend on the month.
_RANGES: Mapping[str, range] = {
    "minute": range(60),
    "hour": range(24),
    "month": range(1, 13),
    "dayweek": range(7),
}
_DAYS: Mapping[str, int] = dict.fromkeys(("1", "3", "5", "7", "8", "10", "12"), 31) | dict.fromkeys(
    ("4", "6", "9", "11"), 30
)
#: Days that every month has. Used if the month is not known.
_FEWEST_DAYS = 28


def parse(text: str) -> dict[str, list[Any]]:
    """Return the text of a cron table as a map: ``pre`` (lines above Salt's mark), ``crons``, ``special`` and ``env``
    (lists of entries).
    """
    table: dict[str, list[Any]] = {"pre": [], "crons": [], "special": [], "env": []}
    managed = False
    comment: str | None = None
    identifier: str | None = None
    for line in lines_of(text):
        if line == TAG:
            managed = True
            continue
        if not managed:
            table["pre"].append(line)
            continue
        job = line.removeprefix(_DISABLED)
        if job.startswith("#"):
            note, mark, named = job.lstrip("# ").partition(_IDENTIFIER)
            if mark:
                note, identifier = note.rstrip(), named[1:] or identifier
            comment = note if comment is None else f"{comment}\n{note}"
            continue
        about = {"identifier": identifier, "comment": comment, "commented": job != line}
        if job.startswith("@"):
            spec, *words = job.split()
            if not words:
                continue
            table["special"].append({"spec": spec, "cmd": " ".join(words), **about})
        elif "=" in job.split(" ")[0][1:]:
            name, _, value = job.partition("=")
            table["env"].append({"name": name, "value": value})
            continue
        elif len(columns := job.split(" ", 5)) > 5:
            table["crons"].append({**dict(zip(TIMES, columns, strict=False)), "cmd": columns[5], **about})
        else:
            continue
        comment = identifier = None
    return table


def render(table: Mapping[str, list[Any]]) -> str:
    """Return the text of a cron table from a map with the keys ``pre``, ``crons``, ``special`` and ``env``, as
    ``parse`` returns it.
    """
    lines = [*table["pre"]]
    if not lines or lines[-1] != TAG:
        lines.append(TAG)
    lines += [f"{each['name']}={env_value(each['value'])}" for each in table["env"]]
    for entry in (*table["crons"], *table["special"]):
        if entry["comment"] is not None or entry["identifier"] is not None:
            text = entry["comment"] or ""
            note = " " + (text.rstrip() if "spec" in entry else text).replace("\n", "\n# ") if text else ""
            name = f" {_IDENTIFIER}:{entry['identifier']}" if entry["identifier"] else ""
            lines.append(f"#{note}{name}")
        when = entry["spec"] if "spec" in entry else " ".join(str(entry[each]) for each in TIMES)
        lines.append(f"{_DISABLED if entry['commented'] is True else ''}{when} {entry['cmd']}")
    return "".join(f"{line}\n" for line in lines)


def env_value(value: object) -> str:
    """Return the value of an environment variable as it is written in a cron table."""
    return '""' if value in (None, "") else str(value)


def matches(entry: Mapping[str, object], cmd: object, identifier: object = None) -> bool:
    """Return True if an entry of a cron table has this identifier; or this command, if the entry has no identifier.

    ``cmd`` and ``identifier`` are those of a wanted job.
    """
    own = str(entry["identifier"] or NO_IDENTIFIER)
    wanted = str(identifier or NO_IDENTIFIER)
    if own == NO_IDENTIFIER:
        return bool(entry["cmd"] == cmd)
    return own == wanted


def needs_change(old: object, new: object) -> bool:
    """Return True if a time column of a cron entry must change from ``old`` to ``new``.

    None never changes; ``random`` changes only ``*``.
    """
    if old == new or new is None:
        return False
    return bool(old == "*") if new == "random" else True


def status(entries: list[dict[str, object]], wanted: Mapping[str, object]) -> str:
    """Return the status of a wanted cron entry among the existing entries: "present", "update" or "absent"."""
    for entry in entries:
        if matches(entry, wanted["cmd"], wanted["identifier"]):
            return "update" if any(needs_change(entry.get(key), value) for key, value in wanted.items()) else "present"
    return "absent"


def put(table: Mapping[str, list[dict[str, object]]], wanted: Mapping[str, object]) -> str:
    """Put an entry into a cron table, replacing the entries that it matches. Return "new", "updated" or "present"."""
    kind = "special" if "spec" in wanted else "crons"
    want = dict(wanted)
    done = "new"
    while (found := _match(table, want)) is not None:
        where, entry = found
        if where == kind and not _differs(entry, want):
            return "present"
        table[where].remove(entry)
        for key in want:
            if key != "identifier" and not needs_change(entry.get(key), want[key]):
                want[key] = entry.get(key)
        if not want["identifier"]:
            want["identifier"] = entry["identifier"]
        done = "updated"
    times = {} if kind == "special" else drawn(want)
    table[kind].append({**want, **times})
    return done


def take(entries: list[dict[str, object]], cmd: str, identifier: object, when: Mapping[str, object]) -> str:
    """Remove the first cron entry that matches the command and identifier and has the times of ``when``. Return
    "removed" or "absent".
    """
    for entry in entries:
        if matches(entry, cmd, identifier) and all(_due(entry[key], value) for key, value in when.items()):
            entries.remove(entry)
            return "removed"
    return "absent"


def drawn(when: Mapping[str, object]) -> dict[str, str]:
    """Map of the five time columns of a cron entry to text, with numbers drawn at random for ``random`` and for ranges
    (``5:20``).
    """
    columns = {key: str(when.get(key, "1")).lower() for key in TIMES}
    for key, choices in _RANGES.items():
        first, _, last = columns[key].partition(":")
        if columns[key] == "random":
            columns[key] = str(random.choice(choices))
        elif first.isdecimal() and last.isdecimal():
            columns[key] = str(random.randint(*sorted((int(first), int(last)))))
    if columns["daymonth"] == "random":
        columns["daymonth"] = str(random.randint(1, _DAYS.get(columns["month"], _FEWEST_DAYS)))
    return columns


def _match(
    table: Mapping[str, list[dict[str, object]]], wanted: Mapping[str, object]
) -> tuple[str, dict[str, object]] | None:
    for kind in ("crons", "special"):
        for entry in table[kind]:
            if matches(entry, wanted["cmd"], wanted["identifier"]):
                return kind, entry
    return None


def _differs(entry: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    named = needs_change(wanted["identifier"], entry["identifier"] or NO_IDENTIFIER)
    if not wanted["identifier"] and not entry["identifier"]:
        named = False
    return named or any(needs_change(entry.get(key), value) for key, value in wanted.items() if key != "identifier")


def _due(column: object, wanted: object) -> bool:
    return wanted is None or column == str(wanted) or (str(wanted).lower() == "random" and column != "*")
