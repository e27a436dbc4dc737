"""One low chunk as somebody wrote it (``state.low``, ``state.single``): whether it can be called at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from statecore.loader import Loader
from statecore.model.context import Context
from statecore.model.errors import NotAvailable

_NEEDED = ("state", "fun", "name")


def faults_of_chunk(data: Mapping[str, Any], loader: Loader, ctx: Context) -> list[str]:
    """What keeps it from being called, in Salt's words; [] when nothing does."""
    return list(_malformed(data)) or list(_uncallable(data, loader, ctx))


def _malformed(data: Mapping[str, Any]) -> Iterator[str]:
    yield from (f'Missing "{key}" data' for key in _NEEDED if key not in data)
    for key in ("state", "fun"):
        if not isinstance(data.get(key, ""), str):
            yield f'"{key}" is not formed as a string, but is a {type(data[key]).__name__}'
    name = data.get("name")
    if name and not isinstance(name, str):
        yield f"ID '{name}' is not formed as a string, but is a {type(name).__name__}"
    umask = data.get("umask")
    if umask is not None:
        try:
            int(str(umask), 8)
        except ValueError:
            yield f"Invalid umask: {umask}"


def _uncallable(data: Mapping[str, Any], loader: Loader, ctx: Context) -> Iterator[str]:
    full = f"{data['state']}.{data['fun']}"
    try:
        served, function = loader.function("states", full, ctx)
    except NotAvailable as error:
        yield f"Specified state '{full}' was not found"
        if error.reason:
            yield f"Reason: {error.reason}"
        return
    for name in served.parameters(function).required:
        if name not in data:
            yield f"Missing parameter {name} for state {full}"
