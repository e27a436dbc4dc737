"""Values of XML files of the host: Salt's ``xml`` execution module.

An element is a path as ElementTree finds it, such as ``.//port`` or ``server/port``. An entity that the file itself defines
is refused.
"""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError


def get_value(ctx: Context, file: str, element: str) -> str | bool | None:
    """Return the text of an element of an XML file, None if the element has no text. Return False if there is no
    such element. Raise CommandError if the file cannot be read or is no XML.

    CLI Example:

        salt '*' xml.get_value /srv/app.xml ".//port"
    """
    found = _parsed(ctx, file).find(element)
    return False if found is None else found.text


def set_value(ctx: Context, file: str, element: str, value: object) -> bool:
    """Set the text of an element of an XML file. Return True, False if there is no such element. Raise CommandError
    if the file cannot be read or is no XML.

    CLI Example:

        salt '*' xml.set_value /srv/app.xml ".//port" 8080
    """
    tree = _parsed(ctx, file)
    found = tree.find(element)
    if found is None:
        return False
    found.text = str(value)
    _write(ctx, file, tree)
    return True


def get_attribute(ctx: Context, file: str, element: str) -> dict[str, str] | bool:
    """Return the attributes of an element of an XML file as a map. Return False if there is no such element.

    CLI Example:

        salt '*' xml.get_attribute /srv/app.xml ".//server[@id='1']"
    """
    found = _parsed(ctx, file).find(element)
    return False if found is None else dict(found.attrib)


def set_attribute(ctx: Context, file: str, element: str, key: str, value: object) -> bool:
    """Set an attribute of an element of an XML file. Return True, False if there is no such element.

    CLI Example:

        salt '*' xml.set_attribute /srv/app.xml ".//server[@id='1']" port 8080
    """
    tree = _parsed(ctx, file)
    found = tree.find(element)
    if found is None:
        return False
    found.set(key, str(value))
    _write(ctx, file, tree)
    return True


def _parsed(ctx: Context, file: str) -> ET.ElementTree[ET.Element]:
    try:
        data = ctx.host.path(file).read_bytes()
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error
    if b"<!ENTITY" in data:
        # Entities of entities grow to gigabytes.
        raise CommandError(f"{file}: defines entities, which are not read")
    try:
        return ET.ElementTree(ET.fromstring(data))
    except ET.ParseError as error:
        raise CommandError(f"{file}: no well-formed XML: {error}") from error


def _write(ctx: Context, file: str, tree: ET.ElementTree[ET.Element]) -> None:
    buffer = io.BytesIO()
    tree.write(buffer)
    managed_file.replace(ctx.host, ctx.host.path(file), buffer.getvalue(), Attributes())
