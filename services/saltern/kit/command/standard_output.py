"""Handles a standard output that cannot be written: a full disk, a reader that has closed its end."""

from __future__ import annotations

import os
import sys


def fault() -> str:
    """Write a line end to standard output and return the reason why that fails, "" if it succeeds.

    After an error, sys.stdout is replaced and further writes are discarded.
    """
    if sys.stdout is None:
        return ""
    try:
        sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError as error:
        silence()
        return error.strerror or str(error)
    return ""


def silence() -> None:
    """Discard all further writes to standard output.

    Python then does not report an error of the stream again when it closes the stream.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
