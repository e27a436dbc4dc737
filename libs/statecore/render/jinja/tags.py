"""Salt's own Jinja statements for templates, and the marks of template lines.

``{% import_yaml "x" as y %}``, ``{% load_json as y %}...{% endload %}``, ``{% profile as "z" %}...{% endprofile %}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

from statecore.render.filters.text import load_json, load_yaml
from statecore.render.memory import RenderMemory

#: Mark of a template line in the second rendering (``Engine.line_map``). Its control characters do not occur in texts.
MARKED = re.compile("\x01(\\d+)\x02")

_READERS: Mapping[str, Callable[[str], object]] = {"yaml": load_yaml, "json": load_json, "text": str}


class SerializerExtension(Extension):
    """Jinja statements that load YAML, JSON or text from another file (``import_yaml``) or a block (``load_yaml``) into
    a variable.
    """

    tags = {  # noqa: RUF012 - Jinja's interface
        *(f"{verb}_{kind}" for verb in ("import", "load") for kind in _READERS),
        "profile",
    }

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        """Return the syntax tree of one of Salt's Jinja statements, at which Jinja's parser is now."""
        verb, _, kind = parser.stream.current.value.partition("_")
        if verb == "profile":
            # Salt logs how long the block took; here it is only its content.
            next(parser.stream)
            parser.stream.expect("name:as")
            parser.parse_expression()
            return parser.parse_statements(("name:endprofile",), drop_needle=True)
        return self._import(parser, kind) if verb == "import" else self._load(parser, kind)

    def _import(self, parser: Parser, kind: str) -> list[nodes.Node]:
        """Return the syntax tree of a statement such as ``import_yaml``. ``kind``: yaml, json or text.

        The imported file is rendered as a template first; with ``with context`` it sees the importing template's
        variables.
        """
        imported = parser.parse_import()
        line = imported.lineno
        target = nodes.Name(imported.target, "store", lineno=line)
        text = nodes.Name(imported.target, "load", lineno=line)
        return [imported, nodes.Assign(target, self._read(kind, text, line), lineno=line)]

    def _load(self, parser: Parser, kind: str) -> list[nodes.Node]:
        line = next(parser.stream).lineno
        parser.stream.expect("name:as")
        target = parser.parse_assign_target()
        body = parser.parse_statements(("name:endload",), drop_needle=True)
        # The block's text is assigned to a free name first, then parsed.
        scratch = parser.free_identifier(lineno=line)
        return [
            nodes.AssignBlock(scratch, None, body, lineno=line),
            nodes.Assign(target, self._read(kind, scratch, line), lineno=line),
        ]

    def _read(self, kind: str, text: nodes.Expr, line: int) -> nodes.Expr:
        return self.call_method("_data", [nodes.Const(kind), text], lineno=line)

    def _data(self, kind: str, text: object) -> object:
        plain, read = MARKED.sub("", str(text)), _READERS[kind]
        memory: RenderMemory | None = getattr(self.environment, "memory", None)
        return read(plain) if memory is None or kind != "yaml" else memory.document(plain, read)
