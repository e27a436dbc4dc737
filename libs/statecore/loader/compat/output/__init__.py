"""``salt.output`` for users' modules: data as texts in the formats nested, json, yaml, raw, txt, pprint and quiet."""

from __future__ import annotations

import html
import json
import pprint
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from statecore.loader.compat.output import nested
from statecore.loader.compat.utils import yaml


def _json(data: object, opts: Mapping[str, object]) -> str:
    indent = opts.get("output_indent")
    width = indent if isinstance(indent, int) and not isinstance(indent, bool) else 4
    return json.dumps(data, default=repr, indent=None if width < 0 else width)


def _txt(data: object, opts: Mapping[str, object]) -> str:
    if not isinstance(data, Mapping):
        return f"{data}\n"
    return "\n".join(f"{key}: {line}" for key, value in data.items() for line in str(value).splitlines() or [""])


#: Name of an outputter -> function that returns the text for data and options.
_OUTPUTTERS: Mapping[str, Callable[[object, Mapping[str, object]], str]] = {
    "nested": lambda data, opts: nested.output(data, nested_indent=opts.get("nested_indent", 0)),
    "json": _json,
    "yaml": lambda data, opts: str(yaml.safe_dump(data, default_flow_style=False)),
    "raw": lambda data, opts: f"{data}\n",
    "txt": _txt,
    "pprint": lambda data, opts: pprint.pformat(data),
    "quiet": lambda data, opts: "",
}


def get_printout(
    out: str | None, opts: Mapping[str, object] | None = None, **kwargs: object
) -> Callable[[object], str]:
    """Return the function of the outputter ``out`` (default ``nested``), which formats data as text."""
    merged = {**(opts or {}), **kwargs}
    outputter = _OUTPUTTERS.get(out or str(merged.get("output") or ""), _OUTPUTTERS["nested"])
    return lambda data: outputter(data, merged)


def out_format(data: object, out: str | None, opts: Mapping[str, object] | None = None, **kwargs: object) -> str:
    """Return data as text in the format of the outputter ``out`` (``nested``, ``json`` ...)."""
    return get_printout(out, opts, **kwargs)(data).rstrip()


def string_format(data: object, out: str | None, opts: Mapping[str, object] | None = None, **kwargs: object) -> str:
    """Return data as text in the format of the outputter ``out``, without colours."""
    text: str = strip_esc_sequence(out_format(data, out, {**(opts or {}), "color": False}, **kwargs))
    return text


def html_format(data: object, out: str | None, opts: Mapping[str, object] | None = None, **kwargs: object) -> str:
    """Return data as text in the format of the outputter ``out``, without colours and escaped for HTML."""
    return html.escape(string_format(data, out, opts, **kwargs))


def display_output(
    data: object, out: str | None = None, opts: Mapping[str, object] | None = None, **kwargs: object
) -> None:
    """Write data in the format of the outputter ``out`` to standard output, or append it to the file of the option
    ``output_file``.
    """
    text = get_printout(out, opts, **kwargs)(data)
    file = (opts or {}).get("output_file")
    if file:
        with Path(str(file)).open("a", encoding="utf-8") as target:
            target.write(f"{text}\n")
    elif text:
        sys.stdout.write(f"{text}\n")


def strip_esc_sequence(txt: object) -> Any:
    """Return a text whose escape characters are replaced by "?", so that it cannot change a terminal; other values
    unchanged.
    """
    return txt.replace("\x1b", "?") if isinstance(txt, str) else txt
