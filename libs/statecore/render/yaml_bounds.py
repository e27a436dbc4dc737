"""Bounds of YAML documents: a document with too many values repeated by aliases, or too many nested levels, is refused.

A small text with nested aliases could otherwise take gigabytes of memory. The check runs before any value is made.
"""

from __future__ import annotations

import re

import yaml

from statecore.render.faults import DataFault
from statecore.render.yaml_values import BASE

#: Largest number of values that the aliases of one document may repeat. Formulas repeat a few.
_MAX_ALIASED = 100_000

#: Largest number of nested levels in a document. At about ten thousand levels libyaml crashes the process.
_MAX_DEPTH = 200

#: A line whose indentation could open more than half of these levels (a list may be in the column of its key).
_DEEP = re.compile(rf"^[ \-?:]{{{_MAX_DEPTH // 2}}}", re.MULTILINE)


class YamlFault(DataFault):
    """Error: a YAML document cannot be parsed, or has too many nested levels or aliased values."""


def guard(text: str) -> None:
    """Raise YamlFault if a YAML text has more than 200 nested levels or more than 100 000 values repeated by
    aliases.

    Most texts cost one search; only texts that may exceed a bound are parsed for this.
    """
    if ("&" in text and "*" in text) or text.count("[") + text.count("{") > _MAX_DEPTH or _DEEP.search(text):
        _bounded(text)


def _bounded(text: str) -> None:
    """Count the nested levels and the values repeated by aliases of a YAML text. Raise YamlFault if there are too many."""
    anchors: dict[str, int] = {}
    open_anchors: list[str] = []
    total = 0
    depth: list[int] = []
    try:
        for event in yaml.parse(text, Loader=BASE):
            if isinstance(event, yaml.AliasEvent):
                if event.anchor in open_anchors:
                    raise YamlFault(f"the alias '*{event.anchor}' is inside its own anchor", _line(event))
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
        # The loader reports syntax errors with a better message.
        return


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0
