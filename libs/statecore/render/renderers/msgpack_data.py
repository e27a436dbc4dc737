"""The renderer ``msgpack``: data that a program has packed. Its text holds bytes as surrogates."""

from __future__ import annotations

from typing import Any

import msgpack

from statecore.render.faults import DataFault
from statecore.render.stage import RenderContext


def render(data: Any, stage: RenderContext) -> Any:
    """The value; {} of nothing."""
    packed = data if isinstance(data, bytes) else str(data).encode("utf-8", "surrogateescape")
    if packed.startswith(b"#!"):
        packed = packed.partition(b"\n")[2]
    if not packed.strip():
        return {}
    try:
        return msgpack.unpackb(packed, raw=False, strict_map_key=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise DataFault(f"not msgpack: {error}", 0) from error
