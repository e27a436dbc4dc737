"""``salt.serializers.json``."""

from __future__ import annotations

from typing import Any

from statecore.loader.compat.serializers import reading, writing
from statecore.loader.compat.utils import json as _json


def deserialize(stream_or_string: Any, **options: Any) -> Any:
    """The data of a text, of bytes or a file."""
    with reading():
        if isinstance(stream_or_string, bytes | str):
            return _json.loads(stream_or_string)
        return _json.load(stream_or_string, **options)


def serialize(obj: Any, **options: Any) -> Any:
    """Data as text, or into the file ``fp``."""
    with writing():
        return _json.dump(obj, **options) if "fp" in options else _json.dumps(obj, **options)
