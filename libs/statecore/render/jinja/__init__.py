"""Jinja, loaded when the first text comes that has something of Jinja's in it: most SLS of large trees are plain YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.model.lazy import Deferred, loaded
from statecore.model.ports import Files
from statecore.render.jinja.functions import SaltFunctions
from statecore.render.jinja.header import has_header
from statecore.render.memory import RenderMemory

__all__ = ["Jinja", "SaltFunctions", "whitespace"]

#: Salt's own option -> Jinja's.
_WHITESPACE = {"jinja_trim_blocks": "trim_blocks", "jinja_lstrip_blocks": "lstrip_blocks"}

#: What begins anything that Jinja reads, as long as no option says otherwise; it also makes one kind of newline of all.
_STARTS = ("{%", "{{", "{#", "\r")


def whitespace(opts: Mapping[str, Any]) -> dict[str, Any]:
    """Jinja's options that Salt has options of its own for."""
    return {own: True for option, own in _WHITESPACE.items() if opts.get(option)}


class Jinja:
    """The template engine of one tree."""

    def __init__(
        self, files: Files, names: Mapping[str, Any], opts: Mapping[str, Any], memory: RenderMemory | None = None
    ) -> None:
        """``names`` are there for every template. Options: jinja_time_limit, allow_undefined."""
        self._engine = Deferred(lambda: loaded("statecore.render.jinja.engine", "Engine")(files, names, opts, memory))

    def render(self, text: str, name: str, saltenv: str, names: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        """The rendered text, as ``Engine.render`` makes it. Raises TemplateFault, located."""
        if not options and not has_header(text) and not any(start in text for start in _STARTS):
            return text
        rendered: str = self._engine.render(text, name, saltenv, names, options)
        return rendered

    def line_map(
        self, text: str, name: str, saltenv: str, names: Mapping[str, Any], options: Mapping[str, Any]
    ) -> list[int]:
        """For each line of the rendered text, the line of the template it came from (0: elsewhere). For errors only."""
        lines: list[int] = self._engine.line_map(text, name, saltenv, names, options)
        return lines
