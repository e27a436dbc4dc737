"""Values of minions and of pillar in patterns of the configuration: paths, addresses, keys.

A value is data. It never becomes a format, an option of a program, or more than one segment of a path: a minion chooses its
own grains, and pillar may repeat them. The pattern is the operator's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping

from statecore.model.errors import CommandError

#: Categories of characters that end a line, hide text or have no meaning: control, format, surrogate, line and paragraph
#: separator.
_REFUSED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})

#: A field of a brace pattern: ``{minion}``, ``{grains[os]}``, ``{pillar[a][b]}``; or a doubled brace.
_BRACES = re.compile(r"\{\{|\}\}|\{(?P<name>\w+)(?P<keys>(?:\[[^\[\]{}]*\])*)\}|(?P<wrong>[{}])")

#: A field of a percent pattern: ``%(minion_id)s``; or a doubled percent sign.
_PERCENT = re.compile(r"%%|%\((?P<name>\w+)\)s|(?P<wrong>%)")


class UnsafeValue(CommandError):
    """Error: a value would change what the pattern means, instead of filling its place."""


class MissingValue(CommandError):
    """Error: a pattern names a value that does not exist."""


class MalformedPattern(CommandError):
    """Error: a pattern of the configuration has another form of field."""


def plain_text(value: object, what: str) -> str:
    """Return a text, number or bool as text without control characters. ``what`` names the value in errors.

    Raises UnsafeValue for an empty text, control characters, lists and maps.
    """
    if not isinstance(value, str | int | float):
        raise UnsafeValue(f"{what} is a {type(value).__name__}, where one text is needed")
    text = str(value)
    if not text:
        raise UnsafeValue(f"{what} is empty")
    if any(unicodedata.category(character) in _REFUSED for character in text):
        raise UnsafeValue(f"{what} has control characters: {ascii(text)[:80]}")
    return text


def segment(value: object, what: str) -> str:
    """Return a value as one segment of a path. Raises UnsafeValue as ``plain_text``, and for a text that is ``.`` or ``..``
    or has a slash or a backslash.
    """
    return path_value(value, what, slashes=False)


def path_value(value: object, what: str, *, slashes: bool) -> str:
    """Return a value as a part of a path: one segment, or with ``slashes`` a relative path of several. No segment is empty,
    ``.`` or ``..``. Raises UnsafeValue.
    """
    text = plain_text(value, what)
    parts = text.split("/") if slashes else [text]
    if "\\" in text or not {"", ".", ".."}.isdisjoint(parts) or any("/" in part for part in parts):
        wanted = "a relative path without '..'" if slashes else "one name of a path, without slashes"
        raise UnsafeValue(f"{what} must be {wanted}, not {ascii(text)[:80]}")
    return text


def fields_of(pattern: str) -> list[str]:
    """Return the fields of a brace pattern, such as ``pillar[roles]``, in their order. Raises MalformedPattern."""
    return [found["name"] + found["keys"] for found in _matches(_BRACES, pattern) if found["name"]]


def filled(pattern: str, text_of: Callable[[str], str]) -> str:
    """Return a brace pattern with each field replaced by ``text_of(field)``; doubled braces become single ones. The texts are
    not searched for fields. Raises MalformedPattern.
    """
    return _replaced(_BRACES, pattern, text_of)


def percent_filled(pattern: str, text_of: Callable[[str], str]) -> str:
    """Return a pattern with each ``%(name)s`` replaced by ``text_of(name)``, as ``filled``. Raises MalformedPattern."""
    return _replaced(_PERCENT, pattern, text_of)


def value_of(field: str, values: Mapping[str, object]) -> object:
    """Return the value that a field such as ``pillar[a][0]`` names: items of maps by key, of lists by number, never
    attributes. Raises MissingValue.
    """
    name, *keys = [part.rstrip("]") for part in field.split("[")]
    found: object = values
    for key in (name, *keys):
        if isinstance(found, Mapping) and key in found:
            found = found[key]
        elif isinstance(found, Mapping | list) and key.isdecimal() and _has(found, int(key)):
            found = found[int(key)]
        else:
            raise MissingValue(f"there is no value {field}")
    return found


def _has(found: Mapping[object, object] | list[object], number: int) -> bool:
    return number in found if isinstance(found, Mapping) else number < len(found)


def _matches(form: re.Pattern[str], pattern: str) -> Iterator[re.Match[str]]:
    for found in form.finditer(pattern):
        if found["wrong"]:
            raise MalformedPattern(f"'{pattern}' is malformed at character {found.start() + 1}: '{found[0]}'")
        yield found


def _replaced(form: re.Pattern[str], pattern: str, text_of: Callable[[str], str]) -> str:
    pieces, at = [], 0
    for found in _matches(form, pattern):
        field = (found["name"] or "") + (found.groupdict().get("keys") or "")
        pieces += [pattern[at : found.start()], text_of(field) if field else found[0][0]]
        at = found.end()
    return "".join([*pieces, pattern[at:]])
