"""YAML straight from libyaml's events to values, for what nearly every SLS is: maps, lists and plain scalars.

A tree of nodes, which the rest of YAML needs, takes four times the memory. What is met here that is not plain (anchors,
tags, merges), or not right, is left to who makes that tree: ``yaml_values.build``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from yaml.events import (
    DocumentEndEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

#: What a scalar may be by its first character: (tag, pattern).
Resolvers = Mapping[str, Sequence[tuple[str, Any]]]


class NotPlain(Exception):
    """There is more in the document than this file knows, or something is wrong with it."""


def build(loader: Any, scalar: Mapping[str, Callable[[str], Any]], resolvers: Resolvers) -> Any:
    """The document of a fresh loader. ``scalar``: tag -> value of a text. Raises NotPlain, yaml.YAMLError."""
    following: Callable[[], Any] = loader.get_event

    def value(event: Any) -> Any:
        kind = type(event)
        if kind is ScalarEvent:
            text: str = event.value
            if event.tag is not None or event.anchor is not None:
                raise NotPlain
            if event.implicit[0]:
                for tag, pattern in resolvers.get(text[:1], ()):
                    if pattern.match(text):
                        if tag not in scalar:
                            raise NotPlain
                        return scalar[tag](text)
            return text
        if event.anchor is not None or (kind is not MappingStartEvent and kind is not SequenceStartEvent):
            raise NotPlain
        if event.tag is not None:
            raise NotPlain
        if kind is SequenceStartEvent:
            items = []
            while type(event := following()) is not SequenceEndEvent:
                items.append(value(event))
            return items
        made: dict[Any, Any] = {}
        while type(event := following()) is not MappingEndEvent:
            if type(event) is not ScalarEvent:
                raise NotPlain
            key = value(event)
            if key in made:
                raise NotPlain
            made[key] = value(following())
        return made

    following()
    event = following()
    if type(event) is StreamEndEvent:
        return None
    built = value(following())
    if type(following()) is not DocumentEndEvent or type(following()) is not StreamEndEvent:
        raise NotPlain
    return built


__all__ = ["NotPlain", "Resolvers", "build"]
