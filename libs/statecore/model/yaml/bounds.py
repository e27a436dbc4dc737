"""Bounds of YAML documents, checked before a value is built: size, nested levels, values, aliases, digits, keys.

Without them a small document takes minutes of CPU time or gigabytes of memory: nested aliases repeat values, merge keys
copy maps, a number of a million digits is converted in quadratic time, and integer keys with equal hashes make a map
slow. Each bound is linear in the length of the text.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import yaml

from statecore.model.errors import DataFault

#: The loader with libyaml if it is installed, else PyYAML's pure Python loader. Both read the same language.
if TYPE_CHECKING:
    BASE = yaml.SafeLoader
else:
    BASE = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

#: Largest number of characters of a number. Python refuses to convert more decimal digits, so Salt does, too.
DIGITS = 4_300
#: Largest number of characters of a hexadecimal number: it has at most as many decimal digits, so that it can be written.
_HEX_DIGITS = 3_500

#: Largest number of keys with an equal hash in one map. The hash of an integer is its remainder of ``_MODULUS``.
_EQUAL_HASHES = 64
_MODULUS = sys.hash_info.modulus

#: Largest number of ``%TAG`` lines: libyaml compares each tag with each of them.
_TAG_LINES = 16
_TAG_LINE = re.compile(r"^%TAG", re.MULTILINE)

#: Largest number of characters of an error's message: it may quote a key of the document.
_MESSAGE = 500


@dataclass(frozen=True)
class Bounds:
    """The bounds of one dialect. At about ten thousand nested levels libyaml crashes the process."""

    #: Largest number of characters of a document.
    characters: int
    #: Largest number of nested levels.
    depth: int = 200
    #: Largest number of values that the aliases and the merge keys of a document may repeat. 0: aliases are refused.
    aliased: int = 100_000
    #: Largest number of values; 0: as many as fit into ``characters``.
    values: int = 0


class YamlFault(DataFault):
    """Error: a YAML document cannot be parsed, or exceeds a bound. Its texts have at most 500 characters."""

    def __init__(self, message: str, line: int, column: int = 0, earlier: int = 0, problem: str = "") -> None:
        super().__init__(_short(message), line, column, earlier)
        #: The message without what was being read when the error was found.
        self.problem = _short(problem or message)

    @property
    def placed(self) -> str:
        """The message behind its line and column, for a document that has no other place in the report."""
        column = f", column {self.column}" if self.column else ""
        return f"line {self.line}{column}: {self.problem}" if self.line else self.problem


def _short(text: str) -> str:
    return text if len(text) <= _MESSAGE else f"{text[:_MESSAGE]} ..."


class BoundExceeded(yaml.MarkedYAMLError):
    """Error: a YAML document exceeds a bound. Users' modules catch it as ``yaml.YAMLError``."""

    def __init__(self, problem: str, mark: yaml.Mark | None = None) -> None:
        super().__init__(None, None, problem, mark)


def guard(text: str, bounds: Bounds) -> None:
    """Raise BoundExceeded if a YAML text has more characters, nested levels, values or aliased values than ``bounds``.

    Most texts cost one search. Only texts that may exceed a bound are parsed to events for this.
    """
    if len(text) > bounds.characters:
        raise BoundExceeded(f"the document has {len(text)} characters; the limit is {bounds.characters}")
    if "%TAG" in text and len(_TAG_LINE.findall(text)) > _TAG_LINES:
        raise BoundExceeded(f"the document has more than {_TAG_LINES} %TAG lines")
    if (
        ("&" in text and "*" in text)
        or text.count("[") + text.count("{") > bounds.depth
        or 0 < bounds.values < 2 * len(text)
        or _deep(bounds.depth).search(text)
    ):
        _count(text, bounds)


def check_number(text: str, mark: yaml.Mark | None) -> None:
    """Raise BoundExceeded if a number has more characters than Python converts from text, or back to text."""
    most = _HEX_DIGITS if "x" in text[:3] else DIGITS
    if len(text) > most:
        raise BoundExceeded(f"a number has {len(text)} characters; the limit is {most}", mark)


def count_hash(key: object, seen: dict[int, int] | None, mark: yaml.Mark | None) -> dict[int, int] | None:
    """Count the hash of a new key of a map in ``seen`` and return ``seen``. Raise BoundExceeded if too many keys of the
    map have this hash.

    ``seen`` is None until the map has a key whose hash another key can have by intent. Texts have none: their hashes
    differ between processes.
    """
    if type(key) is int and -_MODULUS < key < _MODULUS:
        return seen
    seen = {} if seen is None else seen
    number = hash(key)
    seen[number] = seen.get(number, 0) + 1
    if seen[number] > _EQUAL_HASHES:
        raise BoundExceeded(f"more than {_EQUAL_HASHES} keys of a map have one hash; write large numbers as text", mark)
    return seen


@cache
def _deep(depth: int) -> re.Pattern[str]:
    """Return the pattern of a line whose indentation may open more than half of ``depth`` levels; a list may stand in
    the column of its key.
    """
    return re.compile(rf"^[ \-?:]{{{depth // 2}}}", re.MULTILINE)


def _count(text: str, bounds: Bounds) -> None:
    """Count the nested levels, the values, and the values repeated by aliases of a YAML text. Raise BoundExceeded if
    there are too many.
    """
    sizes: dict[str, int] = {}  # anchor -> number of values of its node, with the values of aliases
    open_nodes: list[tuple[str | None, int]] = []  # (anchor, number of all values before the node) of open collections
    open_anchors: set[str] = set()
    values = repeated = 0
    loader = BASE(text)
    try:
        while (event := loader.get_event()) is not None:  # type: ignore[no-untyped-call]
            kind = type(event)
            if kind is yaml.ScalarEvent:
                values += 1
            elif kind is yaml.AliasEvent:
                if not bounds.aliased:
                    raise BoundExceeded("aliases are not accepted", event.start_mark)
                if event.anchor in open_anchors:
                    raise BoundExceeded(f"the alias '*{event.anchor}' is inside its own anchor", event.start_mark)
                repeated += sizes.get(event.anchor, 1)
            elif kind is yaml.SequenceStartEvent or kind is yaml.MappingStartEvent:
                open_nodes.append((event.anchor, values + repeated))
                values += 1
                if len(open_nodes) > bounds.depth:
                    raise BoundExceeded(f"the document nests deeper than {bounds.depth} levels", event.start_mark)
                if event.anchor:
                    open_anchors.add(event.anchor)
            elif kind is yaml.SequenceEndEvent or kind is yaml.MappingEndEvent:
                anchor, before = open_nodes.pop()
                if anchor:
                    sizes[anchor] = values + repeated - before
                    open_anchors.discard(anchor)
            if repeated > bounds.aliased:
                raise BoundExceeded(f"aliases repeat more than {bounds.aliased} values", event.start_mark)
            if 0 < bounds.values < values:
                raise BoundExceeded(f"the document has more than {bounds.values} values", event.start_mark)
    except BoundExceeded:
        raise
    except yaml.YAMLError:
        # The loader reports syntax errors with a better message.
        return
    finally:
        loader.dispose()
