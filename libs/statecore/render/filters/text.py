"""Jinja filters for single values: YAML and JSON, regular expressions, digests, times, names."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import jinja2
import yaml
from markupsafe import Markup

from statecore.model.lazy import lazy_module
from statecore.render import yaml as sls_yaml

if TYPE_CHECKING:
    from statecore.render.filters import xml_text
else:
    # Imports Python's XML parser, and few templates write XML.
    xml_text = lazy_module("statecore.render.filters.xml_text")

#: Salt's UUID namespace for the filter ``uuid``.
_NAMESPACE = "91633ebf-1c86-5e33-935a-28061f4b480e"

#: Accepted formats of dates. ISO 8601 is tried first; a number is seconds since the epoch.
_TIMES = (
    "%Y/%m/%d",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%b %d %Y",
    "%b %d, %Y",
    "%d %b %Y",
    "%B %d %Y",
    "%B %d, %Y",
    "%d %B %Y",
    "%d.%m.%Y",
)


def _plain(value: object) -> object:
    """Return the data with all maps as dict and all sequences as list, which YAML and JSON can write."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value


def yaml_text(value: object, flow_style: bool = True) -> Markup:
    """Return the value as YAML, by default on one line (flow style), to be inserted into an SLS."""
    text = yaml.safe_dump(_plain(value), default_flow_style=flow_style, allow_unicode=True, width=2**30)
    # As in Salt, the result is Markup: text that is added to it is escaped.
    return Markup(text.strip().removesuffix("\n...").strip())


def yaml_encode(value: object) -> str:
    """Return a scalar as YAML writes it, quoted if necessary. Raises TypeError for maps and lists."""
    if isinstance(value, Mapping | list | tuple):
        raise TypeError("yaml_encode takes a single value")
    return yaml_dquote(value) if isinstance(value, str) else yaml_text(value)


def yaml_dquote(text: object) -> str:
    """Return the text in double quotes, escaped for YAML."""
    return yaml.safe_dump(str(text), default_style='"', width=2**30, allow_unicode=True).strip()


def yaml_squote(text: object) -> str:
    """Return the text in single quotes, escaped for YAML."""
    return yaml.safe_dump(str(text), default_style="'", width=2**30, allow_unicode=True).strip()


def json_text(value: object, sort_keys: bool = True, indent: int | None = None) -> Markup:
    """Return the value as JSON."""
    return Markup(json.dumps(_plain(value), sort_keys=sort_keys, indent=indent, ensure_ascii=False))


def json_for_html(value: object, indent: int | None = None, **options: object) -> str:
    """Return the value as JSON for use in HTML: ``<``, ``>``, ``&``, ``'`` and non-ASCII characters are escaped."""
    write: Callable[..., str] = json.dumps
    written = write(_plain(value), indent=indent, **{"ensure_ascii": True, **options})
    return re.sub("[<>&']", lambda found: f"\\u{ord(found[0]):04x}", written)


