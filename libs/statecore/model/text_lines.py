"""Lines of a text: the output of a program, a file with one entry in each line, an answer of a server.

``str.splitlines`` also splits at U+2028, U+2029, U+0085, form feed, vertical tab and the separators 0x1c to 0x1e. Names of
files, branches and users may have these characters, so that a name would become a line of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import overload


def text_of(path: Path, errors: str = "replace") -> str:
    """Return the text of a UTF-8 file as it stands. ``Path.read_text`` makes a newline of each carriage return, which names of
    processes, mount points and users may have. ``errors`` is as for bytes.decode. Raise OSError, UnicodeDecodeError.
    """
    return path.read_bytes().decode("utf-8", errors)


@overload
def lines_of(text: str, *, keepends: bool = False) -> list[str]: ...
@overload
def lines_of(text: bytes, *, keepends: bool = False) -> list[bytes]: ...
def lines_of(text: str | bytes, *, keepends: bool = False) -> list[str] | list[bytes]:
    r"""List of the lines of a text. Only ``\n`` ends a line; a ``\r`` before it belongs to the end, as in files of Windows.

    A line end at the end of the text begins no further line; an empty text has no lines. ``keepends``: each line keeps its
    line end, so that the joined lines are the text.
    """
    if isinstance(text, bytes):
        pieces = text.split(b"\n")
        rest = [pieces.pop()]
        return [piece + b"\n" if keepends else piece.removesuffix(b"\r") for piece in pieces] + (
            rest if rest[0] else []
        )
    parts = text.split("\n")
    last = [parts.pop()]
    return [part + "\n" if keepends else part.removesuffix("\r") for part in parts] + (last if last[0] else [])
