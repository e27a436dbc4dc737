"""The Jinja renderer of a state tree.

The library jinja2 is loaded at the first text with Jinja syntax, because most SLS files of large trees are plain YAML.
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
    """Map of Jinja's options for white space that are set: {"trim_blocks": True, "lstrip_blocks": True}, from Salt's
    options ``jinja_trim_blocks`` and ``jinja_lstrip_blocks``.
    """
    return {own: True for option, own in _WHITESPACE.items() if opts.get(option)}


class Jinja:
    """The Jinja renderer of one state tree."""

    def __init__(
        self,
        files: Files,
        names: Mapping[str, object],
        opts: Mapping[str, object],
        memory: RenderMemory | None = None,
        *,
        untrusted: bool = False,
    ) -> None:
        """Prepare the Jinja renderer of one state tree. ``names`` maps the variables of every template to their values.

        ``untrusted``: templates get plain data. Options used: jinja_time_limit, allow_undefined, host_root,
        jinja_dns_check, jinja_http_query.
        """
        self._engine = deferred(lambda: engine.Engine(files, names, opts, memory, untrusted=untrusted))

    def render(
        self, text: str, name: str, saltenv: str, names: Mapping[str, object], options: Mapping[str, object]
    ) -> str:
        """Return the rendered text of a Jinja template. A text without Jinja syntax is returned unchanged.

        ``name`` is the template's path in the state tree, or "". ``names`` are this template's own variables,
        ``options`` are Jinja's options. Raise TemplateFault with file and line.
        """
        if not options and not has_header(text) and not any(start in text for start in _STARTS):
            return text
        return self._engine.render(text, name, saltenv, names, options)

    def line_map(
        self, text: str, name: str, saltenv: str, names: Mapping[str, object], options: Mapping[str, object]
    ) -> list[int]:
        """Return the template's line number for each line of the rendered text (0: unknown). The template is rendered
        again for this.
        """
        return self._engine.line_map(text, name, saltenv, names, options)
