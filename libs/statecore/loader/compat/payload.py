"""``salt.payload`` for users' modules: msgpack as Salt writes it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Set
from typing import IO, Any

import msgpack

#: Type number of an extended value of msgpack in which Salt writes dates and times.
_DATE = 78
_FORMAT = "%Y%m%dT%H:%M:%S.%f"

#: Largest whole number of msgpack.
_LARGEST = 2**64 - 1


def _other(value: object) -> object:
    """Return a value in place of one that msgpack cannot write: a text for a large number, a tuple for a set. Raise
    TypeError for an object of another type.
    """
    if isinstance(value, int):
        return str(value)
    if isinstance(value, datetime.date):
        return msgpack.ExtType(_DATE, value.strftime(_FORMAT).encode())
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return tuple(value)
    raise TypeError(f"{type(value).__name__} cannot be written as msgpack: {value!r}")


def _read(code: int, data: bytes) -> object:
    if code == _DATE:
        return datetime.datetime.strptime(data.decode(), _FORMAT)
    return msgpack.ExtType(code, data)


def _without_large_numbers(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool) and value > _LARGEST:
        return str(value)
    if isinstance(value, Mapping):
        return {key: _without_large_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_large_numbers(item) for item in value]
    return value


def dumps(msg: object, use_bin_type: bool = False) -> bytes:
    """Return data as msgpack bytes. Sets become lists, numbers beyond 64 bits texts. Raise TypeError for other
    objects.
    """
    try:
        packed: bytes = msgpack.packb(msg, default=_other, use_bin_type=use_bin_type)
    except OverflowError:
        packed = msgpack.packb(_without_large_numbers(msg), default=_other, use_bin_type=use_bin_type)
    return packed


def loads(msg: bytes, encoding: str | None = None, raw: bool = False) -> Any:
    """Return the data in msgpack bytes. A text that is not UTF-8 is returned as bytes; with ``raw`` every text is."""
    options: dict[str, Any] = {"ext_hook": _read, "strict_map_key": False}
    try:
        return msgpack.unpackb(msg, raw=raw, **options)
    except UnicodeDecodeError:
        return _texts(msgpack.unpackb(msg, raw=True, **options))


def _texts(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, Mapping):
        return {_texts(key): _texts(item) for key, item in value.items()}
    return [_texts(item) for item in value] if isinstance(value, list) else value


def load(fn_: IO[bytes]) -> Any:
    """Return the data in an open msgpack file, and close the file; None if the file is empty."""
    with fn_:
        data = fn_.read()
    return loads(data) if data else None


def dump(msg: object, fn_: IO[bytes]) -> None:
    """Write data as msgpack into an open file, and close the file."""
    with fn_:
        fn_.write(dumps(msg, use_bin_type=True))


def format_payload(enc: str, **kwargs: object) -> bytes:
    """Return the map {"enc": enc, "load": the other arguments} as msgpack bytes."""
    return dumps({"enc": enc, "load": kwargs})


class Serial:
    """Salt's class for msgpack data: ``loads``, ``dumps``, ``load`` and ``dump`` as methods, for modules that were
    written for older releases.
    """

    def __init__(self, opts: object = None) -> None:
        """Accept the options, or the name of the format; only msgpack exists."""

    def loads(self, msg: bytes, encoding: str | None = None, raw: bool = False) -> Any:
        """Return the data in msgpack bytes."""
        return loads(msg, encoding, raw)

    def dumps(self, msg: object, use_bin_type: bool = False) -> bytes:
        """Return data as msgpack bytes."""
        return dumps(msg, use_bin_type)

    def load(self, fn_: IO[bytes]) -> Any:
        """Return the data in an open msgpack file, and close the file; None if the file is empty."""
        return load(fn_)

    def dump(self, msg: object, fn_: IO[bytes]) -> None:
        """Write data as msgpack into an open file, and close the file."""
        dump(msg, fn_)
