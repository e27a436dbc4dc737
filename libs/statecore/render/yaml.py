"""YAML as Salt reads it: strict about keys, lenient about nothing else. libyaml parses, this file only decides.

A key that stands twice in one map is an error that names both lines; tags of other languages are refused; aliases are
bounded, so that a small file cannot become gigabytes, and so is depth.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml.constructor import ConstructorError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.scanner import ScannerError

#: C speed where libyaml is there; the pure loader reads the same language.
_BASE: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

#: Values that the aliases of one document may repeat; formulas use a handful.
_MAX_ALIASED = 100_000

#: Levels of a document. libyaml ends the whole process on some ten thousand.
_MAX_DEPTH = 200

#: A line whose beginning could open more than half of these levels (a list may stand in the column of its key).
_DEEP = re.compile(rf"^[ \-?:]{{{_MAX_DEPTH // 2}}}", re.MULTILINE)

_MERGE = "tag:yaml.org,2002:merge"
_TEXT = "tag:yaml.org,2002:str"
_SEQUENCE = "tag:yaml.org,2002:seq"
_MAPPING = "tag:yaml.org,2002:map"


class YamlFault(Exception):
    """A document that cannot be read. ``line`` and ``column`` count from 1 in the text that was parsed; 0: unknown."""

    def __init__(self, message: str, line: int, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class _Loader(_BASE):  # type: ignore[misc]
    """SafeLoader with Salt's rules.

    A tree of nodes is made into data here and not by PyYAML's generators: SLS are long, and this takes a third of their time.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        #: What an alias means: collections by the identity of their node.
        self._built: dict[int, Any] = {}

    def get_single_data(self) -> Any:
        node = self.get_single_node()
        return None if node is None else self._build(node)

    def resolve(self, kind: type[Node], value: str, implicit: tuple[bool, bool]) -> str:
        """The tag of a node that has none. PyYAML's rules; paths and wildcards, which it also asks for, are not used."""
        if kind is not ScalarNode:
            return _SEQUENCE if kind is SequenceNode else _MAPPING
        if implicit[0]:
            for tag, pattern in self.yaml_implicit_resolvers.get(value[:1], ()):
                if pattern.match(value):
                    return str(tag)
        return _TEXT

    def _build(self, node: Node) -> Any:
        tag = node.tag
        if tag == _TEXT:
            return node.value
        if tag == _SEQUENCE and isinstance(node, SequenceNode):
            known = self._built.get(id(node))
            if known is None:
                known = self._built[id(node)] = [self._build(item) for item in node.value]
            return known
        if tag == _MAPPING and isinstance(node, MappingNode):
            known = self._built.get(id(node))
            if known is None:
                known = self._built[id(node)] = self.construct_mapping(node)
            return known
        return self.construct_object(node, deep=True)

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        self.flatten_mapping(node)
        mapping: dict[Any, Any] = {}
        build = self._build
        for key_node, value_node in node.value:
            key = build(key_node)
            try:
                known = key in mapping
            except TypeError:
                raise ConstructorError(
                    "while constructing a mapping", node.start_mark, "found unacceptable key", key_node.start_mark
                ) from None
            if known:
                first = next(each for each, _ in node.value if build(each) == key)
                raise ConstructorError(
                    context=f"while constructing a mapping; the first one is in line {first.start_mark.line + 1}",
                    context_mark=node.start_mark,
                    problem=f"found conflicting ID '{key}'",
                    problem_mark=key_node.start_mark,
                )
            mapping[key] = build(value_node)
        return mapping

    def flatten_mapping(self, node: MappingNode) -> None:
        """Merge keys (``<<``) give defaults: what the map itself says wins, and is no conflict."""
        own = [pair for pair in node.value if pair[0].tag != _MERGE]
        if len(own) == len(node.value):
            return
        named = {key.value for key, _ in own if isinstance(key, ScalarNode)}
        super().flatten_mapping(node)
        merged = [(key, value) for key, value in node.value if (key, value) not in own]
        kept: dict[Any, tuple[Node, Node]] = {}
        for key, value in merged:
            # Of several merged maps the first one wins; PyYAML puts it last.
            kept[key.value if isinstance(key, ScalarNode) else id(key)] = (key, value)
        node.value = [pair for name, pair in kept.items() if name not in named] + own


def _construct_yaml_map(loader: Any, node: MappingNode) -> Any:
    mapping: dict[Any, Any] = {}
    yield mapping
    mapping.update(loader.construct_mapping(node))


