"""Where things come from and go to: references read, files of the managed host written."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.system.certificates import issuing, references


def reader(ctx: Context) -> Callable[[Any], bytes]:
    """What reads references for the package ``certificates``."""
    return lambda reference: references.content(ctx.host, reference)


def told(data: bytes, encoding: str, raw: bool) -> Any:
    """What a function returns of bytes: text where they are text, else base64; with ``raw`` the bytes."""
    if raw:
        return data
    return data.decode() if encoding in issuing.TEXT else base64.b64encode(data).decode()


def put(ctx: Context, path: str, data: bytes, mode: int | None = None) -> None:
    """Writes a file of the host. A new one is nobody else's to read. Raises HostError."""
    place = ctx.host.path(path)
    if mode is None and not place.exists():
        mode = 0o600
    managed_file.replace(ctx.host, place, data, Attributes(mode=mode))
