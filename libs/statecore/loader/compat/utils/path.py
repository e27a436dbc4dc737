"""``salt.utils.path``."""

from __future__ import annotations

import os
import shutil


def which(exe: str | None = None) -> str | None:
    """The path of a program of this machine."""
    return shutil.which(exe) if exe else None


def which_bin(exes: list[str]) -> str | None:
    """The first of these programs that is there."""
    return next((found for exe in exes if (found := which(exe))), None)


def join(*parts: str) -> str:
    """``os.path.join``, where a later absolute part does not drop the earlier ones."""
    first, *rest = parts
    return os.path.normpath(os.path.join(first, *(part.lstrip("/") for part in rest)))
