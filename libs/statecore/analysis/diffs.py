"""The change of a file as a unified diff, whole, new and removed files too. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from statecore.model.types import FileChange

#: Bytes looked at to tell text from binary, as diff and git do.
_SNIFF = 8192

_NOWHERE = "/dev/null"


def unified(change: FileChange) -> str:
    """The diff, its lines ended; a sentence where it cannot be shown or text cannot tell it; "" for no difference."""
    if change.before == change.after:
        return ""
    if not change.shown:
        return f"{change.path}: its author wants the change shown to nobody\n"
    before, after = _lines(change.before), _lines(change.after)
    if before is None or after is None:
        old, new = (f"{len(side)} bytes" if side is not None else "no file" for side in (change.before, change.after))
        return f"{change.path}: binary, {old} -> {new}\n"
    names = (_NOWHERE if change.before is None else change.path, _NOWHERE if change.after is None else change.path)
    return "".join(_ended(difflib.unified_diff(before, after, *names))) or f"{change.path}: an empty file\n"


def _lines(data: bytes | None) -> list[str] | None:
    """Lines with their ends; None for what is no text."""
    if data is None:
        return []
    if b"\0" in data[:_SNIFF]:
        return None
    try:
        return data.decode().splitlines(keepends=True)
    except UnicodeDecodeError:
        return None


def _ended(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
