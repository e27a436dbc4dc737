"""``salt.serializers.yaml``."""

from __future__ import annotations

from typing import Any

import yaml as _yaml

from statecore.loader.compat.serializers import reading, writing

_BaseDumper: Any = getattr(_yaml, "CSafeDumper", _yaml.SafeDumper)


class _SerializerDumper(_BaseDumper):  # type: ignore[misc]
    """Writes subclasses of the plain types as those."""


_SerializerDumper.add_multi_representer(dict, _yaml.SafeDumper.represent_dict)
_SerializerDumper.add_multi_representer(list, _yaml.SafeDumper.represent_list)
_SerializerDumper.add_multi_representer(tuple, _yaml.SafeDumper.represent_list)
_SerializerDumper.add_multi_representer(str, _yaml.SafeDumper.represent_str)


def deserialize(stream_or_string: Any, **options: Any) -> Any:
    """The data of a text, of bytes or a file."""
    with reading():
        return _yaml.load(stream_or_string, **{"Loader": _yaml.SafeLoader, **options})


def serialize(obj: Any, **options: Any) -> str:
    """Data as text, without the end of the last line."""
    with writing():
        text: str = _yaml.dump(obj, **{"Dumper": _SerializerDumper, "default_flow_style": None, **options})
        return text.removesuffix("\n...\n").removesuffix("\n")
