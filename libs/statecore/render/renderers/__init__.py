"""The renderers that an SLS may name in its first line: one file each, one table."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.render.renderers import (
    gpg_messages,
    jinja_template,
    json_data,
    mako_template,
    msgpack_data,
    plain_text,
    python,
    toml_data,
    yaml_data,
)
from statecore.render.stage import Renderer

#: Name in a shebang -> what it does with what came out of the one before.
RENDERERS: Mapping[str, Renderer] = {
    "gpg": gpg_messages.render,
    "jinja": jinja_template.render,
    "json": json_data.render,
    "mako": mako_template.render,
    "msgpack": msgpack_data.render,
    "py": python.render,
    "text": plain_text.render,
    "toml": toml_data.render,
    "yaml": yaml_data.render,
}

#: Those that read bytes which need not be text.
BINARY = frozenset({"msgpack"})

#: Those that give text.
TEMPLATES = frozenset({"jinja", "mako"})

__all__ = ["BINARY", "RENDERERS", "TEMPLATES"]
