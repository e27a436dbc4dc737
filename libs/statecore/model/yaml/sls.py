"""Makes the values of a YAML document from PyYAML's nodes, by Salt's rules.

libyaml makes the nodes. PyYAML's own construction of values takes longer than the parse, so the usual types of an SLS
are made here. Other types (binary, sets, merge keys, unknown tags) are made by PyYAML.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import NoReturn

import yaml
from yaml.constructor import ConstructorError
from yaml.nodes import MappingNode, Node, ScalarNode

from statecore.model.yaml import plain_events
from statecore.model.yaml.bounds import check_number, count_hash, guard
from statecore.model.yaml.loaders import (
    FLOAT,
    INT,
    MAP,
    MERGE,
    SEQ,
    STR,
    TAG,
    TIMESTAMP,
    VALUE,
    SaltLoader,
    text_of,
    unacceptable,
)


class DuplicateKey(ConstructorError):
    """Error: a key occurs twice in a YAML map. ``earlier`` is the line of the first occurrence."""

    earlier = 0


class YamlLoader(SaltLoader):
    """The loader with Salt's rules, whose error for a repeated key has both lines."""

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Hashable, object]:
        """Return the map that a YAML node describes. Raise ConstructorError for a key that occurs twice or is not
        hashable.
        """
        self.flatten_mapping(node)
        mapping: dict[Hashable, object] = {}
        hashes: dict[int, int] | None = None
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=deep)
            if not isinstance(key, Hashable):
                raise unacceptable(node, key_node)
            if key in mapping:
                raise _duplicate_key(node, key, key_node, lambda other: self.construct_object(other, deep=True))
            if type(key) is not str:
                hashes = count_hash(key, hashes, key_node.start_mark)
            mapping[key] = self.construct_object(value_node, deep=deep)
        return mapping

    def resolve(self, kind: type[Node], value: str, implicit: tuple[bool, bool]) -> str:
        """Return the tag (type) of a YAML node that has no written tag, by its kind and, for a scalar, by the form
        of its text.
        """
        if kind is not ScalarNode:
            return MAP if kind is MappingNode else SEQ
        if implicit[0]:
            for tag, pattern in self.yaml_implicit_resolvers.get(value[:1], ()):
                if pattern.match(value):
                    return str(tag)
        return STR

    def descend_resolver(self, current_node: object, current_index: object) -> None:
        """Do nothing: PyYAML calls this for its tags by path, which are not supported."""

    def ascend_resolver(self) -> None:
        """Do nothing: PyYAML calls this for its tags by path, which are not supported."""


def _construct_yaml_map(loader: YamlLoader, node: MappingNode) -> Iterator[dict[Hashable, object]]:
    mapping: dict[Hashable, object] = {}
    yield mapping
    mapping.update(loader.construct_mapping(node))


def _construct_omap(loader: YamlLoader, node: Node) -> Iterator[dict[Hashable, object]]:
    """Yield the dict of an ordered map (``!!omap``), written as a map as in Salt, or as YAML's list of single pairs."""
    if isinstance(node, yaml.SequenceNode):
        pairs = [pair for item in node.value if isinstance(item, MappingNode) for pair in item.value]
        return _construct_yaml_map(loader, MappingNode(node.tag, pairs, node.start_mark, node.end_mark))
    if not isinstance(node, MappingNode):
        raise ConstructorError(None, None, f"expected a mapping node, but found {type(node).__name__}", node.start_mark)
    return _construct_yaml_map(loader, node)


def _construct_int(loader: YamlLoader, node: ScalarNode) -> int | str:
    """Return the integer of a YAML scalar.

    Digits with a leading zero (``0644``) are decimal, as in Salt, although YAML 1.1 reads them as octal.
    """
    if ":" in node.value:
        # In base 60.
        return str(node.value)
    check_number(node.value, node.start_mark)
    text = str(node.value).replace("_", "")
    if len(text) > 1 and text.startswith("0") and text.isdecimal():
        return int(text, 10)
    return loader.construct_yaml_int(node)


def _construct_binary(loader: YamlLoader, node: ScalarNode) -> bytes:
    """Return the bytes of a YAML scalar with base64 text. Missing padding at the end is accepted."""
    text = "".join(str(loader.construct_scalar(node)).split())
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4))
    except ValueError as error:
        raise ConstructorError(None, None, f"failed to decode base64 data: {error}", node.start_mark) from error


def _construct_text(loader: YamlLoader, node: ScalarNode) -> str:
    return str(loader.construct_yaml_str(node))


