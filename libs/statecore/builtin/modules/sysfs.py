"""Attributes of the kernel's objects below /sys: Salt's ``sysfs`` execution module.

A key is a path below /sys, with or without ``/sys/`` before it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import HostError

_TOP = "/sys"


def attr(ctx: Context, key: str, value: object = None) -> object:
    """Return the value of an attribute below /sys, or write it. Return False if there is no such attribute; for a
    directory return its path.

    value
        the value to write; True is then returned if this succeeded

    CLI Example:

        salt '*' sysfs.attr block/sda/queue/logical_block_size
    """
    place = target(ctx, key)
    if place is False or ctx.host.path(str(place)).is_dir():
        return place
    return read(ctx, str(place)) if value is None else write(ctx, str(place), value)


def write(ctx: Context, key: str, value: object) -> bool:
    """Write the value of an attribute below /sys. Return whether this succeeded.

    CLI Example:

        salt '*' sysfs.write devices/system/cpu/cpu0/cpufreq/scaling_governor 'performance'
    """
    place = target(ctx, key)
    if place is False:
        return False
    try:
        # The kernel takes a value with one write.
        ctx.host.path(str(place)).write_text(f"{value}\n")
    except OSError:
        return False
    return True


def read(ctx: Context, key: str | Sequence[str], root: str = "") -> Any:
    """Return the value of an attribute below /sys as a number or text; of a directory a map of all its attributes.
    Return False if there is no such attribute, or if it is empty.

    key
        a key, or a list, for which a map of key to value is returned
    root
        a directory before the keys

    CLI Example:

        salt '*' sysfs.read class/net/em1/statistics
    """
    if not isinstance(key, str):
        found = {each: read(ctx, _joined(root, each)) for each in key}
        return {each: value for each, value in found.items() if value is not False}
    place = target(ctx, _joined(root, key))
    if place is False:
        return False
    path = ctx.host.path(str(place))
    if not path.is_dir():
        return _value(path)
    names = interfaces(ctx, str(place))
    result: dict[str, Any] = {}
    for name in [*names["r"], *names["rw"]] if isinstance(names, dict) else ():
        value = read(ctx, f"{place}/{name}")
        if value is not False:
            *parents, last = name.split("/")
            within = result
            for parent in parents:
                within = within.setdefault(parent, {})
            within[last] = value
    return result


def target(ctx: Context, key: str, full: bool = True) -> str | bool:
    """Return the path below /sys that a key leads to, with links followed; False if there is none.

    full
        False: only the last part of the path

    CLI Example:

        salt '*' sysfs.target class/ttyS0
    """
    try:
        path = ctx.host.path(key if key.startswith(_TOP) else f"{_TOP}/{key}")
        # Of a mounted host, paths are without links already.
        path = path if ctx.host.mounted else path.resolve()
    except (OSError, RuntimeError, HostError):
        return False
    if not path.exists():
        return False
    return "/" + str(path.relative_to(ctx.host.root)) if full else path.name


def interfaces(ctx: Context, root: str) -> dict[str, list[str]] | bool:
    """Return the attributes in a directory below /sys: a map of ``r`` (only readable), ``w`` (only writable) and
    ``rw`` (both) to lists of relative paths. Return False if there is no such directory.

    CLI Example:

        salt '*' sysfs.interfaces block/bcache0/bcache
    """
    place = target(ctx, root)
    if place is False or not ctx.host.path(str(place)).is_dir():
        return False
    top = str(ctx.host.path(str(place)))
    found: dict[str, list[str]] = {"r": [], "w": [], "rw": []}
    for directory, _, names in os.walk(top):
        for name in names:
            inner = f"{directory}/{name}"[len(top) + 1 :]
            path = ctx.host.path(f"{place}/{inner}")
            if path.is_file():
                mode = path.stat().st_mode
                kind = "r" * bool(mode & stat.S_IRUSR) + "w" * bool(mode & stat.S_IWUSR)
                if kind:
                    found[kind].append(inner)
    return found


def _joined(root: str, key: str) -> str:
    return key if key.startswith("/") or not root else f"{root.rstrip('/')}/{key}"


def _value(path: Any) -> object:
    try:
        text = path.read_text("utf-8", "replace").strip()
    except OSError:
        return False
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text or False
