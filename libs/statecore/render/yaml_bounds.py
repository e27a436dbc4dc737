"""YAML that would harm whoever builds it: aliases that multiply, and depth."""

from __future__ import annotations

import re

import yaml

from statecore.render.faults import DataFault
from statecore.render.yaml_values import BASE

#: Values that the aliases of one document may repeat; formulas use a handful.
_MAX_ALIASED = 100_000

#: Levels of a document. libyaml ends the whole process on some ten thousand.
_MAX_DEPTH = 200

#: A line whose beginning could open more than half of these levels (a list may stand in the column of its key).
_DEEP = re.compile(rf"^[ \-?:]{{{_MAX_DEPTH // 2}}}", re.MULTILINE)


class YamlFault(DataFault):
    """A document that cannot be read."""


def guard(text: str) -> None:
    """Refuses it with YamlFault. Costs a look at the text, and a second parse where that is suspicious."""
    if ("&" in text and "*" in text) or text.count("[") + text.count("{") > _MAX_DEPTH or _DEEP.search(text):
        _bounded(text)


def _bounded(text: str) -> None:
    """Counts levels, and what aliases repeat, before anything is built from them."""
    anchors: dict[str, int] = {}
    open_anchors: list[str] = []
    total = 0
    depth: list[int] = []
    try:
        for event in yaml.parse(text, Loader=BASE):
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
