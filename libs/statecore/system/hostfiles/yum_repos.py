"""``.repo`` files of dnf and yum: one section of options for each repository.

Comments and order of a file are kept. Only changed options are rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from statecore.model.text_lines import lines_of

_HEADER = re.compile(r"^\[(?P<name>[^\]]+)\]\s*$")
_OPTION = re.compile(r"^(?P<key>[^\s=:#;\[][^=:]*?)\s*[=:]\s*(?P<value>.*?)\s*$")


def sections(text: str) -> dict[str, dict[str, object]]:
    """Map of repository name to its options, from the text of a ``.repo`` file. The option ``comments`` lists the
    comments in its section.
    """
    found: dict[str, dict[str, object]] = {}
    section: dict[str, object] | None = None
    key = ""
    for line in lines_of(text):
        header = _HEADER.match(line)
        if header:
            section, key = found.setdefault(header["name"], {}), ""
        elif section is None or not line.strip():
            continue
        elif line.startswith(("#", ";")):
            comments = section.setdefault("comments", [])
            if isinstance(comments, list):
                comments.append(line[1:].strip())
        elif line[0].isspace() and key:
            # Continuation lines of a value are indented.
            section[key] = f"{section[key]}\n{line.strip()}"
        elif option := _OPTION.match(line):
            key = option["key"].strip().lower()
            section[key] = option["value"]
    return found


def edited(
    text: str, name: str, options: Mapping[str, str], removed: Sequence[str] = (), comments: Sequence[str] | None = None
) -> str:
    """Return the text of a ``.repo`` file with options of one repository set and removed. A new repository is added at
    the end.

    ``comments`` replace the section's comments; None keeps them.
    """
    before, body, after = _split(text, name)
    lines: list[str] = []
    skipping = False
    left = dict(options)
    for line in body:
        if line.startswith(("#", ";")):
            lines += [] if comments is not None else [line]
            continue
        if line[:1].isspace() and line.strip():
            lines += [] if skipping else [line]
            continue
        option = _OPTION.match(line)
        key = option["key"].strip().lower() if option else ""
        skipping = key in removed or key in options
        if key in left:
            lines.append(f"{key}={_value(left.pop(key))}")
        elif not skipping:
            lines.append(line)
    while lines and not lines[-1].strip():
        lines.pop()
    lines += [f"{key}={_value(value)}" for key, value in left.items()]
    lines += [f"# {each}" for each in comments or ()]
    if not any(_HEADER.match(line) for line in before[-1:]):
        while before and not before[-1].strip():
            before.pop()
        before += ["", f"[{name}]"] if before else [f"[{name}]"]
    return "\n".join([*before, *lines, *([""] if after else []), *after]) + "\n"


def without(text: str, name: str) -> str:
    """Return the text of a ``.repo`` file without one repository."""
    before, _, after = _split(text, name)
    while before and (not before[-1].strip() or (_HEADER.match(before[-1]) or [""])[0].strip() == f"[{name}]"):
        before.pop()
    return "\n".join([*before, *([""] if before and after else []), *after]) + "\n"


def _split(text: str, name: str) -> tuple[list[str], list[str], list[str]]:
    """Return (lines of a ``.repo`` file up to the repository's header, the repository's lines, lines after them).

    If the repository does not exist, all lines are in the first list.
    """
    lines = lines_of(text)
    headers = {at: match["name"] for at, line in enumerate(lines) if (match := _HEADER.match(line))}
    start = next((at for at, header in headers.items() if header == name), None)
    if start is None:
        return lines, [], []
    end = next((at for at in headers if at > start), len(lines))
    return lines[: start + 1], lines[start + 1 : end], lines[end:]


def _value(value: str) -> str:
    return value.replace("\n", "\n ")