def _construct_omap(loader: Any, node: Node) -> Any:
    """An ordered map is a map: ours keep their order. Salt writes it as one, YAML as a list of single pairs."""
    if isinstance(node, SequenceNode):
        pairs = [pair for item in node.value if isinstance(item, MappingNode) for pair in item.value]
        return _construct_yaml_map(loader, MappingNode(node.tag, pairs, node.start_mark, node.end_mark))
    if not isinstance(node, MappingNode):
        raise ConstructorError(None, None, f"expected a mapping node, but found {type(node).__name__}", node.start_mark)
    return _construct_yaml_map(loader, node)


def _construct_int(loader: Any, node: ScalarNode) -> int:
    """``0644`` is octal in YAML 1.1 and a mode in Salt: Salt reads it as the decimal digits that it shows."""
    text = str(node.value).replace("_", "")
    if len(text) > 1 and text.startswith("0") and text.isdecimal():
        return int(text, 10)
    value: int = _BASE.construct_yaml_int(loader, node)
    return value


def _construct_undefined(loader: Any, node: Node) -> Any:
    raise ConstructorError(
        None, None, f"could not determine a constructor for the tag {node.tag!r}: SLS holds plain data", node.start_mark
    )


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_yaml_map)
_Loader.add_constructor("tag:yaml.org,2002:omap", _construct_omap)
_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _BASE.construct_yaml_str)
_Loader.add_constructor(None, _construct_undefined)


def load(text: str) -> Any:
    """The document. Raises YamlFault."""
    _guard(text)
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise _fault(error) from error
    except yaml.YAMLError as error:
        raise YamlFault(str(error), 0) from error
    except (ValueError, OverflowError) as error:
        raise YamlFault(f"a value cannot be read: {error}", 0) from error


def key_places(text: str) -> dict[tuple[str, ...], tuple[int, int]]:
    """{path of keys: (line, column)} of a document, as deep as IDs, state declarations, their arguments and what is
    required. {} when it is no YAML.

    Costs a second parse: for errors only.
    """
    try:
        _guard(text)
        root = yaml.compose(text, Loader=_BASE)
    except (yaml.YAMLError, YamlFault):
        return {}
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    _collect(root, (), found)
    return found


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """{path of keys: line}: ``key_places`` without columns."""
    return {path: line for path, (line, _) in key_places(text).items()}


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


def _guard(text: str) -> None:
    """Refuses what would harm whoever builds it. Costs a look at the text, and a second parse where that is suspicious."""
    if ("&" in text and "*" in text) or text.count("[") + text.count("{") > _MAX_DEPTH or _DEEP.search(text):
        _bounded(text)


def _bounded(text: str) -> None:
    """Counts levels, and what aliases repeat, before anything is built from them."""
    anchors: dict[str, int] = {}
    open_anchors: list[str] = []
    total = 0
    depth: list[int] = []
    try:
        for event in yaml.parse(text, Loader=_BASE):
            if isinstance(event, yaml.AliasEvent):
                if event.anchor in open_anchors:
                    raise YamlFault(f"the alias '*{event.anchor}' repeats what it stands in", _line(event))
                repeated = anchors.get(str(event.anchor), 1)
                total += repeated
                for name in open_anchors:
                    anchors[name] += repeated
            elif isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
                if isinstance(event, yaml.CollectionStartEvent):
                    depth.append(0)
                    if len(depth) > _MAX_DEPTH:
                        raise YamlFault(f"the document nests deeper than {_MAX_DEPTH} levels", _line(event))
                    if event.anchor:
                        anchors[event.anchor] = 0
                        open_anchors.append(event.anchor)
                        depth[-1] = 1
                for name in open_anchors:
                    anchors[name] += 1
            elif isinstance(event, yaml.CollectionEndEvent) and depth and depth.pop():
                open_anchors.pop()
            if total > _MAX_ALIASED:
                raise YamlFault(f"aliases repeat more than {_MAX_ALIASED} values", _line(event))
    except yaml.YAMLError:
        # The loader says it better.
        return


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _fault(error: yaml.MarkedYAMLError) -> YamlFault:
    mark = error.problem_mark or error.context_mark
    parts = [error.context, error.problem if error.context != error.problem else None, error.note]
    if isinstance(error, ScannerError):
        # The problem first: it is what Salt says of these.
        parts = [error.problem, error.context]
    message = ": ".join(part for part in parts if part)
    return YamlFault(message, mark.line + 1, mark.column + 1) if mark is not None else YamlFault(message, 0)
