"""Beacon ``inotify``: fires an event for each change of the watched files and directories. The kernel reports the
changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Any

from statecore.host.inotify import MASKS, Change, Watcher
from statecore.model.context import Context
from statecore.system.scheduling.beacon_config import listed, merged

#: Changes that are reported for a path without ``mask``.
_DEFAULT = ("create", "delete", "modify")

_PATH_OPTIONS = ("mask", "recurse", "auto_add")


def validate(ctx: Context, config: object) -> tuple[bool, str]:
    """Return (True if the configuration of the beacon ``inotify`` is valid, comment). Its ``files`` maps each path to
    the options ``mask``, ``recurse``, ``auto_add`` and ``exclude``.
    """
    if fault := listed(config, "inotify"):
        return False, fault
    whole = merged(config)
    if "files" not in whole:
        return False, "Configuration for inotify beacon must include files."
    if not isinstance(whole["files"], Mapping):
        return False, "Configuration for inotify beacon invalid, files must be a dict."
    faults = (_fault_of(options) for options in whole["files"].values())
    return next(((False, fault) for fault in faults if fault), (True, "Valid beacon configuration"))


def _fault_of(options: object) -> str:
    about = "Configuration for inotify beacon"
    if not isinstance(options, Mapping):
        return f"{about} must be a list of dictionaries."
    if not any(name in options for name in _PATH_OPTIONS):
        return f"{about} must contain mask, recurse or auto_add items."
    for name in ("auto_add", "recurse"):
        if not isinstance(options.get(name, False), bool):
            return f"{about} {name} must be boolean."
    masks = options.get("mask", [])
    if not isinstance(masks, list):
        return f"{about} mask must be list."
    unknown = [mask for mask in masks if mask not in MASKS]
    if unknown:
        return f"{about} invalid mask option {unknown[0]}."
    for exclude in options.get("exclude") or ():
        if isinstance(exclude, Mapping):
            try:
                re.compile(str(next(iter(exclude), "")))
            except re.error as error:
                return f"{about} exclude: {error}"
    return ""


def beacon(ctx: Context, config: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return a list of events ``{"path": file, "change": "IN_CREATE"}``, one for each file change since the last check.
    The event's tag is the watched path.

    Option ``coalesce``: report equal changes of one check once. Options of a path: ``recurse`` watches all directories
    below it, ``auto_add`` also directories that are created later. ``exclude`` is a list of path prefixes, globs, or
    ``{regular expression: {regex: True}}``.
    """
    whole = merged(config)
    key = f"{whole.get('_beacon_name', 'inotify')}.notifier"
    watcher: Watcher | None = ctx.scratch.get(key)
    if watcher is None:
        watcher = ctx.scratch[key] = Watcher()
    files = whole["files"]
    changes: list[Change] = watcher.read()
    if whole.get("coalesce") is True:
        changes = list(dict.fromkeys(changes))
    found: list[dict[str, object]] = [
        {"tag": change.watched, "path": change.path, "change": change.mask_name}
        for change in changes
        if not _is_excluded(change.path, files.get(change.root, {}))
    ]
    for path, options in files.items():
        real_path = ctx.host.path(str(path))
        if real_path.exists():
            masks = options.get("mask") or _DEFAULT
            watcher.watch(str(path), real_path, masks, bool(options.get("recurse")), bool(options.get("auto_add")))
    watcher.keep_only(str(path) for path in files)
    return found


def close(ctx: Context, config: list[dict[str, object]]) -> None:
    """Stop watching all files of the beacon ``inotify`` and close its inotify descriptor."""
    watcher = ctx.scratch.pop(f"{merged(config).get('_beacon_name', 'inotify')}.notifier", None)
    if watcher is not None:
        watcher.close()


def _is_excluded(path: str, options: Mapping[str, Any]) -> bool:
    return any(_excludes(pattern, is_regex, path) for pattern, is_regex in _excluded(options))


def _excluded(options: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    for exclude in options.get("exclude") or ():
        if isinstance(exclude, Mapping):
            for pattern, how in exclude.items():
                yield str(pattern), isinstance(how, Mapping) and bool(how.get("regex"))
        else:
            yield str(exclude), False


def _excludes(pattern: str, is_regex: bool, path: str) -> bool:
    if is_regex:
        return re.search(pattern, path) is not None
    if "*" in pattern:
        return fnmatch(path, pattern)
    return PurePosixPath(path).is_relative_to(pattern) or path.startswith(pattern)
