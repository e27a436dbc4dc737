"""Jinja filters over one value: YAML and JSON, regular expressions, digests, times, names."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json
import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

import jinja2
import yaml
from markupsafe import Markup

from statecore.model.lazy import loaded
from statecore.render import yaml as sls_yaml

#: Salt's namespace of the filter ``uuid``.
_NAMESPACE = "91633ebf-1c86-5e33-935a-28061f4b480e"

#: Times as people write them; ISO 8601 is tried first, a number is seconds since the epoch.
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


def _plain(value: Any) -> Any:
    """Data without the types that YAML and JSON do not know."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value


def yaml_text(value: Any, flow_style: bool = True) -> Markup:
    """YAML on one line (flow style), fit to be put into an SLS."""
    text = yaml.safe_dump(_plain(value), default_flow_style=flow_style, allow_unicode=True, width=2**30)
    # Salt says that it is markup: what is added to it is escaped.
    return Markup(text.strip().removesuffix("\n...").strip())


def yaml_encode(value: Any) -> str:
    """A scalar as YAML writes it: quoted where it must be."""
    if isinstance(value, Mapping | list | tuple):
        raise TypeError("yaml_encode takes a single value")
    return yaml_dquote(value) if isinstance(value, str) else yaml_text(value)


def yaml_dquote(text: Any) -> str:
    """A text in double quotes, escaped as YAML does."""
    return yaml.safe_dump(str(text), default_style='"', width=2**30, allow_unicode=True).strip()


def yaml_squote(text: Any) -> str:
    """A text in single quotes, escaped as YAML does."""
    return yaml.safe_dump(str(text), default_style="'", width=2**30, allow_unicode=True).strip()


def json_text(value: Any, sort_keys: bool = True, indent: int | None = None) -> Markup:
    """JSON."""
    return Markup(json.dumps(_plain(value), sort_keys=sort_keys, indent=indent, ensure_ascii=False))


def json_for_html(value: Any, indent: int | None = None, **options: Any) -> str:
    """JSON that may stand in HTML: <, >, & and ' are escaped, and what is not ASCII."""
    written = json.dumps(_plain(value), indent=indent, **{"ensure_ascii": True, **options})
    return re.sub("[<>&']", lambda found: f"\\u{ord(found[0]):04x}", written)


def to_bool(value: Any) -> bool:
    """Salt's notion of true: yes, true, 1, on, and numbers above zero."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.lower() in ("yes", "1", "true")
    if isinstance(value, int):
        return value > 0
    return bool(value) if isinstance(value, list | dict | set) else False


def _groups(match: re.Match[str] | None) -> tuple[Any, ...] | None:
    return (match.groups() or (match.group(),)) if match else None


def _flags(ignorecase: bool, multiline: bool) -> int:
    return (re.IGNORECASE if ignorecase else 0) | (re.MULTILINE if multiline else 0)


def regex_search(text: str, pattern: str, ignorecase: bool = False, multiline: bool = False) -> tuple[Any, ...] | None:
    """Groups of the first match anywhere, None without one."""
    return _groups(re.search(pattern, text, _flags(ignorecase, multiline)))


def regex_match(text: str, pattern: str, ignorecase: bool = False, multiline: bool = False) -> tuple[Any, ...] | None:
    """Groups of a match at the beginning, None without one."""
    return _groups(re.match(pattern, text, _flags(ignorecase, multiline)))


def regex_replace(text: str, pattern: str, repl: str, ignorecase: bool = False, multiline: bool = False) -> str:
    """Every match replaced."""
    return re.sub(pattern, repl, text, flags=_flags(ignorecase, multiline))


def strftime(value: Any, form: str = "%Y-%m-%d") -> str:
    """A time (seconds, ISO text, datetime) in a format."""
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, int | float) or str(value).replace(".", "", 1).isdecimal():
        moment = datetime.fromtimestamp(float(value), UTC)
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
    raise ValueError(f"'{text}' is no time that strftime understands; ISO 8601 is")


def digest(name: str) -> Callable[[Any], str]:
    """A filter that gives the hexadecimal digest of a text."""

    def filtered(text: Any) -> str:
        data = text if isinstance(text, bytes) else str(text).encode()
        return hashlib.new(name, data).hexdigest()

    return filtered


def base64_encode(text: Any) -> str:
    """Base64 of a text."""
    return base64.b64encode(text if isinstance(text, bytes) else str(text).encode()).decode()


def base64_decode(text: Any) -> str:
    """The text behind base64."""
    return base64.b64decode(text).decode()


def method_call(value: Any, method: str, *args: Any, **kwargs: Any) -> Any:
    """The result of a public method of the value."""
    if method.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"'{method}' is not a public method")
    found = getattr(value, method, None)
    return found(*args, **kwargs) if found is not None else None


def to_num(value: Any) -> Any:
    """A number where the text is one."""
    try:
        return int(value)
    except (TypeError, ValueError):
        try:
            return float(value)
        except (TypeError, ValueError):
            return value


def xml(value: Any) -> Markup:
    """XML of maps and lists: scalars of a map are attributes of its element, maps and lists are elements in it."""
    # Hardly a template needs it, and each would load Python's parser of XML.
    text: str = loaded("statecore.render.filters.xml_text", "xml")(value)
    return Markup(text)


def load_yaml(text: Any) -> Any:
    """The data of a YAML text."""
    try:
        return sls_yaml.load(str(text))
    except sls_yaml.YamlFault as fault:
        where = f" in line {fault.line} of it" if fault.line else ""
        where += f", the first one in line {fault.earlier}" if fault.earlier else ""
        raise jinja2.TemplateRuntimeError(f"Encountered error loading yaml: {fault}{where}") from fault


def load_json(text: Any) -> Any:
    """The data of a JSON text."""
    try:
        return json.loads(str(text))
    except ValueError as error:
        raise jinja2.TemplateRuntimeError(f"Unable to load json from {text}: {error}") from error


def sls_parameters(value: Any, flow_style: bool = False) -> Markup:
    """A map as the list of arguments that a state takes."""
    return yaml_text([{key: item} for key, item in value.items()], flow_style)


def hmac_text(text: Any, secret: str) -> str:
    """HMAC-SHA256, hexadecimal."""
    return hmac.new(_bytes(secret), _bytes(text), hashlib.sha256).hexdigest()


def hmac_fits(text: Any, secret: str, challenge: str) -> bool:
    """Whether a challenge is the base64 of the text's HMAC-SHA256."""
    own = base64.b64encode(hmac.new(_bytes(secret), _bytes(text), hashlib.sha256).digest())
    return hmac.compare_digest(own, _bytes(challenge))


