"""The renderer ``text``: what it is given."""

from __future__ import annotations

from typing import Any

from statecore.render.stage import RenderContext


def render(data: Any, stage: RenderContext) -> Any:
    """The data as it is."""
    return data
