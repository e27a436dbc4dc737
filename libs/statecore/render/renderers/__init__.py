"""The renderers that an SLS may name in its first line: one file each, one table."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.render.renderers import formats, gpg_messages, mako_template, python
from statecore.render.stage import Renderer

#: Name in a shebang -> what it does with what came out of the one before.
RENDERERS: Mapping[str, Renderer] = {
    "gpg": gpg_messages.render,
    "jinja": formats.render_jinja,
    "json": formats.render_json,
    "mako": mako_template.render,
    "msgpack": formats.render_msgpack,
    "py": python.render,
    "text": formats.render_text,
    "toml": formats.render_toml,
    "yaml": formats.render_yaml,
}

#: Those that read bytes which need not be text.
BINARY = frozenset({"msgpack"})

#: Those that give text.
TEMPLATES = frozenset({"jinja", "mako"})

__all__ = ["BINARY", "RENDERERS", "TEMPLATES"]