def _construct_undefined(loader: YamlLoader, node: Node) -> NoReturn:
    raise ConstructorError(
        None, None, f"could not determine a constructor for the tag {node.tag!r}: SLS holds plain data", node.start_mark
    )


YamlLoader.add_constructor("tag:yaml.org,2002:map", _construct_yaml_map)
YamlLoader.add_constructor("tag:yaml.org,2002:omap", _construct_omap)
YamlLoader.add_constructor("tag:yaml.org,2002:int", _construct_int)
YamlLoader.add_constructor("tag:yaml.org,2002:timestamp", _construct_text)
YamlLoader.add_constructor("tag:yaml.org,2002:binary", _construct_binary)
YamlLoader.add_constructor("tag:yaml.org,2002:python/unicode", _construct_text)
YamlLoader.add_constructor(None, _construct_undefined)


class _Builder:
    """Makes the values of one YAML document from its nodes."""

    def __init__(self, loader: YamlLoader, aliases: bool) -> None:
        self._loader = loader
        #: id(node) -> value, if the document has aliases: all places of one node share one value. None without aliases.
        self._shared: dict[int, object] | None = {} if aliases else None

    def value(self, node: Node) -> object:
        """Return the value that a YAML node describes."""
        tag = node.tag
        if type(node) is ScalarNode:
            if tag == STR:
                return node.value
            scalar = _SCALARS.get(tag)
            return scalar(self._loader, node) if scalar is not None else self._by_pyyaml(node)
        if self._shared is not None and id(node) in self._shared:
            return self._shared[id(node)]
        if tag == SEQ:
            made: object = [self.value(item) for item in node.value]
        else:
            made = self._map(node) if tag == MAP and isinstance(node, MappingNode) else self._by_pyyaml(node)
        if self._shared is not None:
            self._shared[id(node)] = made
        return made

    def _map(self, node: MappingNode) -> dict[object, object]:
        made: dict[object, object] = {}
        for key_node, _ in node.value:
            if key_node.tag == MERGE or key_node.tag == VALUE:
                self._loader.flatten_mapping(node)
                break
        hashes: dict[int, int] | None = None
        for key_node, value_node in node.value:
            key = key_node.value if key_node.tag == STR else self.value(key_node)
            if type(key) is not str and not isinstance(key, Hashable):
                raise unacceptable(node, key_node)
            if key in made:
                raise _duplicate_key(node, key, key_node, self.value)
            if type(key) is not str:
                hashes = count_hash(key, hashes, key_node.start_mark)
            made[key] = self.value(value_node)
        return made

    def _by_pyyaml(self, node: Node) -> object:
        return self._loader.construct_document(node)


def build(text: str | bytes) -> object:
    """Return the data of a YAML document. Raise yaml.YAMLError, ValueError or OverflowError for a faulty one."""
    text = text_of(text)
    guard(text, YamlLoader.bounds)
    loader = YamlLoader(text, checked=True)
    try:
        return plain_events.build(loader, _PLAIN, YamlLoader.yaml_implicit_resolvers)
    except (plain_events.NotPlain, yaml.YAMLError):
        # The full loader below builds the document, or raises the error with its position.
        pass
    finally:
        loader.dispose()
    loader = YamlLoader(text, checked=True)
    try:
        node = loader.get_single_node()
        return None if node is None else _Builder(loader, "&" in text).value(node)
    finally:
        loader.dispose()


def _duplicate_key(node: Node, key: object, key_node: Node, value: Callable[[Node], object]) -> DuplicateKey:
    """Return the error for a key that occurs a second time in a YAML map, at ``key_node``."""
    first = next(other for other, _ in node.value if value(other) == key)
    fault = DuplicateKey(
        "while constructing a mapping", node.start_mark, f"found conflicting ID '{key}'", key_node.start_mark
    )
    fault.earlier = first.start_mark.line + 1
    return fault


#: Tag -> function that makes the value of a scalar node with this tag.
_SCALARS: Mapping[str, Callable[[YamlLoader, ScalarNode], object]] = {
    INT: _construct_int,
    TAG + "bool": lambda loader, node: loader.bool_values[node.value.lower()],
    TAG + "null": lambda loader, node: None,
    FLOAT: lambda loader, node: loader.construct_yaml_float(node),
    TIMESTAMP: lambda loader, node: node.value,
}


def _plain(tag: str, make: Callable[[YamlLoader, ScalarNode], object]) -> Callable[[str], object]:
    loader = YamlLoader("")
    return lambda text: make(loader, ScalarNode(tag, text))


#: Tag -> function that makes the value of a scalar from its text.
_PLAIN: Mapping[str, Callable[[str], object]] = {tag: _plain(tag, make) for tag, make in _SCALARS.items()}
