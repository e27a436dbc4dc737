"""``salt.serializers.json``."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

from statecore.loader.compat.serializers import reading, writing
from statecore.loader.compat.utils import json as _json


def deserialize(stream_or_string: str | bytes | IO[str], **options: object) -> object:
    """The data of a text, of bytes or a file."""
    with reading():
        if isinstance(stream_or_string, bytes | str):
            return _json.loads(stream_or_string)
        return _json.load(stream_or_string, **options)


def serialize(obj: object, **options: object) -> object:
    """Data as text, or into the file ``fp``."""
    with writing():
        written: Callable[..., object] = _json.dump if "fp" in options else _json.dumps
        return written(obj, **options)
