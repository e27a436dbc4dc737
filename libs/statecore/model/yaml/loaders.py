"""PyYAML's loaders with bounds: the rules that all dialects share, and those of Salt.

No number is read in base 60: ``1:30`` and ``1:30.5`` are texts. PyYAML reads them as YAML 1.1 says, as 90 and 90.5, and
takes quadratic time for it.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import IO, ClassVar

from yaml.constructor import ConstructorError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import ReaderError

from statecore.model.yaml.bounds import BASE, BoundExceeded, Bounds, check_number, count_hash, guard

TAG = "tag:yaml.org,2002:"
STR, INT, FLOAT, MAP, SEQ = (TAG + name for name in ("str", "int", "float", "map", "seq"))
MERGE, VALUE, TIMESTAMP = TAG + "merge", TAG + "value", TAG + "timestamp"

#: Patterns of YAML 1.1's numbers, without those in base 60.
_NUMBERS: Mapping[str, re.Pattern[str]] = {
    INT: re.compile(r"(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$"),
    FLOAT: re.compile(
        r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
}

#: Of documents that an operator wrote or that a program of this machine made.
FILES = Bounds(characters=64 * 2**20)


class BoundedLoader(BASE):
    """PyYAML's SafeLoader with bounds. It raises BoundExceeded, a ``yaml.YAMLError``, for a document that exceeds one.

    ``stream`` is a text, UTF-8 or UTF-16 bytes, or an open file. ``checked`` means that ``guard`` accepted the text.
    """

    bounds: ClassVar[Bounds] = FILES

    yaml_implicit_resolvers = {  # noqa: RUF012  # PyYAML's name
        first: [(tag, _NUMBERS.get(tag, pattern)) for tag, pattern in rows]
        for first, rows in BASE.yaml_implicit_resolvers.items()
    }

    def __init__(self, stream: str | bytes | IO[str] | IO[bytes], *, checked: bool = False) -> None:
        text = text_of(stream)
        if not checked:
            guard(text, self.bounds)
        super().__init__(text)
        #: Number of entries that merge keys copied.
        self._merged = 0

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Hashable, object]:
        """Return the map of a YAML node. The last value of a repeated key is used. Raise ConstructorError for a key that
        is not hashable.
        """
        self.flatten_mapping(node)
        made: dict[Hashable, object] = {}
        hashes: dict[int, int] | None = None
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=deep)
            if not isinstance(key, Hashable):
                raise unacceptable(node, key_node)
            if type(key) is not str or key in made:
                hashes = self.new_key(made, key, hashes, node, key_node)
            made[key] = self.construct_object(value_node, deep=deep)
        return made

    def new_key(
        self,
        made: Mapping[Hashable, object],
        key: Hashable,
        hashes: dict[int, int] | None,
        node: MappingNode,
        key_node: Node,
    ) -> dict[int, int] | None:
        """Check a key before it is added to the map ``made``, and return ``hashes`` with the key's hash counted."""
        return hashes if key in made else count_hash(key, hashes, key_node.start_mark)

    def flatten_mapping(self, node: MappingNode) -> None:
        """Replace the merge keys (``<<``) of a map node by the merged entries, before the map's own ones. Raise
        BoundExceeded if the merge keys of the document copy too many entries, and ConstructorError for a merge key
        whose value is neither a map nor a list of maps.
        """
        if not isinstance(node, MappingNode):
            raise ConstructorError(None, None, f"expected a mapping node, but found {node.id}", node.start_mark)
        own: list[tuple[Node, Node]] = []
        merged: list[tuple[Node, Node]] = []
        for key_node, value_node in node.value:
            if key_node.tag != MERGE:
                if key_node.tag == VALUE:
                    key_node.tag = STR
                own.append((key_node, value_node))
                continue
            for each in reversed(_merge_sources(node, value_node)):
                self.flatten_mapping(each)
                merged += each.value
                self._merged += len(each.value) + 1
                if self._merged > self.bounds.aliased:
                    text = f"merge keys copy more than {self.bounds.aliased} entries"
                    raise BoundExceeded(text, key_node.start_mark)
        if len(own) != len(node.value):
            node.value = merged + own

    def construct_yaml_int(self, node: ScalarNode) -> int | str:  # type: ignore[override]
        """Return the integer of a YAML scalar; the text of one in base 60."""
        text = self.construct_scalar(node)
        if ":" in text:
            return text
        check_number(text, node.start_mark)
        return super().construct_yaml_int(node)

    def construct_yaml_float(self, node: ScalarNode) -> float | str:  # type: ignore[override]
        """Return the floating point number of a YAML scalar; the text of one in base 60."""
        text = self.construct_scalar(node)
        if ":" in text:
            return text
        check_number(text, node.start_mark)
        return super().construct_yaml_float(node)


