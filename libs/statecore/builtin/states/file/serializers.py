"""The formats of ``file.serialize``. Each can be written; most can also be read, for ``merge_if_exists``.

TOML is written like Salt's serializer does (the Python library ``toml``): tables in order of their depth, so that a
file written by
Salt stays unchanged.
"""

from __future__ import annotations

import configparser
import datetime
import io
import json
import math
import plistlib
import pprint
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgpack

from statecore.model import yaml
from statecore.model.lazy import lazy_module

if TYPE_CHECKING:
    from statecore.loader.compat.serializers import yamlex
else:
    yamlex = lazy_module("statecore.loader.compat.serializers.yamlex")  # few trees use it


@dataclass(frozen=True, slots=True)
class Serializer:
    """Functions and default options of one data format of ``file.serialize``."""

    #: (data, options) -> text without the final line end, or bytes. May raise any exception.
    dump: Callable[[Any, Mapping[str, Any]], str | bytes]
    #: (file content, options) -> data; None if the format cannot be read.
    load: Callable[[bytes, Mapping[str, Any]], object] | None = None
    #: Default options, as in Salt; ``serializer_opts`` override them.
    options: Mapping[str, object] = field(default_factory=dict)
    #: Additional default options if ``encoding`` is given: non-ASCII text is not escaped.
    unicode: Mapping[str, object] = field(default_factory=dict)


class _FileDumper(yaml.SafeDumper):
    """YAML dumper that writes subclasses of str, dict and list like these types. PyYAML's SafeDumper refuses them."""


_PLAIN: Mapping[type, Callable[..., yaml.Node]] = {
    str: yaml.SafeDumper.represent_str,
    dict: yaml.SafeDumper.represent_dict,
    list: yaml.SafeDumper.represent_list,
    tuple: yaml.SafeDumper.represent_list,
}
for _kind, _represent in _PLAIN.items():
    _FileDumper.add_multi_representer(_kind, _represent)


def _dump_yaml(data: object, options: Mapping[str, Any]) -> str:
    text: str = yaml.dump(data, Dumper=_FileDumper, **options)
    return text.removesuffix("\n").removesuffix("\n...")


def _load_yaml(data: bytes, options: Mapping[str, Any]) -> object:
    if options:
        raise TypeError(f"YAML is read without options, but there are {', '.join(options)}")
    return yaml.load(data)


def _dump_ini(data: object, options: Mapping[str, Any]) -> str:
    if not isinstance(data, Mapping):
        raise TypeError(f"configparser can only serialize dictionaries, not {type(data)}")
    parser = configparser.ConfigParser(**options)
    for section, keys in data.items():
        if str(section) != parser.default_section:
            parser.add_section(str(section))
        for key, value in keys.items():
            parser.set(str(section), str(key), None if value is None else str(value))
    out = io.StringIO()
    parser.write(out)
    return out.getvalue()


def _load_ini(data: bytes, options: Mapping[str, Any]) -> object:
    parser = configparser.ConfigParser(**options)
    parser.read_string(data.decode())
    return {section: dict(parser.items(section)) for section in parser.sections()}


#: A key that needs no quotes.
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def _dump_toml(data: object, options: Mapping[str, object]) -> str:
    """Return data as TOML text with a final line end. Raises TypeError for values that TOML does not have, and if
    ``options`` is not empty, because TOML takes no options.
    """
    if options:
        raise TypeError(f"toml takes no options, but {', '.join(options)}")
    if not isinstance(data, Mapping):
        raise TypeError(f"TOML holds a map, not {type(data).__name__}")
    return "".join(_document(data))


def _load_toml(data: bytes, options: Mapping[str, object]) -> object:
    """Return the data of a TOML file's content. Raises ValueError for invalid TOML, and TypeError if ``options`` is not
    empty, because TOML takes no options.
    """
    import tomllib  # few trees use it

    if options:
        raise TypeError(f"toml takes no options, but {', '.join(options)}")
    return tomllib.loads(data.decode())


def _document(data: Mapping[object, object]) -> Iterator[str]:
    text, level = _table(data, "")
    yield text
    written = text
    # All tables of one depth are written before the tables inside them.
    while level:
        below: dict[str, Mapping[object, object]] = {}
        for name, table in level.items():
            text, inside = _table(table, name)
            if text or not inside:
                gap = "\n" if written and not written.endswith("\n\n") else ""
                written = f"{gap}[{name}]\n{text}"
                yield written
            below |= inside
        level = below


def _table(data: Mapping[object, object], name: str) -> tuple[str, dict[str, Mapping[object, object]]]:
    """Return (TOML text of a table's values and arrays of tables, {full name: table} of the tables in it).

    Values of None are left out, because TOML has no null.
    """
    values, arrays = [], []
    tables: dict[str, Mapping[object, object]] = {}
    for key, value in data.items():
        own = _key(key)
        full = f"{name}.{own}" if name else own
        if isinstance(value, Mapping):
            tables[full] = value
        elif isinstance(value, list | tuple) and value and all(isinstance(each, Mapping) for each in value):
            arrays += [_array_table(each, full) for each in value]
        elif value is not None:
            values.append(f"{own} = {_value(value)}\n")
    return "".join([*values, *arrays]), tables


def _array_table(data: Mapping[object, object], name: str) -> str:
    text, level = _table(data, name)
    own = "" if text.startswith("[") else text
    parts = [f"[[{name}]]\n", own, "\n", text.removeprefix(own)]
    while level:
        below: dict[str, Mapping[object, object]] = {}
        for each, table in level.items():
            values, more = _table(table, each)
            if values or not more:
                parts.append(f"[{each}]\n{values}")
            below |= more
        level = below
    return "".join(parts)


def _key(key: object) -> str:
    return str(key) if _BARE.fullmatch(str(key)) else _text(str(key))


def _text(value: str) -> str:
    # TOML's escapes are those of JSON, except for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return f"[{''.join(f' {_value(each)},' for each in value)}]" if value else "[]"
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items() if each is not None)
        return f"{{ {pairs} }}" if pairs else "{}"
    raise TypeError(f"TOML knows no {type(value).__name__}: {value!r}")


def _float(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return str(value)
    text = repr(value)
    # A float such as 1e+16 needs no decimal point in TOML.
    return text if any(mark in text for mark in ".e") else f"{text}.0"


#: ``serializer`` argument -> format.
SERIALIZERS: Mapping[str, Serializer] = {
    "yaml": Serializer(_dump_yaml, _load_yaml, {"default_flow_style": False}, {"allow_unicode": True}),
    "yamlex": Serializer(
        lambda data, options: yamlex.serialize(data, **options),
        lambda data, options: yamlex.deserialize(data, **options),
    ),
    "json": Serializer(
        lambda data, options: json.dumps(data, **options),
        lambda data, options: json.loads(data, **options),
        {"indent": 2, "separators": (",", ": "), "sort_keys": True, "ensure_ascii": False},
    ),
    "configparser": Serializer(_dump_ini, _load_ini),
    "toml": Serializer(_dump_toml, _load_toml),
    "msgpack": Serializer(
        lambda data, options: bytes(msgpack.packb(data, **options)),
        lambda data, options: msgpack.unpackb(data, **options),
    ),
    "plist": Serializer(
        lambda data, options: plistlib.dumps(data, **options),
        lambda data, options: plistlib.loads(data, **options),
    ),
    # The JSON round trip turns every mapping type into a dict.
    "python": Serializer(lambda data, options: pprint.pformat(json.loads(json.dumps(data)), **options)),
}
