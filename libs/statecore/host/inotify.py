"""Watches of files and directory trees with the kernel's inotify, for the beacon ``inotify``. Reading never blocks.

The system calls are described in inotify(7).
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from statecore.host.rooted_path import located

#: Salt's names of events and flags -> bits of inotify(7).
MASKS: Mapping[str, int] = {
    "access": 0x1,
    "modify": 0x2,
    "attrib": 0x4,
    "close_write": 0x8,
    "close_nowrite": 0x10,
    "open": 0x20,
    "moved_from": 0x40,
    "moved_to": 0x80,
    "create": 0x100,
    "delete": 0x200,
    "delete_self": 0x400,
    "move_self": 0x800,
    "unmount": 0x2000,
    "ignored": 0x8000,
    "onlydir": 0x01000000,
    "dont_follow": 0x02000000,
    "excl_unlink": 0x04000000,
    "oneshot": 0x80000000,
}

_IGNORED, _IS_DIRECTORY, _OVERFLOW = 0x8000, 0x40000000, 0x4000
_CREATE, _MOVED_TO = 0x100, 0x80
_HAPPENED = {bit: f"IN_{name.upper()}" for name, bit in MASKS.items() if bit <= _IGNORED}

#: Fields: watch descriptor, mask, cookie, length of the name in bytes.
_HEADER = struct.Struct("iIII")
_BUFFER = 256 * 1024


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a watched file or directory, as the kernel's inotify reports it."""

    #: The configured path that contains the changed file.
    root: str
    #: The watched file or directory.
    watched: str
    path: str
    #: Names of the event's bits as in pyinotify: ``IN_CREATE``, ``IN_CREATE|IN_ISDIR``.
    mask_name: str


@dataclass(frozen=True, slots=True)
class _Root:
    """One path that the beacon's configuration names, with its settings: kinds of changes, recursion, new
    directories.
    """

    mask: int
    recurse: bool
    auto_add: bool
    #: Path for this process.
    place: Path


@dataclass(frozen=True, slots=True)
class _InotifyWatch:
    """A directory or file that the kernel watches: its path, and the configured path that it belongs to."""

    root: str
    #: The host's own path.
    path: str


class Watcher:
    """The inotify watches of one beacon: files and directory trees, and the changes that the kernel reports for them.

    Methods raise OSError when the kernel's limits (fs.inotify.max_user_*) are reached.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._handle = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify")
        self._roots: dict[str, _Root] = {}
        self._watches: dict[int, _InotifyWatch] = {}

    def watch(self, path: str, place: Path, masks: Iterable[str], recurse: bool, auto_add: bool) -> None:
        """Start to watch a file or directory of the managed host.

        ``place`` is the path by which this process reaches it. Nothing happens if it is already watched in the same
        way.
        """
        mask = 0
        for name in masks:
            mask |= MASKS[name]
        root = _Root(mask, recurse, auto_add, place)
        watched = any(watch.root == path and watch.path == path for watch in self._watches.values())
        if self._roots.get(path) == root and watched:
            return
        self._forget(path)
        self._roots[path] = root
        self._add(path, path, place)

    def keep_only(self, paths: Iterable[str]) -> None:
        """Stop watching all files and directories except these paths."""
        for path in set(self._roots) - set(paths):
            self._forget(path)

    def read(self) -> list[Change]:
        """Return a Change for each event of the watched files and directories since the last call; [] if there are
        none.
        """
        found: list[Change] = []
        while True:
            try:
                data = os.read(self._handle, _BUFFER)
            except BlockingIOError:
                return found
            start = 0
            while start < len(data):
                number, mask, _, size = _HEADER.unpack_from(data, start)
                start += _HEADER.size
                name = os.fsdecode(data[start : start + size].rstrip(b"\0"))
                start += size
                found += self._change(number, mask, name)

    def close(self) -> None:
        """Stop watching all files and directories."""
        os.close(self._handle)

    def _change(self, number: int, mask: int, name: str) -> list[Change]:
        watch = self._watches.get(number)
        if watch is None or mask & _OVERFLOW:
            return []
        root = self._roots.get(watch.root)
        path = os.path.join(watch.path, name) if name else watch.path
        if mask & _IGNORED:
            del self._watches[number]
        if root is None:
            return []
        is_directory = bool(mask & _IS_DIRECTORY)
        if root.auto_add and is_directory and mask & (_CREATE | _MOVED_TO):
            self._add(watch.root, path, root.place / path.removeprefix(watch.root).lstrip("/"))
        wanted = [text for bit, text in _HAPPENED.items() if mask & bit & root.mask]
        if not wanted:
            return []
        return [Change(watch.root, watch.path, path, "|".join([*wanted, *(["IN_ISDIR"] if is_directory else [])]))]

    def _add(self, root: str, path: str, place: Path) -> None:
        made = self._roots[root]
        # auto_add needs the events of new directories, even when the configuration does not ask for them.
        mask = made.mask | (_CREATE | _MOVED_TO if made.auto_add else 0)
        try:
            self._watches[self._begun(place, mask & 0xFFFFFFFF)] = _InotifyWatch(root, path)
        except (FileNotFoundError, NotADirectoryError):
            # Removed meanwhile, or not a directory although "onlydir" is set.
            return
        if not made.recurse or not place.is_dir():
            return
        for below in place.iterdir():
            if below.is_dir() and not below.is_symlink():
                self._add(root, os.path.join(path, below.name), below)

    def _begun(self, place: Path, mask: int) -> int:

        with located(place, follow=True) as (name, way):
            inside = name if way is None else f"/proc/self/fd/{way}/{name}"
            wanted = mask if way is None else mask | MASKS["dont_follow"]
            return self._checked(self._libc.inotify_add_watch(self._handle, os.fsencode(inside), wanted), str(place))

    def _forget(self, root: str) -> None:
        self._roots.pop(root, None)
        for number in [number for number, watch in self._watches.items() if watch.root == root]:
            del self._watches[number]
            self._libc.inotify_rm_watch(self._handle, number)

    @staticmethod
    def _checked(number: int, what: str) -> int:
        if number < 0:
            code = ctypes.get_errno()
            raise OSError(code, f"{os.strerror(code)} (inotify)", what)
        return number
