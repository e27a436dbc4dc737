"""What changed in a file, as people are shown it, and whether it matters to what watches the file."""

from __future__ import annotations

import codecs
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statecore.model.errors import InvocationError

#: What ``show_changes: False`` shows.
HIDDEN = "<show_changes=False>"

#: Bytes looked at to tell text from binary, as diff and git do.
_SNIFF = 8192

_BLOCK = 1024 * 1024


def is_binary(data: bytes | Path) -> bool:
    """Whether a content is no text."""
    if isinstance(data, Path):
        return _is_binary_file(data)
    if b"\0" in data[:_SNIFF]:
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def _is_binary_file(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        block = file.read(_SNIFF)
        if b"\0" in block:
            return True
        try:
            while block:
                decoder.decode(block)
                block = file.read(_BLOCK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return True
    return False


def unified(old: bytes | Path | None, new: bytes | Path, before: str = "", after: str = "") -> str:
    """The change of a file as Salt shows it: a unified diff (of files of these names), or a sentence where text cannot tell it."""
    if old is None:
        return "New file"
    was_binary, will_be = is_binary(old), is_binary(new)
    if was_binary or will_be:
        kinds = {(True, True): "Replace binary file", (True, False): "Replace binary file with text file"}
        return kinds.get((was_binary, will_be), "Replace text file with binary file")
    if isinstance(old, Path) or isinstance(new, Path):
        return f"Replace text file of {_size(old)} bytes with one of {_size(new)} bytes"
    lines, others = old.decode().splitlines(keepends=True), new.decode().splitlines(keepends=True)
    return "".join(difflib.unified_diff(lines, others, before, after))


def _size(content: bytes | Path) -> int:
    return content.stat().st_size if isinstance(content, Path) else len(content)


@dataclass(frozen=True, slots=True)
class Ignored:
    """Which changes of a file trigger nothing (``ignore_ordering`` and its kin of ``file.managed``); they are made all the same."""

    ordering: bool = False
    whitespace: bool = False
    #: What begins a comment; what comes behind it is ignored.
    comments: Sequence[str] = ()

    @classmethod
    def of(cls, ordering: bool, whitespace: bool, comment_characters: Any) -> Ignored:
        """From the arguments. Raises InvocationError."""
        given = comment_characters if isinstance(comment_characters, list) else [comment_characters or ""]
        if not all(isinstance(each, str) for each in given):
            raise InvocationError(
                f"ignore_comment_characters is a text, or a list of texts, not {comment_characters!r}"
            )
        return cls(ordering, whitespace, tuple(each for each in given if each))

    def __bool__(self) -> bool:
        return bool(self.ordering or self.whitespace or self.comments)

    def all_of(self, old: bytes | Path, new: bytes | Path) -> bool:
        """Whether nothing else changed from one content to the other. Salt: utils/stringutils.py, get_conditional_diff.

        The order of lines never counts, once anything is ignored; lines of which nothing remains do not either. What is
        shown whole nowhere, be it too large or no text, counts as changed.
        """
        if not self or isinstance(old, Path) or isinstance(new, Path) or is_binary(old) or is_binary(new):
            return False
        before, after = old.decode().splitlines(keepends=True), new.decode().splitlines(keepends=True)
        changed: dict[str, list[str]] = {"-": [], "+": []}
        for line in _changed(before, after):
            if rest := self._rest(line[1:]):
                changed[line[0]].append(rest)
        return sorted(changed["-"]) == sorted(changed["+"])

    def _rest(self, line: str) -> str:
        for start in self.comments:
            line = line.partition(start)[0]
        return line.strip() if self.whitespace else line


def _changed(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Lines that went and came, behind - and +."""
    # The first two lines name the files.
    return [line for line in list(difflib.unified_diff(before, after, n=0))[2:] if line[0] in "-+"]
