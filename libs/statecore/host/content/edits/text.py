"""Bytes of a file as lines, and lines as bytes: whatever an edit does not touch stays as it is, to the byte."""

from __future__ import annotations

import io
import re

from statecore.model.errors import InvocationError

#: Bytes looked at for a null byte, which no text has.
_SNIFF = 8192


def decoded(data: bytes, name: str) -> str:
    """The text; bytes that are not UTF-8 come through unharmed. Raises InvocationError for a binary file."""
    if b"\0" in data[:_SNIFF]:
        raise InvocationError(f"Cannot perform string replacements on a binary file: {name}")
    return data.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """The bytes of a text that ``decoded`` gave."""
    return text.encode("utf-8", "surrogateescape")


def lines(text: str) -> list[str]:
    """The lines, each with its end, whichever of the three it is."""
    return list(io.StringIO(text, newline=""))


def line_end(line: str) -> str:
    """How a line ends: "" where nothing follows it."""
    return line[len(line.rstrip("\r\n")) :]


def with_unix_ends(text: str) -> tuple[str, str]:
    r"""The text with ``\n`` alone, and the end that every line of it has: ``\n`` where they are not one."""
    ends = {line_end(line) for line in lines(text)} - {""}
    end = ends.pop() if len(ends) == 1 else "\n"
    return text.replace("\r\n", "\n").replace("\r", "\n"), end


def compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """A regular expression. Raises InvocationError that quotes it."""
    try:
        return re.compile(pattern, flags)
    except re.error as error:
        raise InvocationError(f"'{pattern}' is no regular expression: {error}") from error
