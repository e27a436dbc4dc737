"""Parsers of the output of SELinux's programs: semanage, semodule and restorecon. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, TypedDict

from statecore.model.text_lines import lines_of

#: Letter of a kind of file (option ``--ftype`` of semanage fcontext) -> its name in the program's list.
FILE_TYPES: Mapping[str, str] = {
    "a": "all files",
    "f": "regular file",
    "d": "directory",
    "c": "character device",
    "b": "block device",
    "s": "socket",
    "l": "symbolic link",
    "p": "named pipe",
}

_BOOLEAN = re.compile(r"^(\S+)\s+\(\s*(\w+)\s*,\s*(\w+)\s*\)\s*(.*?)\s*$", re.MULTILINE)

_FILE_RULE = re.compile(
    rf"^(\S+) +({'|'.join(FILE_TYPES.values())}) +([^:\s]+:[^:\s]+:[^:\s]+:\S+)[ \t]*$", re.MULTILINE
)

_PORT_RULE = re.compile(r"^(\w+) +(\w+) +(\d[\d\-, ]*?) *$", re.MULTILINE)

_WOULD = re.compile(r"^Would relabel (.*) from (\S+) to (\S+)$", re.MULTILINE)

#: Output of policycoreutils before 2.7.
_RESET = re.compile(r"^restorecon reset (.*) context (\S+)->(\S+)$", re.MULTILINE)

_PARTS = ("sel_user", "sel_role", "sel_type", "sel_level")


class BooleanState(TypedDict):
    """State of an SELinux boolean, as texts: now (``State``), after the next start (``Default``), and its
    description.
    """

    State: str
    Default: str
    Description: str


class PortRule(NamedTuple):
    """A rule of the SELinux policy for network ports: their type, the protocol, and the ports or ranges of ports."""

    sel_type: str
    protocol: str
    ports: tuple[str, ...]


def booleans(text: str) -> dict[str, BooleanState]:
    """Parse the output of ``semanage boolean --list``. Return a map of the boolean's name to its BooleanState."""
    return {
        name: {"State": state, "Default": default, "Description": " ".join(description.split())}
        for name, state, default, description in _BOOLEAN.findall(text)
        if (state, default) != ("State", "Default")
    }


def modules(text: str) -> dict[str, bool]:
    """Parse the output of ``semodule --list-modules=full``. Return a map of the module's name to True if it is
    enabled.
    """
    rows = [words for words in (line.split() for line in lines_of(text)) if len(words) > 1]
    return {words[1]: "disabled" not in words[2:] for words in rows}


def file_rules(text: str) -> list[dict[str, str]]:
    """Parse the output of ``semanage fcontext --list``. Return a list of maps with filespec, filetype, sel_user,
    sel_role, sel_type and sel_level.

    Rules without a context (``<<None>>``) are left out.
    """
    return [
        {"filespec": filespec, "filetype": filetype, **context(label)}
        for filespec, filetype, label in _FILE_RULE.findall(text)
    ]


def ports(text: str) -> list[PortRule]:
    """Parse the output of ``semanage port --list``. Return a PortRule for each of its lines."""
    return [
        PortRule(sel_type, protocol, tuple(re.split(r", *", numbers)))
        for sel_type, protocol, numbers in _PORT_RULE.findall(text)
    ]


def context(label: str) -> dict[str, str]:
    """Return an SELinux context ``user:role:type:level`` as a map of sel_user, sel_role, sel_type and sel_level. The
    level may contain colons.
    """
    return dict(zip(_PARTS, label.split(":", 3), strict=False))


def relabelled(text: str) -> dict[str, dict[str, dict[str, str]]] | None:
    """Parse the output of ``restorecon -n -v``. Return {path: {"old": parts, "new": parts}} with the parts of the
    SELinux context that differ; None for empty or other output.
    """
    pattern = next((each for each in (_WOULD, _RESET) if each.match(text)), None)
    if pattern is None:
        return None
    found = {}
    for path, before, after in pattern.findall(text):
        old, new = context(before), context(after)
        differ = [part for part in _PARTS if old.get(part) != new.get(part)]
        found[path] = {
            "old": {part: old[part] for part in differ if part in old},
            "new": {part: new[part] for part in differ if part in new},
        }
    return found
