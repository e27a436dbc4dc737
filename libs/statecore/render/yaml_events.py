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

    def scalar_of(event: Any) -> Any:
        if event.tag is not None or event.anchor is not None:
            raise NotPlain
        text: str = event.value
        if event.implicit[0] and (known := resolvers.get(text[:1])):
            for tag, pattern in known:
                if pattern.match(text):
                    if tag not in scalar:
                        raise NotPlain
                    return scalar[tag](text)
        return text

    def value(event: Any) -> Any:
        kind = type(event)
        if kind is ScalarEvent:
            return scalar_of(event)
        if event.anchor is not None or event.tag is not None:
            raise NotPlain
        if kind is SequenceStartEvent:
            items = []
            while (kind := type(event := following())) is not SequenceEndEvent:
                items.append(scalar_of(event) if kind is ScalarEvent else value(event))
            return items
        if kind is not MappingStartEvent:
            raise NotPlain
        made: dict[Any, Any] = {}
        while (kind := type(event := following())) is not MappingEndEvent:
            if kind is not ScalarEvent:
                raise NotPlain
            key = scalar_of(event)
            if key in made:
                raise NotPlain
            event = following()
            made[key] = scalar_of(event) if type(event) is ScalarEvent else value(event)
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
