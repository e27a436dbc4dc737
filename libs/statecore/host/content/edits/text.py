"""Conversion between a file's bytes and its lines. Bytes that an edit does not touch stay the same."""

from __future__ import annotations

import io
import re

from statecore.model.errors import InvocationError

#: Bytes at the start of a file that are searched for a null byte: a text file has none.
_SNIFF = 8192


def decoded(data: bytes, name: str) -> str:
    """Return the text of a file; bytes that are not UTF-8 become surrogate escapes. Raises InvocationError for a
    binary file.
    """
    if b"\0" in data[:_SNIFF]:
        raise InvocationError(f"Cannot perform string replacements on a binary file: {name}")
    return data.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """Return the bytes of a file's text. Bytes that were not UTF-8 become the same bytes again."""
    return text.encode("utf-8", "surrogateescape")


def lines(text: str) -> list[str]:
    """Return the lines of a text, each with its line ending (LF, CRLF or CR)."""
    return list(io.StringIO(text, newline=""))


def line_end(line: str) -> str:
    """Return the line ending of a line; "" when it has none."""
    return line[len(line.rstrip("\r\n")) :]


def with_unix_ends(text: str) -> tuple[str, str]:
    """Return the text with LF line endings, and its original line ending; LF when the lines have different endings."""
    ends = {line_end(line) for line in lines(text)} - {""}
    end = ends.pop() if len(ends) == 1 else "\n"
    return text.replace("\r\n", "\n").replace("\r", "\n"), end


def compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a regular expression and return it. Raise InvocationError with the expression if it is invalid."""
    try:
        return re.compile(pattern, flags)
    except re.error as error:
        raise InvocationError(f"'{pattern}' is not a valid regular expression: {error}") from error
