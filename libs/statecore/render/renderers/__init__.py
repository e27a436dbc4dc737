"""The table of built-in renderers (jinja, yaml ...), which the first line of an SLS may name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecore.model.lazy import lazy_module
from statecore.render.context import RenderContext, Renderer
from statecore.render.renderers import formats, gpg_messages, mako_template, python

if TYPE_CHECKING:
    from statecore.render.renderers import nacl_messages, pyobjects, stateconf
else:
    # Few trees use them.
    nacl_messages = lazy_module("statecore.render.renderers.nacl_messages")
    pyobjects = lazy_module("statecore.render.renderers.pyobjects")
    stateconf = lazy_module("statecore.render.renderers.stateconf")


def render_nacl(data: object, context: RenderContext) -> object:
    """Renderer ``nacl``: return the data with every value ``NACL[...]`` decrypted, in texts, maps and lists. Raise DataFault
    if a value cannot be decrypted.
    """
    return nacl_messages.render(data, context)


def render_pyobjects(data: object, context: RenderContext) -> object:
    """Renderer ``pyobjects``: return the high data of the states that an SLS in Python declares by calls such as
    ``File.managed("/etc/motd")``. Raise TemplateFault with the line.
    """
    return pyobjects.render(data, context)


def render_stateconf(data: object, context: RenderContext) -> object:
    """Renderer ``stateconf``: return the high data of an SLS with configuration at its top (``stateconf.set``), with its
    local IDs (``.web``) made full (``sls::web``). Raise DataFault or TemplateFault with the line.
    """
    return stateconf.render(data, context)


#: Renderer's name -> its function. The function gets the previous renderer's output.
RENDERERS: Mapping[str, Renderer] = {
    "gpg": gpg_messages.render,
    "jinja": formats.render_jinja,
    "json": formats.render_json,
    "mako": mako_template.render,
    "msgpack": formats.render_msgpack,
    "nacl": render_nacl,
    "py": python.render,
    "pyobjects": render_pyobjects,
    "stateconf": render_stateconf,
    "text": formats.render_text,
    "toml": formats.render_toml,
    "yaml": formats.render_yaml,
    "yamlex": formats.render_yamlex,
}

#: Renderers whose input may be bytes that are not text.
BINARY = frozenset({"msgpack"})

#: Renderers that return text.
TEMPLATES = frozenset({"jinja", "mako"})


def inner_pipe(name: str, arguments: str) -> list[str]:
    """Return the names of the renderers that one renderer of a pipe runs: for ``stateconf`` those that its options
    name, for any other renderer only its own name.
    """
    return stateconf.inner_pipe(arguments) if name == "stateconf" else [name]


__all__ = ["BINARY", "RENDERERS", "TEMPLATES", "inner_pipe"]
