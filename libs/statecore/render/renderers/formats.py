"""The renderers that call one library function: jinja, json, msgpack, text, toml, yaml."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import msgpack

from statecore.model import yaml
from statecore.model.errors import DataFault
from statecore.render.context import RenderContext


def render_jinja(data: object, context: RenderContext) -> str:
    """Renderer ``jinja``: return the rendered text of a Jinja template.

    The renderer's option ``-s`` is accepted without effect, as in Salt. Raise DataFault for other options,
    TemplateFault for a faulty template.
    """
    if context.arguments not in ("", "-s"):
        raise DataFault(f"Unknown renderer option: {context.arguments}", 1)
    source = context.source
    return context.jinja.render(str(data), source.path, source.saltenv, context.names, context.jinja_options)


def render_json(data: object, context: RenderContext) -> object:
    """Renderer ``json``: return the data of a JSON text; {} for an empty text. Raise DataFault if it is not JSON."""
    text = str(data)
    if text.startswith("#!"):
        # JSON has no comments. The empty line keeps the line numbers.
        text = "\n" + text.partition("\n")[2]
    try:
        return json.loads(text) if text.strip() else {}
    except RecursionError as error:
        raise DataFault("not JSON: it nests too deep", 0) from error
    except ValueError as error:
        raise DataFault(f"not JSON: {error}", getattr(error, "lineno", 0)) from error


def render_msgpack(data: object, context: RenderContext) -> object:
    """Renderer ``msgpack``: return the data of msgpack bytes; {} for empty ones. Raise DataFault if they are not
    msgpack.
    """
    packed = data if isinstance(data, bytes) else str(data).encode("utf-8", "surrogateescape")
    if packed.startswith(b"#!"):
        packed = packed.partition(b"\n")[2]
    if not packed.strip():
        return {}
    try:
        return msgpack.unpackb(packed, raw=False, strict_map_key=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise DataFault(f"not msgpack: {error}", 0) from error


def render_text(data: object, context: RenderContext) -> object:
    """Renderer ``text``: return the text unchanged."""
    return data


_LINE = re.compile(r"\(at line (\d+)")


def render_toml(data: object, context: RenderContext) -> dict[str, object]:
    """Renderer ``toml``: return the data of a TOML text. Raise DataFault if it is not TOML."""
    import tomllib  # few trees use it

    try:
        return tomllib.loads(str(data))
    except RecursionError as error:
        raise DataFault("not TOML: it nests too deep", 0) from error
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        # The error of an unfinished document names no line.
        raise DataFault(f"not TOML: {error}", int(found[1]) if found else str(data).count("\n")) from error


def render_yaml(data: object, context: RenderContext) -> object:
    """Renderer ``yaml``: return the data of a YAML text. A map from an earlier renderer is returned unchanged.

    Raise YamlFault if the text is not YAML.
    """
    if isinstance(data, Mapping):
        return data
    text = str(data)
    return context.yaml_cache.load(text) if context.memory is None else context.memory.document(text, _sls)


def _sls(text: str) -> object:
    return yaml.load(text, yaml.SLS)


def render_yamlex(data: object, context: RenderContext) -> object:
    """Renderer ``yamlex``: return the data of a YAML text with aggregation (``!aggregate``, ``!reset``), in which a key may
    occur several times in one map. Raise YamlFault if the text is not YAML.
    """
    return yaml.load(str(data), yaml.YAMLEX) or {}
