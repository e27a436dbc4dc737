"""Differences between two contents of a file, as Salt shows them."""

from __future__ import annotations

import codecs
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from statecore.model.errors import InvocationError
from statecore.model.text_lines import lines_of

#: Text in place of the difference for ``show_changes: False``.
HIDDEN = "<show_changes=False>"

#: Bytes at the start of a file that are searched for a null byte. diff and git do the same.
_SNIFF = 8192

#: Bytes at the start of a file that tell whether it is text in another character set than UTF-8.
_BEGINNING = 512

#: Bytes of a text in ASCII.
_ASCII = bytes(range(32, 127)) + b"\n\r\t\f\b"

_BLOCK = 1024 * 1024


def is_binary(data: bytes | Path) -> bool:
    """Return whether a content has a null byte near its start, or is neither UTF-8 nor text in another character set.

    As in Salt, it is text in another character set if at most three of ten bytes near its start are not ASCII.
    """
    if isinstance(data, Path):
        return _is_binary_file(data)
    if b"\0" in data[:_SNIFF]:
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return _is_no_text(data[:_BEGINNING])
    return False


def _is_no_text(start: bytes) -> bool:
    return len(start.translate(None, _ASCII)) > 0.3 * len(start)


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
            file.seek(0)
            return _is_no_text(file.read(_BEGINNING))
    return False


def unified(old: bytes | Path | None, new: bytes | Path, before: str = "", after: str = "") -> str:
    """Return the change of a file as text: a unified diff, or Salt's sentence for a new, binary or large file.

    ``before`` and ``after`` are the file names in the diff's header.
    """
    if old is None:
        return "New file"
    was_binary, will_be = is_binary(old), is_binary(new)
    if was_binary or will_be:
        kinds = {(True, True): "Replace binary file", (True, False): "Replace binary file with text file"}
        return kinds.get((was_binary, will_be), "Replace text file with binary file")
    if isinstance(old, Path) or isinstance(new, Path):
        return f"Replace text file of {_size(old)} bytes with one of {_size(new)} bytes"
    lines, others = _lines(old), _lines(new)
    return "".join(difflib.unified_diff(lines, others, before, after))


def _lines(content: bytes) -> list[str]:
    """Return the lines of a text with their ends; lines that are not UTF-8 are read as Latin-1."""
    try:
        return lines_of(content.decode(), keepends=True)
    except UnicodeDecodeError:
        return [_decoded(line) for line in lines_of(content, keepends=True)]


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _size(content: bytes | Path) -> int:
    return content.stat().st_size if isinstance(content, Path) else len(content)


@dataclass(frozen=True, slots=True)
class Ignored:
    """Changes of a file that trigger no requisites (``ignore_ordering``, ``ignore_whitespace``,
    ``ignore_comment_characters``).

    The file is written in any case.
    """

    ordering: bool = False
    whitespace: bool = False
    #: Texts that start a comment. The rest of such a line is ignored.
    comments: Sequence[str] = ()

    @classmethod
    def of(cls, ordering: bool, whitespace: bool, comment_characters: object) -> Ignored:
        """Return the Ignored for the arguments ``ignore_ordering``, ``ignore_whitespace`` and
        ``ignore_comment_characters``.

        Raises InvocationError if ``ignore_comment_characters`` is not a text or a list of texts.
        """
        given = comment_characters if isinstance(comment_characters, list) else [comment_characters or ""]
        texts = [each for each in given if isinstance(each, str)]
        if len(texts) != len(given):
            raise InvocationError(
                f"ignore_comment_characters is a text, or a list of texts, not {comment_characters!r}"
            )
        return cls(ordering, whitespace, tuple(each for each in texts if each))

    def __bool__(self) -> bool:
        return bool(self.ordering or self.whitespace or self.comments)

    def all_of(self, old: bytes | Path, new: bytes | Path) -> bool:
        """Return whether the two contents differ only in ignored changes. Salt: salt/utils/stringutils.py,
        get_conditional_diff

        When anything is ignored, the order of lines is ignored too, and lines that become empty are ignored. Large
        files and binary files always count as changed.
        """
        if not self or isinstance(old, Path) or isinstance(new, Path) or is_binary(old) or is_binary(new):
            return False
        before, after = _lines(old), _lines(new)
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

    # The first two lines are the header with the file names.
    return [line for line in list(difflib.unified_diff(before, after, n=0))[2:] if line[0] in "-+"]
