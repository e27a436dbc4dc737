"""What every file state asks first: where a name lies on the host, whose it is to be, what other states have below it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from statecore import managed_file
from statecore.context import Context
from statecore.errors import StateFailure
from statecore.managed_file import Attributes

#: What test mode adds to every managed file's comment.
NOTE = "Note: No changes made, actual changes may\nbe different due to other states."

#: Arguments of Salt that mean something on other systems, or that nothing here does yet; asking for them is refused.
_UNSUPPORTED = {"attrs": "file attributes", "win_owner": "Windows", "win_perms": "Windows", "win_deny_perms": "Windows"}


class Refused(Exception):
    """A plan that cannot be made; str() is the state's comment."""


def place_of(ctx: Context, name: str, *, follow: bool = True) -> Path:
    if not name:
        raise Refused("Destination file name is missing")
    if not str(name).startswith("/"):
        raise Refused(f"Specified file {name} is not an absolute path")
    return ctx.host.path(str(name), follow=follow)


def refuse(given: Mapping[str, Any]) -> None:
    for argument, value in given.items():
        if value:
            raise Refused(f"not supported: {argument} ({_UNSUPPORTED.get(argument, 'nothing here sets it')})")


def need_parent(ctx: Context, place: Path, makedirs: bool, wish: Attributes) -> None:
    if place.parent.is_dir():
        return
    if not makedirs:
        raise StateFailure("Parent directory not present")
    managed_file.make_directories(ctx.host, place.parent, wish, ctx.host.root)


def parent_attributes(wish: Attributes, dir_mode: Any) -> Attributes:
    mode = managed_file.parse_mode(dir_mode)
    if mode is None and wish.mode is not None:
        mode = managed_file.directory_mode(wish.mode)
    return Attributes(wish.user, wish.group, mode)


def attributes(user: Any, group: Any, mode: Any) -> tuple[Attributes, bool]:
    """Wanted attributes, and whether the mode is the source's own."""
    if mode == "keep":
        return Attributes(user, group), True
    return Attributes(user, group, managed_file.parse_mode(mode)), False


def patterns(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(str(pattern) for pattern in value) if isinstance(value, list) else (str(value),)


def walk(top: Path) -> Iterator[tuple[Path, int, bool]]:
    """(path, depth from 0, whether it is a directory), parents first; links are not followed."""
    for place, names, files in os.walk(top):
        here = Path(place)
        depth = len(here.relative_to(top).parts)
        for entry in sorted(files):
            yield here / entry, depth, False
        for entry in sorted(names):
            yield here / entry, depth, not (here / entry).is_symlink()


def managed_elsewhere(ctx: Context, name: str) -> set[str]:
    """Names below a directory that this run's file states manage, with the directories on the way to them."""
    keep: set[str] = set()
    top = Path(name)
    for low in ctx.lowstate:
        path = Path(str(low.get("name", "")))
        if (
            low.get("state") == "file"
            and low.get("fun") not in ("absent", "missing")
            and path != top
            and path.is_relative_to(top)
        ):
            keep |= {str(one) for one in (path, *path.parents) if one.is_relative_to(top)}
            if low.get("fun") == "recurse":
                keep |= {str(path)}
    return keep
