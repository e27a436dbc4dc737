"""The forms that ``file.serialize`` writes data in, and reads again those that can be merged into."""

from __future__ import annotations

import configparser
import io
import json
import plistlib
import pprint
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgpack
import yaml

from statecore.builtin.states.file import toml_text


@dataclass(frozen=True, slots=True)
class Serializer:
    """One form."""

    #: (data, options) -> what is written, but for the end of the last line. May raise anything.
    dump: Callable[[Any, Mapping[str, Any]], str | bytes]
    #: (what is there, options) -> data; None where nothing reads the form.
    load: Callable[[bytes, Mapping[str, Any]], Any] | None = None
    #: Options of Salt's own; those of the state come over them.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Those that come with ``encoding`` too: text beyond ASCII is written as it is.
    unicode: Mapping[str, Any] = field(default_factory=dict)


class _FileDumper(yaml.SafeDumper):
    """Writes subclasses of the plain types as those; PyYAML's refuses them."""


_PLAIN: Mapping[type, Callable[..., yaml.Node]] = {
    str: yaml.SafeDumper.represent_str,
    dict: yaml.SafeDumper.represent_dict,
    list: yaml.SafeDumper.represent_list,
    tuple: yaml.SafeDumper.represent_list,
}
for _kind, _represent in _PLAIN.items():
    _FileDumper.add_multi_representer(_kind, _represent)


def _dump_yaml(data: Any, options: Mapping[str, Any]) -> str:
    text: str = yaml.dump(data, Dumper=_FileDumper, **options)
    return text.removesuffix("\n").removesuffix("\n...")


def _load_yaml(data: bytes, options: Mapping[str, Any]) -> Any:
    return yaml.load(data, Loader=yaml.SafeLoader, **options)


def _dump_ini(data: Any, options: Mapping[str, Any]) -> str:
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


def _load_ini(data: bytes, options: Mapping[str, Any]) -> Any:
    parser = configparser.ConfigParser(**options)
    parser.read_string(data.decode())
    return {section: dict(parser.items(section)) for section in parser.sections()}


#: Name in ``serializer:`` -> the form.
SERIALIZERS: Mapping[str, Serializer] = {
    "yaml": Serializer(_dump_yaml, _load_yaml, {"default_flow_style": False}, {"allow_unicode": True}),
    "json": Serializer(
        lambda data, options: json.dumps(data, **options),
        lambda data, options: json.loads(data, **options),
        {"indent": 2, "separators": (",", ": "), "sort_keys": True, "ensure_ascii": False},
    ),
    "configparser": Serializer(_dump_ini, _load_ini),
    "toml": Serializer(toml_text.dumped, toml_text.loaded),
    "msgpack": Serializer(
        lambda data, options: bytes(msgpack.packb(data, **options)),
        lambda data, options: msgpack.unpackb(data, **options),
    ),
    "plist": Serializer(
        lambda data, options: plistlib.dumps(data, **options),
        lambda data, options: plistlib.loads(data, **options),
    ),
    # Through JSON, so that every mapping is a dict.
    "python": Serializer(lambda data, options: pprint.pformat(json.loads(json.dumps(data)), **options)),
}
