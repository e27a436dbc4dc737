"""Parsers of dnf's output about package groups. Helpers of ``pkg``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from statecore.builtin.modules.pkg_rpm import dnf
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of

KINDS = ("mandatory", "optional", "default", "conditional")

#: Heading of dnf's list of groups -> key of the result.
_SECTIONS: Mapping[str, str] = {
    "installed groups:": "installed",
    "installed environment groups:": "installed environments",
    "available groups:": "available",
    "available environment groups:": "available environments",
    "available language groups:": "available languages",
}

_LANGUAGE = re.compile(r"(.+) \[(.+)\]")

#: ``Mandatory Packages:`` with members in the lines below; dnf5 has the first member in the same line.
_KIND = re.compile(rf"({'|'.join(KINDS)}) (?:groups|packages)\s*:\s*(.*)$", re.IGNORECASE)


def info(ctx: Context, name: str, given: Mapping[str, object], *, expand: bool, seen: list[str]) -> dict[str, Any]:
    """Return a package group as the map of ``parse_info``: type, group, id, description, and the package names by kind.
    Raise CommandError if the group does not exist.

    ``expand``: replace the groups of an environment by their packages. ``seen``: groups that are not expanded (again);
    expanded groups are added.
    """
    repositories = {key: given.get(key) for key in ("fromrepo", "enablerepo", "disablerepo")}
    words = ["group", "info"] if dnf.name(ctx.host) == "dnf5" else ["groupinfo"]
    result = dnf.run_query(ctx.host, ["--quiet", *dnf.options(repositories), *words, name])
    found = parse_info(result.stdout)
    if not (found["group"] or found["id"]):
        raise CommandError(f"Group '{name}' not found")
    if not (expand and found["type"] == "environment group"):
        return found
    members: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for kind in KINDS:
        for group in found[kind]:
            if group in seen:
                continue
            seen.append(group)
            # An environment lists its groups by name; each group is queried for its packages.
            inner = info(ctx, group, given, expand=True, seen=seen)
            for each in KINDS:
                members[each] |= set(inner[each])
    return found | {kind: sorted(packages) for kind, packages in members.items()}


def parse_info(text: str) -> dict[str, Any]:
    """Parse the output of ``dnf group info`` for one package group into a map.

    Return a map with ``type``, ``group``, ``id``, ``description``, and the sorted package names by kind (``KINDS``).
    """
    facts: dict[str, str] = {}
    members: dict[str, set[str]] = {kind: set() for kind in KINDS}
    kind = None
    for line in lines_of(text):
        bare = line.strip().lstrip("+-=*: ").strip()
        heading = _KIND.match(bare)
        if heading:
            kind = heading[1].lower()
            bare = heading[2].strip()
        elif kind is None:
            key, separator, value = bare.partition(":")
            if separator:
                facts[key.strip().lower()] = value.strip()
            continue
        if kind is not None and bare:
            members[kind].add(bare)
    environment = "environment group" in facts
    return {
        "type": "environment group" if environment else "package group",
        "group": facts.get("environment group") or facts.get("group") or facts.get("name") or "",
        "id": facts.get("environment-id") or facts.get("group-id") or facts.get("id") or "",
        "description": facts.get("description", ""),
        **{each: sorted(packages) for each, packages in members.items()},
    }


def parse_list(text: str) -> dict[str, Any]:
    """Parse the list of package groups that dnf and yum print below headings into {section: list of group names}. The
    section "available languages" is a map of group to {"name", "language"}.
    """
    found = _nothing()
    section = None
    for line in lines_of(text):
        heading = _SECTIONS.get(line.strip().lower())
        if line.strip().lower() == "done":
            break
        if heading or section is None:
            section = heading or section
            continue
        group = line.strip()
        if section != "available languages":
            found[section] += [group] if group else []
        elif match := _LANGUAGE.match(group):
            found[section][group] = {"name": match[1], "language": match[2]}
    return found


def parse_table(text: str) -> dict[str, Any]:
    """Parse the table of package groups that dnf5 prints, whose rows end with ``yes`` (installed) or ``no``, into
    {section: list of group ids}.
    """
    found = _nothing()
    for words in (line.split() for line in lines_of(text)):
        if len(words) >= 3 and words[-1].lower() in ("yes", "no"):
            found["installed" if words[-1].lower() == "yes" else "available"].append(words[0])
    return found


def _nothing() -> dict[str, Any]:
    return {section: {} if section == "available languages" else [] for section in _SECTIONS.values()}
