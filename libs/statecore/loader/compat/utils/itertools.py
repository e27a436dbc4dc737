"""``salt.utils.itertools`` for users' modules: iteration over the parts of a text and the blocks of a file, and glob
matches in a list.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator
from typing import IO


def split(orig: str, sep: str | None = None) -> Iterator[str]:
    """Yield the parts of a text between separators, as ``str.split`` returns them. An empty last part is left out."""
    parts = orig.split(sep) if sep is not None else [part for part in re.split(r"\s+", orig) if part]
    yield from parts if not parts or parts[-1] else parts[:-1]


def read_file(
    fh_: str | bytes | os.PathLike[str] | IO[str] | IO[bytes], chunk_size: int = 1048576
) -> Iterator[str | bytes]:
    """Yield the content of a file (path or open file) in chunks of ``chunk_size`` bytes. Raise ValueError for a
    fractional size.
    """
    if int(chunk_size) != chunk_size:
        raise ValueError("chunk_size must be an integer")
    with open(fh_, "rb") if isinstance(fh_, str | bytes | os.PathLike) else fh_ as file:
        while chunk := file.read(chunk_size):
            yield chunk


def fnmatch_multiple(candidates: object, pattern: str) -> str | None:
    """Return the first of the texts that the glob ``pattern`` matches; None if it matches none."""
    if not isinstance(candidates, Iterable):
        return None
    return next((each for each in candidates if isinstance(each, str) and fnmatch.fnmatch(each, pattern)), None)
