"""Hover: the documentation of the name under the cursor, in Markdown. Values are added by the server. Pure.

Texts of a tree (docstrings of users' modules, values) are shown as code, so that an editor draws no links and fetches no
pictures that a foreign tree names.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.tests import TESTS as JINJA_TESTS

from statecore.lsp.catalogue import Catalogue, FunctionDoc
from statecore.lsp.completion import GLOBAL_ARGUMENTS, VARIABLES, MinionData
from statecore.lsp.cursor import Subject
from statecore.lsp.facts import REFERRING
from statecore.lsp.index import IndexedFile, TreeIndex
from statecore.lsp.navigation import definition
from statecore.render.filters import FILTERS, TESTS

#: Longest text of one value that is shown, in characters.
_LONGEST = 2_000


def code(text: str, language: str = "text") -> str:
    """Return a text as a Markdown code block. Backticks in the text cannot end the block."""
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    fence = "`" * max(3, longest + 1)
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return f"{fence}{language}\n{shown}\n{fence}"


def hover(index: TreeIndex, catalogue: Catalogue, file: str, subject: Subject, minion: MinionData) -> str:
    """Return the Markdown text about the name under the cursor; "" if nothing is known."""
    indexed = index.files[file]
    return "\n\n".join(part for part in _parts(index, catalogue, file, indexed, subject, minion) if part)


def _parts(
    index: TreeIndex, catalogue: Catalogue, file: str, indexed: IndexedFile, subject: Subject, minion: MinionData
) -> Iterator[str]:
    kind, name = subject.kind, subject.name
    if kind in ("state", "salt"):
        function = catalogue.function("states" if kind == "state" else "modules", name)
        if function is not None:
            yield from function_text(function)
        elif (
            module := catalogue.module("states" if kind == "state" else "modules", name.partition(".")[0])
        ) is not None:
            yield code(module.name)
            yield code(module.doc) if module.doc else ""
    elif kind == "argument":
        yield from _argument(catalogue, subject)
    elif kind in ("filter", "test"):
        yield from _filter(kind, name)
    elif kind == "variable":
        yield from _variable(indexed, name)
    elif kind == "grain":
        yield f"grain `{name}`"
        yield value_text(name, minion.grains)
    elif kind == "pillar":
        yield f"pillar key `{name}`"
        yield value_text(name, minion.pillar)
    elif kind in ("id", "declaration"):
        yield f"ID `{name}`" if kind == "declaration" else ""
    elif kind == "sls":
        yield f"SLS `{name}`"
    if kind in ("id", "sls", "pillar", "template", "file"):
        line, column = subject.span.line, subject.span.start
        for place in definition(index, catalogue, file, line, column)[:5]:
            at = index.known[place.file].path if place.file in index.known else place.file
            yield f"`{at}:{place.span.line + 1}`"


def function_text(function: FunctionDoc) -> Iterator[str]:
    """Yield the Markdown parts about a function: its signature, and its documentation as plain text."""
    arguments = ", ".join(
        argument.name if argument.required else f"{argument.name}={argument.default}" for argument in function.arguments
    )
    rest = (", **kwargs" if arguments else "**kwargs") if function.takes_any else ""
    yield code(f"{function.full}({arguments}{rest})", "python")
    yield code(function.doc) if function.doc else ""


def _argument(catalogue: Catalogue, subject: Subject) -> Iterator[str]:
    name = subject.name
    function = catalogue.function("states", subject.owner)
    argument = function.by_name.get(name) if function else None
    if argument is not None and function is not None:
        default = "required" if argument.required else f"default: {argument.default}"
        yield code(f"{name} ({function.full}), {default}")
        yield code(argument.text) if argument.text else ""
    elif name in GLOBAL_ARGUMENTS:
        yield f"`{name}` (every state)"
        yield GLOBAL_ARGUMENTS[name]
    elif name in REFERRING:
        yield f"`{name}` (requisite)"


def _filter(kind: str, name: str) -> Iterator[str]:
    own: Mapping[str, object] = FILTERS if kind == "filter" else TESTS
    jinja: Mapping[str, object] = JINJA_FILTERS if kind == "filter" else JINJA_TESTS
    found = own.get(name, jinja.get(name))
    if found is not None:
        yield f"{kind} `{name}` ({'Salt' if name in own else 'Jinja'})"
        doc = inspect.getdoc(found) if hasattr(found, "__code__") else ""
        yield code(doc) if doc else ""


def _variable(indexed: IndexedFile, name: str) -> Iterator[str]:
    own = next((one for one in indexed.facts.definitions if one.name == name), None)
    if own is not None:
        yield code(own.text, "jinja")
    elif name in VARIABLES:
        yield f"`{name}`: {VARIABLES[name]}"


_MISSING = object()


def value_text(path: str, data: Mapping[str, object]) -> str:
    """Return the value of a path such as ``a:b`` in the minion's grains or pillar as a code block; "" if it has none."""
    value: object = data
    for key in path.split(":"):
        if isinstance(value, Mapping):
            value = value.get(key, _MISSING)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            value = _MISSING
        if value is _MISSING:
            return ""
    return code(repr(value), "python")
