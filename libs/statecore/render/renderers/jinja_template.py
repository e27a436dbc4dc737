"""The renderer ``jinja``: text from a template."""

from __future__ import annotations

from typing import Any

from statecore.render.faults import DataFault
from statecore.render.stage import RenderContext


def render(data: Any, stage: RenderContext) -> str:
    """The rendered text. ``-s`` is taken, as it is by Salt: the data is text here anyway."""
    if stage.arguments not in ("", "-s"):
        raise DataFault(f"Unknown renderer option: {stage.arguments}", 1)
    source = stage.source
    return stage.jinja.render(str(data), source.path, source.saltenv, stage.names, stage.jinja_options)
