"""The file fstab(5): parse and edit, keeping comments, order and columns.

In a changed entry, only differing fields are replaced. In columns padded with spaces, the next column stays where it
is. Text after the six fields, and lines that are not entries, are kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of


class FstabEntry(NamedTuple):
    r"""One line of fstab: its six fields as written in the file, where a blank is ``\040``."""

    device: str
    name: str
    fstype: str
    opts: str = "defaults"
    dump: str = "0"
    pass_num: str = "0"


#: File systems without a device of their own. Their entry is identified by its mount point.
#: Salt: salt/modules/mount.py, ``match_on: auto``.
_KNOWN_BY_NAME = "none tmpfs sysfs proc fusectl debugfs securityfs devtmpfs cgroup nfs nfs4 glusterfs btrfs ceph"

_CELL = re.compile(r"(\S+)(\s*)")


def written(text: str) -> str:
    r"""Return a path or device as a field of fstab, with blanks escaped. ``\ `` is also a blank, as in Salt's mount
    tables.
    """
    return text.replace("\\ ", " ").replace(" ", "\\040").replace("\t", "\\011")


def parse(text: str) -> list[FstabEntry]:
    """List of the entries in the text of fstab, in order."""
    return [entry for line in lines_of(text) if (entry := _entry(line)) is not None]


def criteria(text: str, entry: FstabEntry, match_on: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the fields ("name", "device", ...) by which an entry is found in the text of fstab.

    With ``auto``, file systems without a device are identified by mount point. Others are identified by device, or by
    device and mount point if both match an entry. Raises CommandError for an unknown field.
    """
    if match_on == "auto":
        if entry.fstype in _KNOWN_BY_NAME.split():
            return ("name",)
        there = any((each.device, each.name) == (entry.device, entry.name) for each in parse(text))
        return ("device", "name") if there else ("device",)
    if not isinstance(match_on, str | list | tuple):
        raise CommandError(f"match_on must be a string or list of strings, not {match_on!r}")
    names = (match_on,) if isinstance(match_on, str) else tuple(match_on)
    if unknown := [str(each) for each in names if each not in FstabEntry._fields]:
        raise CommandError(
            f"Unrecognized keys in match_on: {', '.join(unknown)}; there are {', '.join(FstabEntry._fields)}"
        )
    return names


def put(text: str, entry: FstabEntry, known_by: Sequence[str], *, not_change: bool = False) -> tuple[str, str]:
    """Return (status, text of fstab with the entry). The status is "present", "change" or "new".

    With ``not_change`` an existing entry is left unchanged.
    """
    status = ""
    lines = lines_of(text, keepends=True)
    for at, line in enumerate(lines):
        old = _entry(line)
        if old is None or not all(_same(key, old, entry) for key in known_by):
            continue
        if not_change or all(_same(key, old, entry) for key in FstabEntry._fields):
            status = status or "present"
        else:
            lines[at] = _changed(line, old, entry)
            status = "change"
    if not status:
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        lines.append("{}\t\t{}\t{}\t{}\t{} {}\n".format(*entry))
    return status or "new", "".join(lines)


def without(text: str, name: str, device: str | None = None) -> str:
    """Return the text of fstab without the entries of the mount point ``name``; with ``device``, only those of that
    device.
    """
    return "".join(
        line
        for line in lines_of(text, keepends=True)
        if (old := _entry(line)) is None or old.name != name or (device is not None and old.device != device)
    )


def _entry(line: str) -> FstabEntry | None:
    words = line.split()
    if len(words) < 4 or words[0].startswith("#") or (len(words) > 6 and not words[6].startswith("#")):
        return None
    return FstabEntry(*words[:6])


def _same(key: str, old: FstabEntry, new: FstabEntry) -> bool:
    one, other = getattr(old, key), getattr(new, key)
    return sorted(one.split(",")) == sorted(other.split(",")) if key == "opts" else bool(one == other)


def _changed(line: str, old: FstabEntry, new: FstabEntry) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    cells = _CELL.findall(line)
    made = []
    for at, key in enumerate(FstabEntry._fields):
        value = getattr(old if _same(key, old, new) else new, key)
        if at >= len(cells):
            # Missing fields have their default value, and are written only if they differ.
            made.append((value, " "))
            continue
        word, gap = cells[at]
        room = len(word) + len(gap)
        made.append((value, " " * max(room - len(value), 1) if gap.strip(" ") == "" and gap else gap))
    rest = "".join(f"{word}{gap}" for word, gap in cells[6:])
    if len(cells) < 6:
        made[len(cells) - 1] = (made[len(cells) - 1][0], " ")
    text = "".join(f"{value}{gap}" for value, gap in made)
    return f"{indent}{text}{rest}".rstrip() + ("\n" if line.endswith("\n") else "")
