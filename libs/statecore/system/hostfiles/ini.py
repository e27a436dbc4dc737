"""INI files: parse and edit, keeping comments, order and unknown lines.

A section is a dict: option to value, nested section to dict. Keys that begin with ``#`` hold comments and unknown
lines. A new option replaces a commented line of the same option.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from statecore.model.text_lines import lines_of

Section: TypeAlias = dict[str, object]

_HEADER = re.compile(r"^\s*\[(.+?)\]\s*$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*(#|;)\s*(.*)")
_INDENTED = re.compile(r"(\s+)(.*)")


def parse(text: str, separator: str = "=") -> Section:
    """Return the text of an INI file as a map of section to {option: value}. Options before the first section are at
    the top level.
    """
    first, *parts = _HEADER.split("\n".join(lines_of(text)))
    top = _options(first, separator)
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        options = _options(body, separator)
        known = top.get(name)
        if isinstance(known, dict):
            known.update(options)
        else:
            top[name] = options
    return top


def plain(section: Mapping[str, object]) -> Section:
    """Return a copy of the sections and options of an INI file without its comments."""
    return {key: plain(value) if isinstance(value, dict) else value for key, value in section.items() if key[:1] != "#"}


def update(section: Section, wanted: Mapping[str, object], separator: str = "=") -> dict[str, dict[str, object]]:
    """Set options and sections of a parsed INI file. Return the changes: {name: {"before": old value or None, "after":
    new value}}. For an existing section, the name maps to such a map of its options.
    """
    changes: dict[str, dict[str, object]] = {}
    for name, value in ((str(key), each) for key, each in wanted.items()):
        old = section.get(name)
        if isinstance(value, Mapping):
            if isinstance(old, dict):
                if inner := update(old, value, separator):
                    changes[name] = {**inner}
                continue
            new = {str(key): str(each) for key, each in value.items()}
            section[name] = new
            changes[name] = {"before": old, "after": dict(new)}
        elif old != str(value):
            changes[name] = {"before": old, "after": str(value)}
            _put(section, name, str(value), separator)
    return changes


def render(top: Mapping[str, object], separator: str = "=", *, no_spaces: bool = False) -> str:
    """Return the text of an INI file: top-level options, then each section after an empty line."""
    sign = separator.strip()
    sign = " " if not sign else sign if no_spaces else f" {sign} "
    return "".join(_lines(top, sign)).lstrip("\n")


def _options(body: str, separator: str) -> Section:
    section: Section = {}
    option = _pattern(separator)
    indent, comments = "", 0
    for line in body.strip("\n").split("\n") if body.strip("\n") else ():
        if _COMMENT.match(line):
            comments += 1
            section[f"#comment{comments}"] = line
            continue
        indented = _INDENTED.match(line)
        if indented and section and indented.group(1).expandtabs(4) > indent:
            last = next(reversed(section))
            section[last] = f"{section[last]}\n{line}"
            continue
        found = option.match(line)
        if found is None:
            section[f"#unknown{len(section)}"] = line
            continue
        indent = found.group(1).expandtabs(4)
        _put(section, found.group(2), found.group(3), separator)
    return section


def _put(section: Section, name: str, value: str, separator: str) -> None:
    """Set an option in a section of an INI file. A new option replaces its commented line, if there is one."""
    if name not in section:
        option = _pattern(separator)
        lines = [(key, line) for key, line in section.items() if key.startswith("#comment") and isinstance(line, str)]
        for key, line in lines:
            found = option.match(line.lstrip("#"))
            if found and found.group(2) == name:
                items: list[tuple[str, object]] = [
                    (name, value) if each == key else (each, old) for each, old in section.items()
                ]
                section.clear()
                section.update(items)
                return
    section[name] = value


def _pattern(separator: str) -> re.Pattern[str]:
    return re.compile(rf"(\s*)(.+?)\s*{re.escape(separator)}\s*(.*)\s*")


def _lines(section: Mapping[str, object], sign: str) -> Iterator[str]:
    for name, value in section.items():
        if not isinstance(value, dict):
            yield f"{value}\n" if name.startswith("#") else f"{name}{sign}{value}\n"
    for name, value in section.items():
        if isinstance(value, dict):
            yield f"\n[{name}]\n"
            yield from _lines(value, sign)
