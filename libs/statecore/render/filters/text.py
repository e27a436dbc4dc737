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
from markupsafe import Markup

from statecore.model import yaml
from statecore.model.lazy import lazy_module
from statecore.model.regex import expression

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


#: Types of most values in data. A look-up of the type is ten times faster than ``isinstance`` with an abstract class.
_LEAVES = frozenset((str, int, bool, float, type(None)))


def _plain(value: object) -> object:
    """Return a copy of nested data with all maps as dict and all sequences as list, which YAML and JSON can write."""
    if type(value) in _LEAVES:
        return value
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value


def yaml_text(value: object, flow_style: bool = True) -> Markup:
    """Jinja filter ``yaml``: return a value as YAML, by default on one line (flow style), for use in an SLS."""
    text = yaml.dump(_plain(value), default_flow_style=flow_style, allow_unicode=True, width=2**30)
    # As in Salt, the result is Markup: text that is added to it is escaped.
    return Markup(text.strip().removesuffix("\n...").strip())


def yaml_encode(value: object) -> str:
    """Jinja filter: return a single value as YAML, quoted if necessary. Raise TypeError for maps and lists."""
    if isinstance(value, Mapping | list | tuple):
        raise TypeError("yaml_encode takes a single value")
    return yaml_dquote(value) if isinstance(value, str) else yaml_text(value)


def yaml_dquote(text: object) -> str:
    """Jinja filter: return a text in double quotes, escaped for YAML."""
    return yaml.dump(str(text), default_style='"', width=2**30, allow_unicode=True).strip()


def yaml_squote(text: object) -> str:
    """Jinja filter: return a text in single quotes, escaped for YAML."""
    return yaml.dump(str(text), default_style="'", width=2**30, allow_unicode=True).strip()


def json_text(value: object, sort_keys: bool = True, indent: int | None = None) -> Markup:
    """Jinja filter ``json``: return a value as JSON."""
    return Markup(json.dumps(_plain(value), sort_keys=sort_keys, indent=indent, ensure_ascii=False))


def json_for_html(value: object, indent: int | None = None, **options: object) -> str:
    """Jinja filter ``tojson``: return a value as JSON for HTML: ``<``, ``>``, ``&``, ``'`` and non-ASCII characters are
    escaped.
    """
    write: Callable[..., str] = json.dumps
    written = write(_plain(value), indent=indent, **{"ensure_ascii": True, **options})
    return re.sub("[<>&']", lambda found: f"\\u{ord(found[0]):04x}", written)


