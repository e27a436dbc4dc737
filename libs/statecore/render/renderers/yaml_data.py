"""The renderer ``yaml``: the data of a YAML text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.render import yaml
from statecore.render.stage import RenderContext


def render(data: Any, stage: RenderContext) -> Any:
    """The document; data that is a map already stays."""
    if isinstance(data, Mapping):
        return data
    text = str(data)
    return stage.kept.load(text) if stage.memory is None else stage.memory.document(text, yaml.load)