def to_bool(value: object) -> bool:
    """Return Salt's truth value: True for yes, true, 1, for numbers above zero and for collections that are not
    empty.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.lower() in ("yes", "1", "true")
    if isinstance(value, int):
        return value > 0
    return bool(value) if isinstance(value, list | dict | set) else False


def _groups(match: re.Match[str] | None) -> tuple[object, ...] | None:
    return (match.groups() or (match.group(),)) if match else None


def _flags(ignorecase: bool, multiline: bool) -> int:
    return (re.IGNORECASE if ignorecase else 0) | (re.MULTILINE if multiline else 0)


def regex_search(
    text: str, pattern: str, ignorecase: bool = False, multiline: bool = False
) -> tuple[object, ...] | None:
    """Return the groups of the first match anywhere in the text, or None."""
    return _groups(re.search(pattern, text, _flags(ignorecase, multiline)))


def regex_match(
    text: str, pattern: str, ignorecase: bool = False, multiline: bool = False
) -> tuple[object, ...] | None:
    """Return the groups of a match at the beginning of the text, or None."""
    return _groups(re.match(pattern, text, _flags(ignorecase, multiline)))


def regex_replace(text: str, pattern: str, repl: str, ignorecase: bool = False, multiline: bool = False) -> str:
    """Return the text with every match replaced."""
    return re.sub(pattern, repl, text, flags=_flags(ignorecase, multiline))


def strftime(value: object, form: str = "%Y-%m-%d") -> str:
    """Return a time in the given format. The time is seconds since the epoch, a text, a datetime, or empty for now."""
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, int | float):
        moment = datetime.fromtimestamp(value, UTC)
    elif str(value).replace(".", "", 1).isdecimal():
        moment = datetime.fromtimestamp(float(str(value)), UTC)
    else:
        moment = _moment(str(value)) if value else datetime.now(UTC)
    return moment.strftime(form)


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    for form in _TIMES:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    raise ValueError(f"strftime cannot parse the time '{text}'; write it in ISO 8601 (2024-12-31T23:59:59)")


def digest(name: str) -> Callable[[object], str]:
    """Return a filter that returns the hexadecimal digest of a text."""

    def filtered(text: object) -> str:
        data = text if isinstance(text, bytes) else str(text).encode()
        return hashlib.new(name, data).hexdigest()

    return filtered


def base64_encode(text: object) -> str:
    """Return the base64 encoding of a text."""
    return base64.b64encode(text if isinstance(text, bytes) else str(text).encode()).decode()


def base64_decode(text: str | bytes) -> str:
    """Return the text that a base64 text encodes."""
    return base64.b64decode(text).decode()


def method_call(value: object, method: str, *args: object, **kwargs: object) -> object:
    """Return the result of a public method of the value, or None if the value has no such method."""
    if method.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"'{method}' is not a public method")
    found = getattr(value, method, None)
    return found(*args, **kwargs) if found is not None else None


def to_num(value: str | float) -> str | float:
    """Return the number that a text represents, else the value unchanged."""
    try:
        return int(value)
    except (TypeError, ValueError):
        try:
            return float(value)
        except (TypeError, ValueError):
            return value


def xml(value: object) -> Markup:
    """Return maps and lists as XML.

    Scalars in a map become attributes of its element, maps and lists become child elements.
    """
    return Markup(xml_text.xml(value))


def load_yaml(text: object) -> object:
    """Return the data of a YAML text. Raises TemplateRuntimeError."""
    try:
        return sls_yaml.load(str(text))
    except sls_yaml.YamlFault as fault:
        where = f" in line {fault.line} of it" if fault.line else ""
        where += f", the first one in line {fault.earlier}" if fault.earlier else ""
        raise jinja2.TemplateRuntimeError(f"Encountered error loading yaml: {fault}{where}") from fault


def load_json(text: object) -> object:
    """Return the data of a JSON text. Raises TemplateRuntimeError."""
    try:
        return json.loads(str(text))
    except ValueError as error:
        raise jinja2.TemplateRuntimeError(f"Unable to load json from {text}: {error}") from error


def sls_parameters(value: Mapping[object, object], flow_style: bool = False) -> Markup:
    """Return a map as a YAML list of arguments, as a state in an SLS has."""
    return yaml_text([{key: item} for key, item in value.items()], flow_style)


def hmac_text(text: object, secret: str) -> str:
    """Return the HMAC-SHA256 of a text, hexadecimal."""
    return hmac.new(_bytes(secret), _bytes(text), hashlib.sha256).hexdigest()


def hmac_fits(text: object, secret: str, challenge: str) -> bool:
    """Return True if ``challenge`` is the base64 of the text's HMAC-SHA256."""
    own = base64.b64encode(hmac.new(_bytes(secret), _bytes(text), hashlib.sha256).digest())
    return hmac.compare_digest(own, _bytes(challenge))


def _bytes(text: object) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode()


def uuid_of(value: object) -> str:
    """Return the version 5 UUID of the value. Equal values have equal UUIDs."""
    # Imported here, as pprint below: few templates use it, and every process would load the module.
    import uuid

    return str(uuid.uuid5(uuid.UUID(_NAMESPACE), str(value)))


