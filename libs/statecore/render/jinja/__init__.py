"""The Jinja renderer.

The library jinja2 is loaded at the first text with Jinja syntax: most SLS of large trees are plain YAML.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecore.model.lazy import deferred, lazy_module
from statecore.model.ports import Files
from statecore.render.jinja.functions import SaltFunctions
from statecore.render.jinja.header import has_header
from statecore.render.memory import RenderMemory

if TYPE_CHECKING:
    from statecore.render.jinja import engine
else:
    engine = lazy_module("statecore.render.jinja.engine")

__all__ = ["Jinja", "SaltFunctions", "whitespace"]

#: Salt's option -> Jinja's option.
_WHITESPACE = {"jinja_trim_blocks": "trim_blocks", "jinja_lstrip_blocks": "lstrip_blocks"}

#: Texts that make a file a Jinja template under the default options. Jinja also normalizes "\r" newlines.
_STARTS = ("{%", "{{", "{#", "\r")


def whitespace(opts: Mapping[str, object]) -> dict[str, object]:
    """Return Jinja's options for Salt's options ``jinja_trim_blocks`` and ``jinja_lstrip_blocks``."""
    return {own: True for option, own in _WHITESPACE.items() if opts.get(option)}


class Jinja:
    """The Jinja renderer of one tree."""

    def __init__(
        self, files: Files, names: Mapping[str, object], opts: Mapping[str, object], memory: RenderMemory | None = None
    ) -> None:
        """Prepare the renderer.

        ``names`` are the variables of every template. Options used: jinja_time_limit, allow_undefined.
        """
        self._engine = deferred(lambda: engine.Engine(files, names, opts, memory))

    def render(
        self, text: str, name: str, saltenv: str, names: Mapping[str, object], options: Mapping[str, object]
    ) -> str:
        """Return the rendered text, like ``Engine.render``.

        A text without Jinja syntax is returned unchanged. Raises TemplateFault.
        """
        if not options and not has_header(text) and not any(start in text for start in _STARTS):
            return text
        return self._engine.render(text, name, saltenv, names, options)

    def line_map(
        self, text: str, name: str, saltenv: str, names: Mapping[str, object], options: Mapping[str, object]
    ) -> list[int]:
        """List that gives for each line of the rendered text the line of the template (0: unknown).

        Used for errors only.
        """
        return self._engine.line_map(text, name, saltenv, names, options)