def _bytes(text: Any) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode()


def uuid_of(value: Any) -> str:
    """A UUID that depends on the value alone."""
    # Here, as pprint below: few templates use it, and all would load it.
    import uuid

    return str(uuid.uuid5(uuid.UUID(_NAMESPACE), str(value)))


def to_snake_case(text: str) -> str:
    """camelCase and HTTPServer as camel_case and http_server."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[^_])(?=[A-Z][a-z])", "_", text).lower()


def to_camelcase(text: str, uppercamel: bool = False) -> str:
    """snake_case as snakeCase, or SnakeCase."""
    first, *rest = text.split("_")
    return (first.capitalize() if uppercamel else first) + "".join(word.capitalize() for word in rest)


def human_to_bytes(size: Any, default_unit: str = "B", handle_metric: bool = False) -> int:
    """Bytes of ``2G``, ``30MB``, ``64KiB``; MB is a power of ten with ``handle_metric``. 0 for what is no size."""
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


def is_hex(text: Any) -> bool:
    """Whether a text is a hexadecimal number."""
    try:
        int(text, 16)
    except (TypeError, ValueError):
        return False
    return True


def allowed(value: Any, whitelist: Any = None, blacklist: Any = None) -> bool:
    """Whether globs or patterns of the one list name a value, and those of the other do not."""

    def named(globs: Any) -> bool:
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


def python_text(value: Any) -> Markup:
    """The value as Python writes it, on more lines where it is long."""
    import pprint

    return Markup(pprint.pformat(_plain(value) if isinstance(value, Mapping) else value).strip())


def joined_path(*parts: Any) -> str:
    """Parts as one path without ``..``, each below the one before though it may begin with a slash."""
    first, *rest = (os.path.normpath(str(part)) for part in parts)
    return os.path.normpath(os.path.join(first, *(part.lstrip("/") for part in rest)))


def to_bytes(text: Any, encoding: str = "utf-8", errors: str = "strict") -> bytes:
    """A text as bytes. Raises TypeError for what is no text."""
    if isinstance(text, bytes | bytearray):
        return bytes(text)
    if not isinstance(text, str):
        raise TypeError(f"expected str, bytes, or bytearray not {type(text)}")
    return text.encode(encoding, errors)


def undefined_in(value: Any, seen: set[int]) -> list[jinja2.Undefined]:
    """What is undefined in a value, as deep as it goes."""
    if isinstance(value, jinja2.StrictUndefined):
        return [value]
    if not isinstance(value, Mapping | list | tuple) or id(value) in seen:
        return []
    seen.add(id(value))
    items = value.values() if isinstance(value, Mapping) else value
    return [each for item in items for each in undefined_in(item, seen)]


def strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """The filter, undefined for data in which something is."""

    @functools.wraps(function)
    def filtered(value: Any, *args: Any, **kwargs: Any) -> Any:
        found = undefined_in(value, set())
        if found:
            return jinja2.StrictUndefined("\n".join(each._undefined_message for each in found))
        return function(value, *args, **kwargs)

    return filtered


class _Printed(dict[Any, Any]):
    """A map that prints as YAML reads it back."""

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{key!r}: {_scalar(value)}" for key, value in self.items()) + "}"

    __str__ = __repr__


def _scalar(value: Any) -> str:
    # What repr escapes in single quotes, YAML reads as written; in double quotes both agree.
    return yaml_dquote(value) if isinstance(value, str) and any(char in value for char in "\n\r\t") else repr(value)


def printable(value: Any) -> Any:
    """What ``{{ value }}`` prints: maps, and those in lists, so that YAML reads them back. Jinja's ``finalize``."""
    if type(value) is str or type(value) is int:
        # Nearly all that is printed; what follows asks an abstract class.
        return value
    if isinstance(value, Mapping):
        return _Printed((key, printable(item)) for key, item in value.items())
    if type(value) in (list, tuple, set):
        return type(value)(printable(item) for item in value)
    return value
