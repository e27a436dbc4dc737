"""The host's names of places, and the bytes there: what the functions of the module share."""

from __future__ import annotations

from pathlib import Path

from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError


def bytes_of(ctx: Context, path: str) -> bytes:
    data = managed_file.read(ctx.host.path(path), path)
    if data is None:
        raise CommandError(f"File not found: {path}")
    return data


def host_name(ctx: Context, place: Path) -> str:
    """The host's name of one of our paths."""
    return "/" + "/".join(place.relative_to(ctx.host.root).parts)


def existing(ctx: Context, path: str) -> Path:
    """Our path of what a name leads to. Raises CommandError where nothing is there."""
    place = ctx.host.path(path)
    if not place.exists():
        raise CommandError(f"File or directory does not exist: {path}")
    return place
