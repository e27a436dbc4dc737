"""``salt.utils.stringutils`` for users' modules: text and bytes."""

from __future__ import annotations

import base64
import difflib
import fnmatch
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence

from statecore.loader.compat.filter_aliases import filter_getattr

__getattr__ = filter_getattr(
    __name__,
    {
        "camel_to_snake_case": "text.to_snake_case",
        "check_whitelist_blacklist": "text.allowed",
        "human_to_bytes": "text.human_to_bytes",
        "is_hex": "text.is_hex",
        "snake_to_camel_case": "text.to_camelcase",
    },
)

#: Byte values of ASCII text.
_TEXT = bytes(range(32, 127)) + b"\n\r\t\f\b"


def _encodings(encoding: object) -> Sequence[str]:
    if encoding is None:
        return ("utf-8",)
    found = tuple(encoding) if isinstance(encoding, list | tuple) else (encoding,)
    if not found:
        raise ValueError("encoding cannot be empty")
    return found


def to_unicode(s: object, encoding: object = None, errors: str = "strict", normalize: bool = False) -> str:
    """Return bytes decoded to text; text is returned unchanged. Of several encodings the first that fits is used.

    With ``normalize`` the text is in Unicode normal form C. Raise TypeError for other types, UnicodeDecodeError if no
    encoding fits.
    """
    encodings = _encodings(encoding)
    if isinstance(s, str):
        return unicodedata.normalize("NFC", s) if normalize else s
    if not isinstance(s, bytes | bytearray):
        raise TypeError(f"expected str, bytes, or bytearray not {type(s)}")
    for at, each in enumerate(encodings, 1):
        try:
            text = s.decode(each, errors)
        except UnicodeDecodeError:
            if at == len(encodings):
                raise
        else:
            return unicodedata.normalize("NFC", text) if normalize else text
    raise ValueError("encoding cannot be empty")


to_str = to_unicode


def to_bytes(s: object, encoding: object = None, errors: str = "strict") -> bytes:
    """Return text encoded to bytes; bytes are returned unchanged. Of several encodings the first that fits is used.

    Raise TypeError for other types, UnicodeEncodeError if no encoding fits.
    """
    encodings = _encodings(encoding)
    if isinstance(s, bytes | bytearray):
        return bytes(s)
    if not isinstance(s, str):
        raise TypeError(f"expected str, bytes, or bytearray not {type(s)}")
    for at, each in enumerate(encodings, 1):
        try:
            return s.encode(each, errors)
        except UnicodeEncodeError:
            if at == len(encodings):
                raise
    raise ValueError("encoding cannot be empty")


def to_num(text: str | float) -> str | float:
    """Return the number that a text represents; text that is not a number is returned unchanged."""
    numbers: tuple[type[int], type[float]] = (int, float)
    for number in numbers:
        try:
            return number(text)
        except ValueError:
            continue
    return text


def to_none(text: object) -> object:
    """Return None for an empty or blank text; other values are returned unchanged."""
    return text if str(text).strip() else None


def is_quoted(value: object) -> str:
    """Return the quote character around a text (``'`` or ``"``); an empty text if it is not quoted."""
    if not isinstance(value, str) or value[:1] != value[-1:] or not value.startswith(("'", '"')):
        return ""
    return value[0]


def dequote(value: object) -> object:
    """Return a text without the quotes around it; other values are returned unchanged."""
    return value[1:-1] if isinstance(value, str) and is_quoted(value) else value


def is_binary(data: object) -> bool:
    """Return whether bytes look binary: they contain NUL, or more than 30 % of them are not bytes of text."""
    if not data or not isinstance(data, str | bytes):
        return False
    raw = to_bytes(data)
    if b"\0" in raw:
        return True
    known = _TEXT
    try:
        raw.decode("utf-8")
        known += bytes(range(128, 255))
    except UnicodeDecodeError as error:
        # A block that was read from a file may end within a character.
        if error.reason == "unexpected end of data":
            known += bytes(range(128, 255))
    return len(raw.translate(None, known)) / len(raw) > 0.3


def random(size: int = 32) -> str:
    """Return a random text of ``size`` characters, from a cryptographic source."""
    return base64.b64encode(os.urandom(size)).decode()[:size]


def contains_whitespace(text: str) -> bool:
    """Return whether the text contains white space."""
    return any(char.isspace() for char in text)


def expr_match(line: str, expr: str) -> bool:
    """Return whether the whole text matches ``expr``, a glob or a regular expression."""
    try:
        return fnmatch.fnmatch(line, expr) or re.fullmatch(expr, line) is not None
    except (re.error, TypeError):
        return False


def check_include_exclude(
    path_str: str, include_pat: str | list[str] | None = None, exclude_pat: str | list[str] | None = None
) -> bool:
    """Return whether a path matches an include pattern (if there is one) and matches no exclude pattern.

    A pattern is a glob, or after ``E@`` a regular expression. A list of patterns is allowed.
    """

    def matched(patterns: str | list[str]) -> bool:
        return any(
            re.search(each[2:], path_str) is not None if each.startswith("E@") else fnmatch.fnmatch(path_str, each)
            for each in (patterns if isinstance(patterns, list) else [patterns])
        )

    return (not include_pat or matched(include_pat)) and not (exclude_pat and matched(exclude_pat))


def print_cli(msg: object, retries: int = 10, step: float = 0.01) -> None:
    """Print a value and a newline to standard output. ``retries`` and ``step`` are accepted and ignored."""
    sys.stdout.write(f"{msg}\n")


def get_context(template: str, line: int, num_lines: int = 5, marker: str | None = None) -> str:
    """Return the lines of a text around the line number ``line``, between dashed lines. ``marker`` is appended to that
    line.
    """
    lines = template.splitlines()
    if line > len(lines):
        return template
    first, end = max(0, line - num_lines - 1), min(len(lines), line + num_lines)
    shown = [text + (marker if marker and at == line - 1 else "") for at, text in enumerate(lines)][first:end]
    around = [*(["[...]"] if first else []), *shown, *(["[...]"] if end < len(lines) else [])]
    return "---\n" + "\n".join(around) + "\n---"


def get_diff_list(a: Iterable[object], b: Iterable[object], *args: object, **kwargs: object) -> Iterator[str]:
    """Return the lines of a unified diff of two lists of lines. Further arguments are those of
    ``difflib.unified_diff``.
    """
    left, right = ([to_unicode(line, ("utf-8", "latin-1")) for line in lines] for lines in (a, b))
    lines_of: Callable[..., Iterator[str]] = difflib.unified_diff
    return lines_of(left, right, *args, **kwargs)


def get_diff(a: Iterable[object], b: Iterable[object], *args: object, **kwargs: object) -> str:
    """Return a unified diff of two lists of lines as one text. Further arguments are those of ``difflib.unified_diff``."""
    return "".join(get_diff_list(a, b, *args, **kwargs))
