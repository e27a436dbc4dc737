"""Jinja filters and tests that Salt has and formulas use: two tables."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shlex
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import jinja2
import yaml


def _plain(value: Any) -> Any:
    """Data without the types that YAML and JSON do not know."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value


def yaml_text(value: Any, flow_style: bool = True) -> str:
    """YAML on one line (flow style), fit to be put into an SLS."""
    text = yaml.safe_dump(
        _plain(value), default_flow_style=flow_style, allow_unicode=True, width=2**30, sort_keys=False
    )
    return text.strip().removesuffix("\n...").strip()


def yaml_encode(value: Any) -> str:
    """A scalar as YAML writes it: quoted where it must be."""
    if isinstance(value, Mapping | list | tuple):
        raise TypeError("yaml_encode takes a single value")
    return yaml_text(value)


def yaml_dquote(text: Any) -> str:
    """A text in double quotes, escaped as YAML does."""
    return yaml.safe_dump(str(text), default_style='"', width=2**30, allow_unicode=True).strip()


def yaml_squote(text: Any) -> str:
    """A text in single quotes, escaped as YAML does."""
    return yaml.safe_dump(str(text), default_style="'", width=2**30, allow_unicode=True).strip()


def json_text(value: Any, sort_keys: bool = True, indent: int | None = None) -> str:
    """JSON."""
    return json.dumps(_plain(value), sort_keys=sort_keys, indent=indent)


def to_bool(value: Any) -> bool:
    """Salt's notion of true: yes, true, 1, on, and numbers above zero."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.lower() in ("yes", "1", "true")
    if isinstance(value, int):
        return value > 0
    return bool(value) if isinstance(value, Iterable) else False


def _groups(match: re.Match[str] | None) -> tuple[Any, ...] | None:
    return match.groups() if match else None


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


def unique(values: Any) -> Any:
    """Values without repetition, in order; sets stay sets."""
    if isinstance(values, set | frozenset):
        return set(values)
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def sequence(value: Any) -> Any:
    """The value if it is a sequence, else a list of it."""
    return value if isinstance(value, list | tuple | set | frozenset) else [value]


def intersect(left: Any, right: Any) -> list[Any]:
    """Values of both."""
    return unique([value for value in left if value in right])  # type: ignore[no-any-return]


def difference(left: Any, right: Any) -> list[Any]:
    """Values of the left that the right has not."""
    return unique([value for value in left if value not in right])  # type: ignore[no-any-return]


def union(left: Any, right: Any) -> list[Any]:
    """Values of either."""
    return unique([*left, *right])  # type: ignore[no-any-return]


def symmetric_difference(left: Any, right: Any) -> list[Any]:
    """Values of one of them only."""
    return [value for value in union(left, right) if value not in intersect(left, right)]


def strftime(value: Any, form: str = "%Y-%m-%d") -> str:
    """A time (seconds, ISO text, datetime) in a format."""
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, int | float) or str(value).replace(".", "", 1).isdecimal():
        moment = datetime.fromtimestamp(float(value), UTC)
    else:
        moment = datetime.fromisoformat(str(value)) if value else datetime.now(UTC)
    return moment.strftime(form)


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


def path_join(first: str, *rest: str) -> str:
    """Path components put together."""
    return os.path.join(first, *rest)


def avg(values: list[Any]) -> float:
    """The mean."""
    return sum(values) / len(values) if values else 0.0


def traverse(data: Any, key: str, default: Any = None, delimiter: str = ":") -> Any:
    """The value at a path of keys."""
    at = data
    for part in key.split(delimiter):
        if isinstance(at, Mapping) and part in at:
            at = at[part]
        elif isinstance(at, list) and part.isdecimal() and int(part) < len(at):
            at = at[int(part)]
        else:
            return default
    return at


def substring_in_list(text: str, values: list[Any]) -> bool:
    """Whether a text is part of any value."""
    return any(text in str(value) for value in values)


def method_call(value: Any, method: str, *args: Any, **kwargs: Any) -> Any:
    """The result of a public method of the value."""
    if method.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"'{method}' is not a public method")
    return getattr(value, method)(*args, **kwargs)


def to_num(value: Any) -> Any:
    """A number where the text is one."""
    try:
        return int(value)
    except (TypeError, ValueError):
        try:
            return float(value)
        except (TypeError, ValueError):
            return value


FILTERS: Mapping[str, Callable[..., Any]] = {
    "yaml": yaml_text,
    "json": json_text,
    "tojson": json_text,
    "python": repr,
    "yaml_encode": yaml_encode,
    "yaml_dquote": yaml_dquote,
    "yaml_squote": yaml_squote,
    "to_bool": to_bool,
    "to_num": to_num,
    "regex_search": regex_search,
    "regex_match": regex_match,
    "regex_replace": regex_replace,
    "regex_escape": re.escape,
    "quote": lambda text: shlex.quote(str(text)),
    "unique": unique,
    "sequence": sequence,
    "intersect": intersect,
    "difference": difference,
    "union": union,
    "symmetric_difference": symmetric_difference,
    "avg": avg,
    "strftime": strftime,
    "md5": digest("md5"),
    "sha256": digest("sha256"),
    "sha512": digest("sha512"),
    "base64_encode": base64_encode,
    "base64_decode": base64_decode,
    "path_join": path_join,
    "traverse": traverse,
    "substring_in_list": substring_in_list,
    "method_call": method_call,
    "uuid": lambda text: str(uuid.uuid5(uuid.NAMESPACE_DNS, str(text))),
    "is_list": lambda value: isinstance(value, list),
    "is_iter": lambda value: isinstance(value, Iterable) and not isinstance(value, str | bytes),
    "to_bytes": lambda text: str(text).encode(),
    "flatten": lambda values, levels=None: _flat(values, levels),
    "basename": os.path.basename,
    "dirname": os.path.dirname,
    "to_snake_case": lambda text: re.sub(r"(?<!^)(?=[A-Z])", "_", text).lower(),
    "check_whitelist_blacklist": lambda value, whitelist=None, blacklist=None: (
        (not whitelist or value in whitelist) and value not in (blacklist or ())
    ),
}

TESTS: Mapping[str, Callable[..., bool]] = {
    "list": lambda value: isinstance(value, list),
    "match": lambda text, pattern, ignorecase=False, multiline=False: (
        re.match(pattern, text, _flags(ignorecase, multiline)) is not None
    ),
    "equalto": lambda value, other: bool(value == other),
}


def _flat(values: Any, levels: int | None) -> list[Any]:
    flat: list[Any] = []
    for value in values:
        if isinstance(value, list | tuple) and (levels is None or levels > 0):
            flat += _flat(value, None if levels is None else levels - 1)
        elif value is not None:
            flat.append(value)
    return flat
