"""Standard output that takes nothing: a full disk, a reader that has gone."""

from __future__ import annotations

import os
import sys


def fault() -> str:
    """Why it takes nothing, "" when it does; it takes, and loses, all from then on. It is tried, for it need not have a buffer
    that would know."""
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
    """What is still written goes nowhere: Python writes what is left, and would complain again, when it closes it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
