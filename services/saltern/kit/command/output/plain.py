"""Outputters without colour: json, ndjson, yaml, txt, raw, pprint, newline_values_only and quiet."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pprint import pformat

from saltern.kit.command.output.options import OutputOptions
from saltern.kit.command.output.plain_copy import plain_copy
from statecore.model import yaml


class _Dumper(yaml.FastDumper):
    """A YAML dumper for plain values. A value that YAML cannot express becomes NULL, as in Salt."""


_Dumper.add_representer(OrderedDict, lambda dumper, data: dumper.represent_dict(list(data.items())))
_Dumper.add_representer(defaultdict, _Dumper.represent_dict)
_Dumper.add_representer(
    None,  # type: ignore[arg-type]  # PyYAML: every other type
    lambda dumper, _: dumper.represent_scalar("tag:yaml.org,2002:null", "NULL"),
)


def to_json(data: object, options: OutputOptions) -> str:
    """Return the data as JSON with four spaces and unescaped Unicode; a negative indent gives one line.

    A value that JSON cannot express is shown by its ``repr``.
    """
    indent = 4 if options.indent is None else options.indent
    try:
        return _json(data, indent, sort=options.sort_names)
    except TypeError:
        # Names that JSON cannot express or that cannot be sorted. Salt prints {} here.
        return _json(_with_text_names(data), indent, sort=options.sort_names)


def to_ndjson(data: object, options: OutputOptions) -> str:
    """Return one line of JSON for each minion, ``{MINION: RETURN}``, for programs that read returns as they arrive."""
    if not isinstance(data, Mapping):
        return to_json(data, options._replace(indent=-1))
    return "\n".join(to_json({name: value}, options._replace(indent=-1)) for name, value in data.items())


def _json(data: object, indent: int, *, sort: bool) -> str:
    return json.dumps(data, default=repr, ensure_ascii=False, indent=None if indent < 0 else indent, sort_keys=sort)


def _with_text_names(data: object) -> object:
    if isinstance(data, Mapping):
        return {_as_name(name): _with_text_names(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_with_text_names(item) for item in data]
    return data


def _as_name(name: object) -> str:
    if isinstance(name, bytes):
        return name.decode(errors="backslashreplace")
    # As JSON spells them as names: true, null, 1.5.
    return json.dumps(name) if name is None or isinstance(name, bool | int | float) else str(name)


def to_yaml(data: object, options: OutputOptions) -> str:
    """Return the data as YAML in block style with sorted names; a negative indent gives flow style."""
    flow = options.indent is not None and options.indent < 0
    indent = 0 if flow else options.indent
    text: str = yaml.dump(plain_copy(data), Dumper=_Dumper, allow_unicode=True, default_flow_style=flow, indent=indent)
    return text


def to_txt(data: object, options: OutputOptions) -> str:
    """Return a line ``minion: text`` for each line of a minion's return that is a text, and one line for any other return."""
    if isinstance(data, Mapping):
        return "\n".join(f"{name}: {line}" for name, value in data.items() for line in _lines(plain_copy(value)))
    return data if isinstance(data, str) else pformat(plain_copy(data))


def to_raw(data: object, options: OutputOptions) -> str:
    """Return the data as its Python ``repr``, on one line."""
    return str(plain_copy(data))


def to_pprint(data: object, options: OutputOptions) -> str:
    """Return the data as Python's ``pprint`` formats it."""
    if options.indent is not None and options.indent >= 0:
        return pformat(plain_copy(data), indent=options.indent)
    return pformat(plain_copy(data))


def to_newline_values_only(data: object, options: OutputOptions) -> str:
    """Return the minions' returns without the minion ids, one return on each line, for shell loops."""
    return "\n".join(_values(data))


def to_nothing(data: object, options: OutputOptions) -> str:
    """Return "": the outputter ``quiet`` prints nothing, so only the exit code shows success or failure."""
    return ""


def _lines(value: object) -> Sequence[object]:
    return value.splitlines() if isinstance(value, str | bytes) else [value]


def _values(data: object) -> Iterator[str]:
    if isinstance(data, Mapping):
        data = list(data.values())
    if isinstance(data, list | tuple):
        for item in data:
            yield from _values(item)
    else:
        yield str(data)
