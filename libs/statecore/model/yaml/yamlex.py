"""YAML with aggregation, the language of the renderer ``yamlex``: a key may occur several times in one map.

``!aggregate`` marks a value, so that it is joined with the other marked values of the same key. ``!reset`` before a
key forgets the key's earlier values. Without a tag, the last value of a key is used.

Salt: salt/serializers/yamlex.py.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Hashable
from typing import Any

from yaml.constructor import ConstructorError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from statecore.model.aggregation import Map, Sequence, aggregate
from statecore.model.yaml.bounds import check_number, count_hash
from statecore.model.yaml.loaders import BoundedLoader, unacceptable

log = logging.getLogger(__name__)

_AGGREGATE, _RESET = "!aggregate", "!reset"
_TAG = "tag:yaml.org,2002:"


class YamlexLoader(BoundedLoader):
    """The loader with bounds, with the tags ``!aggregate`` and ``!reset``, and with maps whose keys may be repeated."""

    #: Types of maps, texts, marked maps and marked lists.
    map_class: type[dict[Any, Any]] = dict
    text_class: type[str] = str
    aggregated_map: type[dict[Any, Any]] = Map
    aggregated_sequence: type[list[Any]] = Sequence

    def map_of(self, node: Node) -> dict[Any, Any]:
        """Return the map that a YAML node describes. The values of a repeated key are merged. Raise ConstructorError
        if the node is no map, or a key is not hashable.
        """
        if not isinstance(node, MappingNode):
            text = f"expected a mapping node, but found {type(node).__name__}"
            raise ConstructorError(None, None, text, node.start_mark)
        self.flatten_mapping(node)
        made = self.map_class()
        hashes: dict[int, int] | None = None
        for key_node, value_node in node.value:
            reset = key_node.tag == _RESET
            if key_node.tag == _AGGREGATE:
                log.warning(
                    "!aggregate belongs to a value, not to the key %s: it is taken for the value", key_node.value
                )
                key_node.tag, value_node.tag = self._own_tag(key_node), _AGGREGATE
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise unacceptable(node, key_node)
            if type(key) is not str and key not in made:
                hashes = count_hash(key, hashes, key_node.start_mark)
            value = self.construct_object(value_node, deep=True)
            made[key] = value if reset or key not in made else self.merged(made[key], value)
        return made

    def merged(self, under: object, over: object) -> object:
        """Return the value of a repeated key: its later value merged over its earlier value. Marked maps and lists are
        joined.
        """
        return aggregate(under, over, False, self.aggregated_map, self.aggregated_sequence)

    def text_of(self, node: ScalarNode) -> str:
        """Return the text of a scalar YAML node, as an object of ``text_class``."""
        return self.text_class(self.construct_scalar(node))

    def int_of(self, node: ScalarNode) -> int | str:
        """Return the integer of a scalar YAML node. Digits with a leading zero are decimal, as in Salt."""
        check_number(node.value, node.start_mark)
        text = str(node.value).replace("_", "")
        return int(text, 10) if text.isdecimal() else self.construct_yaml_int(node)

    def aggregated(self, node: Node) -> object:
        """Return the value of a YAML node with the tag ``!aggregate`` as a marked map, else as a marked list."""
        value = self.reset(node)
        if value is None:
            return self.aggregated_sequence()
        if isinstance(node, MappingNode):
            return self.aggregated_map(value)
        return self.aggregated_sequence(value if isinstance(node, SequenceNode) else [value])

    def reset(self, node: Node) -> Any:
        """Return the value that a YAML node would have without its tag (``!reset`` or ``!aggregate``)."""
        plain = copy.copy(node)
        plain.tag = self._own_tag(node)
        return self.construct_object(plain, deep=True)

    def _own_tag(self, node: Node) -> str:
        if isinstance(node, ScalarNode):
            return str(self.resolve(ScalarNode, node.value, (True, True)))  # type: ignore[no-untyped-call]
        return _TAG + ("seq" if isinstance(node, SequenceNode) else "map")


YamlexLoader.add_constructor(_AGGREGATE, YamlexLoader.aggregated)
YamlexLoader.add_constructor(_RESET, YamlexLoader.reset)
YamlexLoader.add_constructor(f"{_TAG}map", YamlexLoader.map_of)
YamlexLoader.add_constructor(f"{_TAG}omap", YamlexLoader.map_of)
YamlexLoader.add_constructor(f"{_TAG}str", YamlexLoader.text_of)
YamlexLoader.add_constructor(f"{_TAG}int", YamlexLoader.int_of)
