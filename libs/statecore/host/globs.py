"""Globs over the files of the managed host, with the rules of Python's ``glob``."""

from __future__ import annotations

import fnmatch

from statecore.host.rooted_path import lexists
from statecore.model.ports import ManagedHost

_WILDCARDS = frozenset("*?[")


def has_wildcard(pattern: str) -> bool:
    """Return whether a text has one of the characters ``*``, ``?`` and ``[``."""
    return not _WILDCARDS.isdisjoint(pattern)


def matching_paths(host: ManagedHost, pattern: str) -> list[str]:
    """Return the sorted absolute paths of the host's files that match an absolute glob; each part may hold wildcards.

    A relative pattern matches nothing. A wildcard does not match a leading dot. A pattern without wildcards matches the
    file of this name, a dangling link too.
    """
    if not pattern.startswith("/"):
        return []
    paths = ["/"]
    for part in pattern.split("/"):
        if part:
            paths = [
                f"{directory.rstrip('/')}/{name}"
                for directory in paths
                for name in (_matching_names(host, directory, part) if has_wildcard(part) else [part])
            ]
    return sorted(path for path in paths if lexists(host.path(path, follow=False)))


def _matching_names(host: ManagedHost, directory: str, pattern: str) -> list[str]:
    real_path = host.path(directory)
    if not real_path.is_dir():
        return []
    return [
        entry.name
        for entry in real_path.iterdir()
        if fnmatch.fnmatchcase(entry.name, pattern) and (pattern.startswith(".") or not entry.name.startswith("."))
    ]
