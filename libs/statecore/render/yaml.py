"""YAML as Salt reads it: parsed by libyaml, turned into values by ``yaml_values``.

A key that occurs twice in one map is an error that names both lines. Tags of other programming languages are refused.
The number of values repeated by aliases and of nested levels is bounded (``yaml_bounds``).
"""

from __future__ import annotations

from collections.abc import Callable

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import ReaderError
from yaml.scanner import ScannerError

from statecore.render.yaml_bounds import YamlFault, guard
from statecore.render.yaml_values import BASE, build

__all__ = ["YamlFault", "key_lines", "key_positions", "load"]


def load(text: str, make: Callable[[str], object] = build) -> object:
    """Return the data of a YAML text. Raise YamlFault with the line if it is not valid YAML.

    ``make`` is the function that parses the text; it may raise errors of PyYAML.
    """
    guard(text)
    try:
        return make(text)
    except yaml.MarkedYAMLError as error:
        raise _fault(error) from error
    except ReaderError as error:
        before = text.encode("utf-8", "surrogateescape")[: error.position]
        raise YamlFault(str(error).partition("\n")[0], before.count(b"\n") + 1) from error
    except yaml.YAMLError as error:
        raise YamlFault(str(error), 0) from error
    except RecursionError as error:
        raise YamlFault("the document nests too deep", 0) from error
    except (ValueError, OverflowError, LookupError, TypeError) as error:
        # A value that does not fit its tag.
        raise YamlFault(f"a value cannot be read: {error}", 0) from error


def key_positions(text: str) -> dict[tuple[str, ...], tuple[int, int]]:
    """Map of the path of keys in a YAML document to (line, column) of the last key; {} if the text is not valid YAML.

    The paths go down to IDs, state declarations, arguments and requisites of an SLS. The text is parsed a second time
    for this, so the function is used for errors only.
    """
    try:
        guard(text)
        root = yaml.compose(text, Loader=BASE)
    except (yaml.YAMLError, YamlFault):
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
    return YamlFault(message, mark.line + 1, mark.column + 1, getattr(error, "earlier", 0))