def to_snake_case(text: str) -> str:
    """Return the name in snake case: camelCase becomes camel_case, HTTPServer becomes http_server."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[^_])(?=[A-Z][a-z])", "_", text).lower()


def to_camelcase(text: str, uppercamel: bool = False) -> str:
    """Return the snake_case name as snakeCase, or as SnakeCase with ``uppercamel``."""
    first, *rest = text.split("_")
    return (first.capitalize() if uppercamel else first) + "".join(word.capitalize() for word in rest)


def human_to_bytes(size: object, default_unit: str = "B", handle_metric: bool = False) -> int:
    """Return the number of bytes in a size such as ``2G``, ``30MB`` or ``64KiB``; 0 if it is not a size.

    Units are powers of 1024. With ``handle_metric``, ``MB`` and the like are powers of 1000.
    """
    found = re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+)\s*(.*)", str(size).strip())
    if found is None:
        return 0
    unit = (found[2] or default_unit).lower()
    shape = re.fullmatch(r"([bkmgtpezy])(i?b)?", unit)
    if shape is None or unit in ("bb", "bib"):
        return 0
    power = "bkmgtpezy".index(shape[1])
    factor = 1000**power if handle_metric and shape[2] == "b" else 1024**power
    return int((float(found[1]) if "." in found[1] else int(found[1])) * factor)


def is_hex(text: object) -> bool:
    """Return True if the text is a hexadecimal number."""
    if not isinstance(text, str | bytes | bytearray):
        return False
    try:
        int(text, 16)
    except ValueError:
        return False
    return True


def allowed(
    value: object, whitelist: str | Iterable[object] | None = None, blacklist: str | Iterable[object] | None = None
) -> bool:
    """Return True if the value matches the whitelist (if there is one) and does not match the blacklist.

    The entries are globs or regular expressions.
    """

    def named(globs: str | Iterable[object]) -> bool:
        listed = [globs] if isinstance(globs, str) else globs
        return any(
            value == each or fnmatchcase(str(value), str(each)) or _matched(str(each), str(value)) for each in listed
        )

    return (not whitelist or named(whitelist)) and not (blacklist and named(blacklist))


def _matched(pattern: str, text: str) -> bool:
    try:
        return re.fullmatch(pattern, text) is not None
    except re.error:
        return False


def python_text(value: object) -> Markup:
    """Return the value as Python literal, on several lines if it is long."""
    import pprint

    return Markup(pprint.pformat(_plain(value) if isinstance(value, Mapping) else value).strip())


def joined_path(*parts: object) -> str:
    """Return the parts joined to one normalized path.

    A part that begins with a slash is still appended to the previous one.
    """
    first, *rest = (os.path.normpath(str(part)) for part in parts)
    return os.path.normpath(os.path.join(first, *(part.lstrip("/") for part in rest)))


def to_bytes(text: object, encoding: str = "utf-8", errors: str = "strict") -> bytes:
    """Return the text as bytes. Raises TypeError for other types."""
    if isinstance(text, bytes | bytearray):
        return bytes(text)
    if not isinstance(text, str):
        raise TypeError(f"expected str, bytes, or bytearray not {type(text)}")
    return text.encode(encoding, errors)


def undefined_in(value: object, seen: set[int]) -> list[jinja2.Undefined]:
    """List of the undefined values in a value, at any depth."""
    if isinstance(value, jinja2.StrictUndefined):
        return [value]
    if not isinstance(value, Mapping | list | tuple) or id(value) in seen:
        return []
    seen.add(id(value))
    items = value.values() if isinstance(value, Mapping) else value
    return [each for item in items for each in undefined_in(item, seen)]


def strict(function: Callable[..., object]) -> Callable[..., object]:
    """Return the filter wrapped so that it returns undefined for data that contains an undefined value."""

    @functools.wraps(function)
    def filtered(value: object, *args: object, **kwargs: object) -> object:
        found = undefined_in(value, set())
        if found:
            return jinja2.StrictUndefined("\n".join(each._undefined_message for each in found))
        return function(value, *args, **kwargs)

    return filtered


class _Printed(dict[object, object]):
    """A map whose printed form is valid YAML."""

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{key!r}: {_scalar(value)}" for key, value in self.items()) + "}"

    __str__ = __repr__


def _scalar(value: object) -> str:
    # YAML does not read escapes (\n) in single quotes, as repr writes them. In double quotes YAML and Python agree.
    return yaml_dquote(value) if isinstance(value, str) and any(char in value for char in "\n\r\t") else repr(value)


def printable(value: object) -> object:
    """Return the value in the form that ``{{ value }}`` prints: maps print as YAML. Jinja calls it as ``finalize``."""
    if type(value) is str or type(value) is int:
        # Fast path for most printed values: the isinstance check below is slow.
        return value
    if isinstance(value, Mapping):
        return _Printed((key, printable(item)) for key, item in value.items())
    kind = type(value)
    if (kind is list or kind is tuple or kind is set) and isinstance(value, list | tuple | set):
        return kind(printable(item) for item in value)
    return value
