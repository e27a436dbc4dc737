"""Reads the lists that accept or reject a minion's key without an operator: ``autosign_file``, ``autoreject_file`` and the
files of ``autosign_grains_dir``.

All three are read by ``_entries``. Lines with ``#`` are comments, empty lines are skipped, white space around a line is
removed. As in Salt, a file that everybody may write is not used, and one that its group may write only with
``permissive_pki_access``. A file that cannot be used is logged, and lists nothing.

A file of ``autosign_grains_dir`` counts for the grain that has the file's name. What editors and package managers leave there
(``uuid~``, ``.uuid.swp``, ``uuid.rpmsave``, README) is no list: a minion chooses the names of the grains that it sends.

Source: docs/protocol.md#sign-in-decisions
"""

from __future__ import annotations

import fnmatch
import logging
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from saltern.kit.process.cpu_limit import CpuLimit, cpu_limit
from saltwire.errors import shown
from statecore.model.regex import expression

_LOG = logging.getLogger("saltern.mworker")

#: Largest list, bytes.
_MOST_BYTES = 16 << 20

#: Longest name and longest value of a grain that is compared, characters.
_LONGEST_NAME = 100
_LONGEST_VALUE = 1024

#: Beginnings and ends of the names of files that are no lists, in lower case.
_NO_LIST_BEGINS = (".", "#", "readme", "license", "copying", "changelog")
_NO_LIST_ENDS = (
    *("~", "#", ".swp", ".swo", ".swx", ".bak", ".old", ".orig", ".rej", ".save", ".tmp", ".part"),
    *(".rpmsave", ".rpmnew", ".rpmorig", ".dpkg-old", ".dpkg-new", ".dpkg-dist", ".dpkg-tmp", ".dpkg-bak"),
    *(".ucf-old", ".ucf-new", ".ucf-dist", ".pacnew", ".pacsave", ".md", ".rst"),
)

#: Seconds of CPU time to compare an id with the lines of a file.
_SECONDS = 1.0

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Entry(NamedTuple):
    """A line of a list: its file, its number (1 for the first line) and its text without white space around it."""

    file: str
    line: int
    text: str

    @property
    def place(self) -> str:
        """The line as FILE:LINE."""
        return f"{self.file}:{self.line}"


def listing(option: str, path: str, minion_id: str, *, permissive: bool, unsure: bool = False) -> str:
    """Return which line of the file matches a minion id (a glob or a full regular expression) as "OPTION, FILE:LINE"; ""
    if none does.

    ``option``: name of the option that names the file. ``permissive``: the option permissive_pki_access. ``unsure``:
    whether an id counts as listed if its comparison takes too long.
    """
    entries = list(_entries(option, path, permissive=permissive)) if path else []
    place = path
    try:
        # The id comes from anybody, and an expression may be one that backtracks.
        with cpu_limit(_SECONDS):
            for entry in entries:
                place = entry.place
                if _matches(entry.text, minion_id):
                    return f"{option}, {place}"
    except CpuLimit:
        _LOG.warning("%s: %s takes too long to compare with a minion id: write it more simply", option, place)
        return f"{option}, {place}" if unsure else ""
    return ""


def listing_of_grains(directory: str, grains: Mapping[str, object], *, permissive: bool) -> str:
    """Return which line of ``autosign_grains_dir`` equals the value of a grain, as "autosign_grains_dir, FILE:LINE"; "" if
    none does.

    ``grains``: what the minion sent, unchecked. A value is a text, a number or a boolean; an empty one, one with control
    characters and one above 1024 characters equals nothing.
    """
    option = "autosign_grains_dir"
    if not directory or not grains:
        return ""
    try:
        files = sorted(Path(directory).iterdir())
    except FileNotFoundError:
        return ""
    except OSError as error:
        _LOG.error("%s: %s cannot be read: %s", option, directory, error.strerror)
        return ""
    for file in files:
        value = _value(grains[file.name]) if file.name in grains and is_list(file.name) else ""
        for entry in _entries(option, str(file), permissive=permissive) if value else ():
            if entry.text == value:
                return f"{option}, {entry.place}"
    return ""


def is_list(name: str) -> bool:
    """Return whether a file of ``autosign_grains_dir`` is the list of a grain, by its name."""
    lower = name.lower()
    known = not lower.startswith(_NO_LIST_BEGINS) and not lower.endswith(_NO_LIST_ENDS)
    return known and len(name) <= _LONGEST_NAME and name.isprintable()


def _value(given: object) -> str:
    """Return the value of a grain as the text that a line must equal; "" for a value that no line may equal."""
    if not isinstance(given, str | int | float):
        return ""
    text = str(given)
    return "" if len(text) > _LONGEST_VALUE or _CONTROL.search(text) or text != text.strip() else text


def _entries(option: str, path: str, *, permissive: bool) -> Iterator[Entry]:
    """Yield the lines of a list, without comments and empty lines. Log why a file cannot be used."""
    try:
        # O_NONBLOCK: a named pipe would hold the worker.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if why := _unusable(os.fstat(descriptor), permissive=permissive):
                _LOG.warning("%s: %s is not used: %s", option, shown(path), why)
                return
            text = file.read(_MOST_BYTES).decode("utf-8")
    except FileNotFoundError:
        return
    except OSError as error:
        _LOG.error("%s: %s cannot be read: %s", option, shown(path), error.strerror)
        return
    except UnicodeDecodeError as error:
        _LOG.error("%s: %s is not used: it is no UTF-8 (byte %d)", option, shown(path), error.start)
        return
    for number, line in enumerate(text.split("\n"), 1):
        written = line.strip()
        if written and not written.startswith("#"):
            yield Entry(path, number, written)


def _unusable(found: os.stat_result, *, permissive: bool) -> str:
    """Return why a file is not used as a list; "" if it is."""
    if not stat.S_ISREG(found.st_mode):
        return "it is no regular file"
    if found.st_size > _MOST_BYTES:
        return f"it has {found.st_size} bytes; {_MOST_BYTES} are allowed"
    if found.st_mode & stat.S_IWOTH:
        return "everybody may write it (chmod o-w)"
    if found.st_mode & stat.S_IWGRP and not permissive:
        return "its group may write it (chmod g-w, or set permissive_pki_access: true)"
    if found.st_mode & stat.S_IWGRP and os.getuid() == 0 and found.st_gid not in (os.getgid(), *os.getgroups()):
        return "a group of which root is no member may write it (chmod g-w)"
    return ""


def _matches(line: str, minion_id: str) -> bool:
    if fnmatch.fnmatchcase(minion_id, line):
        return True
    try:
        return expression(line).fullmatch(minion_id) is not None
    except (re.error, RecursionError, OverflowError):
        return False
