"""Reads YAML: one table of dialects, one function for all of them, and the positions of keys.

Every YAML text that a role, a minion or a command reads goes through ``load``. A key that occurs twice in one map of an
SLS is an error that names both lines. Tags of other programming languages are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import ReaderError
from yaml.scanner import ScannerError

from statecore.model.yaml import sls
from statecore.model.yaml.bounds import BASE, Bounds, YamlFault, guard
from statecore.model.yaml.loaders import FILES, BoundedLoader, SaltLoader, text_of
from statecore.model.yaml.yamlex import YamlexLoader


@dataclass(frozen=True)
class Dialect:
    """A way to read YAML: the name of its documents, for messages, and the function that builds the data of a text.

    ``build`` raises yaml.YAMLError, ValueError, TypeError, LookupError or OverflowError for a faulty text.
    """

    documents: str
    bounds: Bounds
    build: Callable[[str | bytes], object]


def _by(loader: type[BoundedLoader]) -> Callable[[str | bytes], object]:
    """Return the function that builds the data of a text with a loader of PyYAML."""

    def build(text: str | bytes) -> object:
        return yaml.load(text, Loader=loader)

    return build


class _RequestLoader(SaltLoader):
    """Salt's rules for a text of a peer: no aliases, and fewer values."""

    bounds = Bounds(characters=8 * 2**20, depth=100, aliased=0, values=200_000)


class _ArgumentLoader(SaltLoader):
    """Salt's rules for one argument of a function."""

    bounds = Bounds(characters=16 * 2**20, values=500_000)


#: Version of PyYAML, for caches of parsed texts.
PARSER = yaml.__version__

#: Rendered SLS, top files, pillar: Salt's rules, with the lines of keys that conflict.
SLS = Dialect("SLS", sls.YamlLoader.bounds, sls.build)
#: The renderer ``yamlex``: ``!aggregate`` and ``!reset``; a key may be repeated.
YAMLEX = Dialect("yamlex", YamlexLoader.bounds, _by(YamlexLoader))
#: YAML 1.1: configuration, files of programs, answers of servers. Dates are dates, ``0644`` is octal.
PLAIN = Dialect("YAML", FILES, _by(BoundedLoader))
#: ``salt.utils.yaml.load``: Salt's rules.
SALT = Dialect("Salt's YAML", SaltLoader.bounds, _by(SaltLoader))
#: One word of a command line, or one argument of a request: Salt's rules.
ARGUMENT = Dialect("argument", _ArgumentLoader.bounds, _by(_ArgumentLoader))
#: The body of a request at the API: Salt's rules, without aliases.
REQUEST = Dialect("body", _RequestLoader.bounds, _by(_RequestLoader))

DIALECTS = (SLS, YAMLEX, PLAIN, SALT, ARGUMENT, REQUEST)


def load(text: str | bytes, dialect: Dialect = PLAIN) -> object:
    """Return the data of a YAML text. Raise YamlFault with the line if it is not valid YAML or exceeds a bound."""
    try:
        return dialect.build(text)
    except yaml.MarkedYAMLError as error:
        raise _fault(error) from error
    except ReaderError as error:
        raise YamlFault(str(error).partition("\n")[0], _line(text, error.position)) from error
    except yaml.YAMLError as error:
        raise YamlFault(str(error), 0) from error
    except RecursionError as error:
        raise YamlFault("the document nests too deep", 0) from error
    except (ValueError, OverflowError, LookupError, TypeError, AttributeError) as error:
        # A value that does not fit its tag.
        raise YamlFault(f"a value cannot be read: {error}", 0) from error


def _line(text: str | bytes, position: int) -> int:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    return data[:position].count(b"\n") + 1


def load_by(stream: str | bytes | IO[str] | IO[bytes], loader: type[Any]) -> object:
    """Return the data of a YAML text or open file, made by a loader class of PyYAML that a user's module may have
    extended. Raise yaml.YAMLError if it is not valid YAML or exceeds a bound.
    """
    text = text_of(stream)
    guard(text, FILES)
    return yaml.load(text, Loader=loader)


def compose(text: str | bytes) -> Node | None:
    """Return the root node of a YAML document, None for an empty one. Raise YamlFault with the line if it is not valid
    YAML or exceeds a bound.
    """
    try:
        return yaml.compose(text_of(text), Loader=BoundedLoader)
    except yaml.MarkedYAMLError as error:
        raise _fault(error) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlFault(str(error).partition("\n")[0], 0) from error


def events(text: str) -> Iterator[yaml.Event]:
    """Yield the events of a YAML text. Raise YamlFault with the line if it is not valid YAML or exceeds a bound."""
    try:
        guard(text, FILES)
        yield from yaml.parse(text, Loader=BASE)
    except yaml.MarkedYAMLError as error:
        raise _fault(error) from error
    except (yaml.YAMLError, ValueError) as error:
        raise YamlFault(str(error).partition("\n")[0], 0) from error


def key_positions(text: str) -> dict[tuple[str, ...], tuple[int, int]]:
    """Map of the path of keys in a YAML document to (line, column) of the last key; {} if the text is not valid YAML.

    The paths go down to IDs, state declarations, arguments and requisites of an SLS. The text is parsed a second time
    for this, so the function is used for errors only.
    """
    try:
        root = compose(text)
    except YamlFault:
        return {}
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    _collect(root, (), found)
    return found


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """Map of the path of keys in a YAML document to the line number of the last key; {} if the text is not valid YAML."""
    return {path: line for path, (line, _) in key_positions(text).items()}


def _collect(node: Node | None, path: tuple[str, ...], found: dict[tuple[str, ...], tuple[int, int]]) -> None:
    if len(path) > 4 or node is None:
        return
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if isinstance(key, ScalarNode):
                found.setdefault((*path, key.value), _place(key))
                _collect(value, (*path, key.value), found)
    elif isinstance(node, SequenceNode):
        for item in node.value:
            if isinstance(item, ScalarNode):
                found.setdefault((*path, item.value), _place(item))
            else:
                _collect(item, path, found)


def _place(node: Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _fault(error: yaml.MarkedYAMLError) -> YamlFault:
    mark = error.problem_mark or error.context_mark
    parts = [error.context, error.problem if error.context != error.problem else None, error.note]
    if isinstance(error, ScannerError):
        # Salt's message for these begins with the problem.
        parts = [error.problem, error.context]
    message = ": ".join(part for part in parts if part)
    if mark is None:
        return YamlFault(message, 0)
    return YamlFault(message, mark.line + 1, mark.column + 1, getattr(error, "earlier", 0), error.problem or "")
