"""Parses the bodies of requests and formats those of responses: JSON, YAML and forms. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from saltern.kit.command.arguments import MOST_SENT, check_length
from statecore.model import yaml
from statecore.model.errors import InvocationError

#: Types of answers, the first one by default.
JSON, YAML = "application/json", "application/x-yaml"

#: Most fields of a form.
_FIELDS = 1000

#: Most bytes of a login; a bearer token is the largest part of one.
MOST_OF_LOGIN = 16_384
#: Most characters of a YAML document from a sender without a session. JSON and forms are parsed faster.
_STRANGERS_YAML = 65_536


class BodyFault(Exception):
    """Raised for a request body that cannot be read. It has the HTTP status and the text of the response."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def read_body(kind: str, body: bytes, *, known: bool = True) -> object:
    """Parse the body of a request and return its data; None for an empty body. ``kind``: the header Content-Type.
    ``known``: the request has a session; without one a YAML document is short. Raises BodyFault.
    """
    if not body:
        return None
    name = kind.partition(";")[0].strip().lower() or "application/x-www-form-urlencoded"
    reader = _READERS.get(name)
    if reader is None:
        raise BodyFault(406, f"Content type not supported: {name}; there are {', '.join(_READERS)}")
    if not known and reader is _yaml and len(body) > _STRANGERS_YAML:
        raise BodyFault(413, f"a YAML body without a session has at most {_STRANGERS_YAML} bytes; send JSON")
    try:
        return reader(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BodyFault(400, f"the body is not UTF-8: {error.reason} at byte {error.start}") from error
    except RecursionError as error:
        raise BodyFault(400, "the body has too many values in each other") from error


def _json(text: str) -> object:
    """Parse JSON. NaN, Infinity and numbers that are too large for a float are no JSON: no answer could hold them."""
    try:
        return json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except ValueError as error:
        raise BodyFault(400, f"Invalid JSON document: {error}") from error


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _yaml(text: str) -> object:
    try:
        return yaml.load(text, yaml.REQUEST)
    except yaml.YamlFault as fault:
        raise BodyFault(400, f"Invalid YAML document: {fault.placed}") from fault


def _text(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _form(text: str) -> object:
    """Parse a form and return its fields as a map; the value of a field that occurs several times is a list. ``arg``
    and ``kwarg`` are parsed as YAML.
    """
    try:
        pairs = parse_qsl(text, max_num_fields=_FIELDS)
    except ValueError as error:
        raise BodyFault(400, f"a form has at most {_FIELDS} fields") from error
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    found: dict[str, object] = {name: values[0] if len(values) == 1 else values for name, values in fields.items()}
    if "arg" in fields:
        found["arg"] = [_yaml_or_text("arg", value) for value in fields["arg"]]
    if "kwarg" in fields:
        found["kwarg"] = _yaml_or_text("kwarg", fields["kwarg"][-1])
    return found


def _yaml_or_text(name: str, text: str) -> object:
    """Parse an argument as Salt's command line does: as YAML, but a text that YAML would turn into a date stays text.

    A text of more than MOST_SENT characters stays text, too. Raises BodyFault if it is a list or map.
    """
    if len(text) > MOST_SENT:
        try:
            check_length(name, text)
        except InvocationError as error:
            raise BodyFault(400, str(error)) from error
        return text
    try:
        value = _yaml(text)
    except BodyFault:
        return text
    return value if value is None or isinstance(value, str | int | float | bool | list | dict) else text


_READERS = {
    "application/x-www-form-urlencoded": _form,
    "application/json": _json,
    "application/x-yaml": _yaml,
    "text/yaml": _yaml,
    "text/plain": _text,
}


def accepted(accept: str, kinds: tuple[str, ...] = (JSON, YAML)) -> str | None:
    """Return the one of the content types ``kinds`` that a header Accept prefers; None if it accepts none of them."""
    if not accept.strip():
        return kinds[0]
    best: tuple[float, int, int] | None = None
    for word in accept.split(","):
        name, *parameters = (part.strip().lower() for part in word.split(";"))
        weight = 1.0
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key == "q":
                try:
                    weight = float(value)
                except ValueError:
                    weight = 0.0
        for place, kind in enumerate(kinds):
            exact = 2 if name == kind else 1 if name.endswith("/*") and kind.startswith(name[:-1]) else 0
            if name in ("*/*", "*") or exact:
                best = max(best or (0.0, 0, 0), (weight, exact, -place))
    return kinds[-best[2]] if best is not None and best[0] > 0 else None


def written(value: object, kind: str) -> bytes:
    """Return a value as the bytes of a response body of the content type ``kind``, JSON or YAML."""
    if kind == YAML:
        # Through JSON, so that both forms show the same.
        return yaml.dump(
            json.loads(json.dumps(value, default=str)), Dumper=yaml.FastDumper, default_flow_style=False
        ).encode()
    return json.dumps(value, default=str).encode()


def lowstate_of(value: object) -> list[dict[str, Any]]:
    """Return the list of chunks of low data in a request's data; a map is one chunk. Raises BodyFault for anything
    else.
    """
    chunks = [value] if isinstance(value, Mapping) else value
    if not isinstance(chunks, list):
        raise BodyFault(400, "Lowstates must be a list")
    found = []
    for chunk in chunks:
        if not isinstance(chunk, Mapping):
            raise BodyFault(400, f"a chunk of a lowstate is a map, not {type(chunk).__name__}")
        found.append({str(name): each for name, each in chunk.items()})
    return found
