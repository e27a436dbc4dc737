"""The Jinja filter ``xml``: writes maps and lists as XML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from xml.dom import minidom
from xml.etree import ElementTree

import jinja2


def xml(value: object) -> str:
    """Return a map or list as XML text. Raise TemplateRuntimeError for other values and for empty ones."""
    if not isinstance(value, Mapping | list | tuple):
        raise jinja2.TemplateRuntimeError("Value is not a dict or list. Cannot render as XML")
    root = next(_elements(value), None)
    if root is None:
        raise jinja2.TemplateRuntimeError("an empty value has no XML")
    return minidom.parseString(ElementTree.tostring(root)).toprettyxml(indent=" ")


def _elements(value: Mapping[object, object] | Iterable[tuple[object, object]]) -> Iterator[ElementTree.Element]:
    for tag, content in value.items() if isinstance(value, Mapping) else value:
        for each in content if isinstance(content, list) else [content]:
            element = ElementTree.Element(str(tag))
            if isinstance(each, Mapping):
                element.attrib = {
                    str(key): str(inner) for key, inner in each.items() if not isinstance(inner, Mapping | list)
                }
                element.extend(
                    _elements([(key, inner) for key, inner in each.items() if isinstance(inner, Mapping | list)])
                )
            else:
                element.text = str(each)
            yield element
