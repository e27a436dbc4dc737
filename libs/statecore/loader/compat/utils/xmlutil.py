"""``salt.utils.xmlutil`` for users' modules: converts XML elements to maps and text."""

from __future__ import annotations

from xml.etree.ElementTree import Element, tostring


def to_dict(xmltree: Element, attr: bool = False) -> object:
    """Return an XML element as nested maps of tag to content. Repeated tags become a list. ``attr`` adds the
    attributes.
    """
    return _with_attributes(xmltree) if attr else _plain(xmltree)


def element_to_str(node: Element) -> str:
    """Return an XML element as text."""
    return tostring(node).decode()


def _name(tag: str) -> str:
    """Return an XML tag without its namespace."""
    return tag.rpartition("}")[2]


def _append(found: dict[str, object], name: str, value: object) -> None:
    """Append the value of a repeated XML tag to the list at ``found[name]``. A single value is turned into a list
    first.
    """
    before = found[name]
    if isinstance(before, list):
        before.append(value)
    else:
        found[name] = [before, value]


def _plain(node: Element) -> dict[str, object]:
    if not len(node):
        return {_name(node.tag): node.text}
    found: dict[str, object] = {}
    for child in node:
        name = _name(child.tag)
        if name not in found:
            found[name] = _plain(child) if len(child) else child.text
        else:
            _append(found, name, _plain(child))
    return found


def _with_attributes(node: Element) -> object:
    found: dict[str, object] = dict(node.attrib)
    if not len(node):
        if not found:
            return node.text
        if node.text:
            found[_name(node.tag)] = node.text
    for child in node:
        name = _name(child.tag)
        if name not in found:
            found[name] = _with_attributes(child)
        else:
            _append(found, name, _with_attributes(child))
    return found