BoundedLoader.add_constructor(INT, BoundedLoader.construct_yaml_int)
BoundedLoader.add_constructor(FLOAT, BoundedLoader.construct_yaml_float)


class SaltLoader(BoundedLoader):
    """Loader with the rules of ``salt.utils.yaml``: dates stay text, ``0644`` is the number 644, and a key that occurs
    twice in a map is an error, unless a merge key brings it.
    """

    def construct_scalar(self, node: ScalarNode | MappingNode) -> str:
        """Return the text of a scalar node. Leading zeros of a decimal number are removed."""
        if node.tag == INT and isinstance(node, ScalarNode) and not node.value.startswith(("0b", "0x")):
            node.value = node.value.lstrip("0") or "0"
        return super().construct_scalar(node)

    def new_key(
        self,
        made: Mapping[Hashable, object],
        key: Hashable,
        hashes: dict[int, int] | None,
        node: MappingNode,
        key_node: Node,
    ) -> dict[int, int] | None:
        """Check a key before it is added to the map ``made``, and return ``hashes`` with the key's hash counted. Raise
        ConstructorError if the map has the key.
        """
        if key in made:
            text = f"found conflicting ID '{key}'"
            raise ConstructorError("while constructing a mapping", node.start_mark, text, key_node.start_mark)
        return count_hash(key, hashes, key_node.start_mark)

    def flatten_mapping(self, node: MappingNode) -> None:
        """Replace the merge keys (``<<``) of a map node by the merged entries. The map's own keys override merged keys
        without an error.
        """
        own = [pair for pair in node.value if pair[0].tag != MERGE]
        if len(own) == len(node.value):
            super().flatten_mapping(node)
            return
        named = {key.value for key, _ in own if isinstance(key, ScalarNode)}
        kept_ids = {id(key) for key, _ in own}
        super().flatten_mapping(node)
        merged = [(key, value) for key, value in node.value if id(key) not in kept_ids]
        kept: dict[object, tuple[Node, Node]] = {}
        for key, value in merged:
            # Of several merged maps the first one wins. PyYAML lists it last.
            kept[key.value if isinstance(key, ScalarNode) else id(key)] = (key, value)
        node.value = [pair for name, pair in kept.items() if name not in named] + own


SaltLoader.add_constructor(TIMESTAMP, SaltLoader.construct_scalar)


def text_of(stream: str | bytes | IO[str] | IO[bytes]) -> str:
    """Return the text of a document that is given as text, bytes or an open file. Raise ReaderError if bytes are neither
    UTF-8 nor UTF-16 with a byte order mark.
    """
    data = stream if isinstance(stream, str | bytes) else stream.read()
    if isinstance(data, str):
        return data
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return bytes(data).decode(encoding)
    except UnicodeDecodeError as error:
        first = bytes(data)[error.start : error.start + 1]
        raise ReaderError("<byte string>", error.start, first, encoding, error.reason) from error


def unacceptable(node: Node, key_node: Node) -> ConstructorError:
    """Return the error for a key that is not hashable."""
    return ConstructorError(
        "while constructing a mapping", node.start_mark, "found unacceptable key", key_node.start_mark
    )


def _merge_sources(node: MappingNode, value: Node) -> list[MappingNode]:
    """Return the map nodes that a merge key of ``node`` names: ``value`` itself, or the items of the list ``value``."""
    items: list[Node] = value.value if isinstance(value, SequenceNode) else [value]
    for item in items:
        if not isinstance(item, MappingNode):
            problem = "expected a mapping or list of mappings for merging, but found another value"
            raise ConstructorError("while constructing a mapping", node.start_mark, problem, item.start_mark)
    return [item for item in items if isinstance(item, MappingNode)]
