"""``salt.serializers.yaml`` for users' modules: converts data from and to YAML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from statecore.loader.compat.serializers import reading, writing
from statecore.model import yaml as _yaml


class _SerializerDumper(_yaml.FastDumper):
    """Writes subclasses of dict, list, tuple and str as plain YAML, without a tag for the class."""


_SerializerDumper.add_multi_representer(dict, _yaml.SafeDumper.represent_dict)
_SerializerDumper.add_multi_representer(list, _yaml.SafeDumper.represent_list)
_SerializerDumper.add_multi_representer(tuple, _yaml.SafeDumper.represent_list)
_SerializerDumper.add_multi_representer(str, _yaml.SafeDumper.represent_str)


def deserialize(stream_or_string: Any, Loader: type[Any] = _yaml.BoundedLoader) -> object:
    """Return the data of a YAML text, of bytes or of an open file. Raise DeserializationError if it is not valid YAML or
    exceeds a bound.
    """
    with reading():
        return _yaml.load_by(stream_or_string, Loader)


def serialize(obj: object, **options: object) -> str:
    """Return data as YAML text without the newline at the end. Raise SerializationError for data that YAML cannot
    hold.
    """
    with writing():
        write: Callable[..., str] = _yaml.dump
        text = write(obj, **{"Dumper": _SerializerDumper, "default_flow_style": None, **options})
        return text.removesuffix("\n...\n").removesuffix("\n")