def to_bool(value: object) -> bool:
    """Jinja filter: return Salt's truth value of a value.

    True for the texts yes, true and 1, for numbers above zero, and for lists, maps and sets that are not empty.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.lower() in ("yes", "1", "true")
    if isinstance(value, int):
        return value > 0
    return bool(value) if isinstance(value, list | dict | set) else False


def _flags(ignorecase: bool, multiline: bool) -> int:
    return (re.IGNORECASE if ignorecase else 0) | (re.MULTILINE if multiline else 0)


def regex_search(txt: str, rgx: str, ignorecase: bool = False, multiline: bool = False) -> tuple[object, ...] | None:
    """Jinja filter: return a tuple of the groups of the first match of a regular expression anywhere in a text; None without a
    match.
    """
    return expression(rgx, _flags(ignorecase, multiline)).groups_of_search(txt)


def regex_match(txt: str, rgx: str, ignorecase: bool = False, multiline: bool = False) -> tuple[object, ...] | None:
    """Jinja filter: return a tuple of the groups of a match of a regular expression at the beginning of a text; None without a
    match.
    """
    return expression(rgx, _flags(ignorecase, multiline)).groups_of_match(txt)


def regex_replace(txt: str, rgx: str, val: str, ignorecase: bool = False, multiline: bool = False) -> str:
    """Jinja filter: return a text with every match of a regular expression replaced by the text ``val``.

    Raise TypeError if ``val`` is a function: it would be called with an object that is no data.
    """
    if callable(val):
        raise TypeError("regex_replace: the replacement is a function; give a text")
    return expression(rgx, _flags(ignorecase, multiline)).sub(val, txt)


def strftime(date: object = None, format: str = "%Y-%m-%d") -> str:
    """Jinja filter: return a time as text in the given format.

    The time is seconds since 1970, a datetime, a text such as an ISO 8601 date, or empty for the current time. Raise
    ValueError for other texts.
    """
    if isinstance(date, datetime):
        moment = date
    elif isinstance(date, int | float):
        moment = datetime.fromtimestamp(date, UTC)
    elif str(date).replace(".", "", 1).isdecimal():
        moment = datetime.fromtimestamp(float(str(date)), UTC)
    else:
        moment = _moment(str(date)) if date else datetime.now(UTC)
    return moment.strftime(format)


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
    """Return a Jinja filter that returns the hexadecimal digest of a text by the algorithm ``name`` ("md5", "sha256"
    ...).
    """

    def filtered(text: object) -> str:
        data = text if isinstance(text, bytes) else str(text).encode()
        return hashlib.new(name, data).hexdigest()

    return filtered


def base64_encode(text: object) -> str:
    """Jinja filter: return a text encoded as base64."""
    return base64.b64encode(text if isinstance(text, bytes) else str(text).encode()).decode()


def base64_decode(text: str | bytes) -> str:
    """Jinja filter: return the text that base64 text encodes."""
    return base64.b64decode(text).decode()


def to_num(value: str | float) -> str | float:
    """Jinja filter: return the number that a text represents; other values are returned unchanged."""
    try:
        return int(value)
    except (TypeError, ValueError):
        try:
            return float(value)
        except (TypeError, ValueError):
            return value


def xml(value: object) -> Markup:
    """Jinja filter: return nested maps and lists as XML text.

    Scalars in a map become attributes of its element, maps and lists become child elements.
    """
    return Markup(xml_text.xml(value))


def load_yaml(text: object) -> object:
    """Jinja filter: return the data of a YAML text. Raise TemplateRuntimeError with the line if it is not YAML."""
    try:
        return yaml.load(str(text), yaml.SLS)
    except yaml.YamlFault as fault:
        where = f" in line {fault.line} of it" if fault.line else ""
        where += f", the first one in line {fault.earlier}" if fault.earlier else ""
        raise jinja2.TemplateRuntimeError(f"Encountered error loading yaml: {fault}{where}") from fault


def load_json(text: object) -> object:
    """Jinja filter: return the data of a JSON text. Raise TemplateRuntimeError if it is not JSON."""
    try:
        return json.loads(str(text))
    except ValueError as error:
        raise jinja2.TemplateRuntimeError(f"Unable to load json from {text}: {error}") from error


def sls_parameters(value: Mapping[object, object], flow_style: bool = False) -> Markup:
    """Jinja filter ``dict_to_sls_yaml_params``: return a map as the YAML list of arguments that a state in an SLS has."""
    return yaml_text([{key: item} for key, item in value.items()], flow_style)


def hmac_text(string: object, shared_secret: str) -> str:
    """Jinja filter ``hmac_compute``: return the hexadecimal HMAC-SHA256 of a text with the key ``shared_secret``."""
    return hmac.new(_bytes(shared_secret), _bytes(string), hashlib.sha256).hexdigest()


def hmac_matches(string: object, shared_secret: str, challenge_hmac: str) -> bool:
    """Jinja filter ``hmac``: return whether ``challenge_hmac`` is the base64 form of the HMAC-SHA256 of a text with the key
    ``shared_secret``.
    """
    own = base64.b64encode(hmac.new(_bytes(shared_secret), _bytes(string), hashlib.sha256).digest())
    return hmac.compare_digest(own, _bytes(challenge_hmac))


def _bytes(text: object) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode()


def uuid_of(value: object) -> str:
    """Jinja filter ``uuid``: return the version 5 UUID of a value. Equal values have equal UUIDs."""
    # Imported here, as pprint below: few templates use it, and every process would load the module.
    import uuid

    return str(uuid.uuid5(uuid.UUID(_NAMESPACE), str(value)))


def to_snake_case(text: str) -> str:
    """Jinja filter: return a name in snake case: camelCase becomes camel_case, HTTPServer becomes http_server."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[^_])(?=[A-Z][a-z])", "_", text).lower()


def to_camelcase(text: str, uppercamel: bool = False) -> str:
    """Jinja filter: return a snake_case name as snakeCase, or as SnakeCase with ``uppercamel``."""
    first, *rest = text.split("_")
    return (first.capitalize() if uppercamel else first) + "".join(word.capitalize() for word in rest)


