"""``salt.serializers.json`` for users' modules: converts data from and to JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

from statecore.loader.compat.serializers import DeserializationError as DeserializationError
from statecore.loader.compat.serializers import SerializationError as SerializationError
from statecore.loader.compat.serializers import reading, writing
from statecore.loader.compat.utils import json as _json


def deserialize(stream_or_string: str | bytes | IO[str], **options: object) -> object:
    """Return the data of a JSON text, of bytes or of an open file. Raise DeserializationError if it is not JSON."""
    with reading():
        if isinstance(stream_or_string, bytes | str):
            return _json.loads(stream_or_string)
        return _json.load(stream_or_string, **options)


def serialize(obj: object, **options: object) -> object:
    """Return data as JSON text, or write it to the open file ``fp`` and return None. Raise SerializationError for data
    that JSON cannot hold.
    """
    with writing():
        written: Callable[..., object] = _json.dump if "fp" in options else _json.dumps
        return written(obj, **options)
