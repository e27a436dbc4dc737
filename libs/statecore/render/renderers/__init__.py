"""The table of built-in renderers (jinja, yaml ...), which the first line of an SLS may name."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.render.context import Renderer
from statecore.render.renderers import formats, gpg_messages, mako_template, python

#: Renderer's name -> its function. The function gets the previous renderer's output.
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

#: Renderers whose input may be bytes that are not text.
BINARY = frozenset({"msgpack"})

#: Renderers that return text.
TEMPLATES = frozenset({"jinja", "mako"})

__all__ = ["BINARY", "RENDERERS", "TEMPLATES"]
