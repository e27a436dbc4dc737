"""Makes the values of a YAML document directly from libyaml's events, for documents of maps, lists and plain scalars.

Nearly every SLS is such a document. PyYAML's usual way, a tree of nodes, takes four times the memory. For other
documents (anchors, tags, merge keys, errors) NotPlain is raised, and ``sls.build`` makes the values from nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from yaml import SafeLoader
from yaml.events import (
    DocumentEndEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from statecore.model.yaml.bounds import count_hash

#: First character of a scalar -> its possible (tag, pattern) pairs.
Resolvers = Mapping[str, Sequence[tuple[str, re.Pattern[str]]]]


class NotPlain(Exception):
    """Error: the YAML document is malformed, or contains something that ``plain_events`` does not handle, such as an
    anchor or a tag.
    """


def build(loader: SafeLoader, scalar: Mapping[str, Callable[[str], object]], resolvers: Resolvers) -> object:
    """Return the data of the YAML document that ``loader`` reads; nothing may have been read from the loader
    before.

    ``scalar`` maps a YAML tag to the function that makes a value from text. ``resolvers`` maps the first
    character of a text without a tag to its possible (tag, pattern) pairs. Raise NotPlain for a document with
    anchors, tags or merge keys, and NotPlain or yaml.YAMLError for a faulty one.
    """
    # Any: an event's class is compared by identity, for speed. Mypy cannot narrow a type by that.
    following: Callable[[], Any] = loader.get_event

    def scalar_of(event: ScalarEvent) -> object:
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

    def value(event: Any) -> object:
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
        made: dict[object, object] = {}
        hashes: dict[int, int] | None = None
        while (kind := type(event := following())) is not MappingEndEvent:
            if kind is not ScalarEvent:
                raise NotPlain
            key = scalar_of(event)
            if key in made:
                raise NotPlain
            if type(key) is not str:
                hashes = count_hash(key, hashes, event.start_mark)
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
