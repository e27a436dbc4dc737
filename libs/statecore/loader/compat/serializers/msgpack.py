"""``salt.serializers.msgpack`` for users' modules: converts data from and to msgpack."""

from __future__ import annotations

import msgpack as _msgpack

from statecore.loader.compat.serializers import reading, writing


def deserialize(stream_or_string: object, **options: object) -> object:
    """Return the data of msgpack bytes or of an open file. Raise DeserializationError for invalid bytes."""
    with reading():
        settings = {"use_list": True, "raw": False, "strict_map_key": False, **options}
        if isinstance(stream_or_string, bytes):
            return _msgpack.unpackb(stream_or_string, **settings)
        return _msgpack.unpack(stream_or_string, **settings)


def serialize(obj: object, **options: object) -> bytes:
    """Return data as msgpack bytes. Raise SerializationError for data that msgpack cannot hold."""
    with writing():
        packed: bytes = _msgpack.packb(obj, **options)
        return packed