def human_to_bytes(size: object, default_unit: str = "B", handle_metric: bool = False) -> int:
    """Jinja filter: return the number of bytes of a size such as ``2G``, ``30MB`` or ``64KiB``; 0 if it is not a size.

    Units are powers of 1024. With ``handle_metric``, ``MB`` and similar units are powers of 1000.
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
    """Jinja filter: return whether a text is a hexadecimal number."""
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
    """Jinja filter ``check_whitelist_blacklist``: return whether a value matches the whitelist and does not match the
    blacklist.

    The items of both lists are globs or regular expressions. A missing list is not checked.
    """

    def named(globs: str | Iterable[object]) -> bool:
        listed = [globs] if isinstance(globs, str) else globs
        return any(
            value == each or fnmatchcase(str(value), str(each)) or _matched(str(each), str(value)) for each in listed
        )

    return (not whitelist or named(whitelist)) and not (blacklist and named(blacklist))


def _matched(pattern: str, text: str) -> bool:
    try:
        return expression(pattern).fullmatch(text) is not None
    except re.error:
        return False


def python_text(value: object) -> Markup:
    """Jinja filter ``python``: return a value as a Python literal, on several lines if it is long."""
    import pprint

    return Markup(pprint.pformat(_plain(value) if isinstance(value, Mapping) else value).strip())


def path_join(*parts: object, use_posixpath: bool = False) -> str:
    """Jinja filter ``path_join``: return the parts joined to one normalized path.

    A part that begins with a slash is appended too: ``/a`` and ``/b`` give ``/a/b``. ``use_posixpath`` has no effect,
    because all paths are POSIX paths.
    """
    first, *rest = (os.path.normpath(str(part)) for part in parts)
    return os.path.normpath(os.path.join(first, *(part.lstrip("/") for part in rest)))


def to_bytes(text: object, encoding: str | None = None, errors: str = "strict") -> bytes:
    """Jinja filter: return a text encoded as bytes; bytes are returned unchanged. Raise TypeError for other types."""
    if isinstance(text, bytes | bytearray):
        return bytes(text)
    if not isinstance(text, str):
        raise TypeError(f"expected str, bytes, or bytearray not {type(text)}")
    return text.encode(encoding or "utf-8", errors)


def undefined_in(value: object, seen: set[int]) -> list[jinja2.Undefined]:
    """Return the list of Jinja's undefined values inside nested maps and lists; [] if there are none.

    ``seen``: ids of the containers that are already searched; new ones are added.
    """
    if type(value) in _LEAVES:
        return []
    if isinstance(value, jinja2.StrictUndefined):
        return [value]
    if not isinstance(value, Mapping | list | tuple) or id(value) in seen:
        return []
    seen.add(id(value))
    items = value.values() if isinstance(value, Mapping) else value
    return [each for item in items for each in undefined_in(item, seen)]


def strict(function: Callable[..., object]) -> Callable[..., object]:
    """Return the Jinja filter with a check of its first argument.

    If that argument is or contains an undefined value, the filter is not called, and an undefined value with
    the same message is returned.
    """

    @functools.wraps(function)
    def filtered(value: object, *args: object, **kwargs: object) -> object:
        found = undefined_in(value, set())
        if found:
            return jinja2.StrictUndefined("\n".join(each._undefined_message for each in found))
        return function(value, *args, **kwargs)

    return filtered


class _Printed(dict[object, object]):
    """A map that a template prints as valid YAML."""

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{key!r}: {_scalar(value)}" for key, value in self.items()) + "}"

    __str__ = __repr__


def _scalar(value: object) -> str:
    # YAML does not read escapes (\n) in single quotes, as repr writes them. In double quotes YAML and Python agree.
    return yaml_dquote(value) if isinstance(value, str) and any(char in value for char in "\n\r\t") else repr(value)


def printable(value: object) -> object:
    """Return a value in the form that ``{{ value }}`` prints in a template: maps are printed as YAML. Jinja calls it as
    ``finalize``.
    """
    if type(value) is str or type(value) is int:
        # Fast path for most printed values: the isinstance check below is slow.
        return value
    if isinstance(value, Mapping):
        return _Printed((key, printable(item)) for key, item in value.items())
    kind = type(value)
    if (kind is list or kind is tuple or kind is set) and isinstance(value, list | tuple | set):
        return kind(printable(item) for item in value)
    return value
