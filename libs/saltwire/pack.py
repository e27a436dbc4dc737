"""msgpack as Salt puts it on the wire, and as it puts it on the event bus (protocol sections 2 and 10.1).

On the wire: the old specification (no bin types, no str8), everything decoded to text where it is UTF-8. On the bus: bin
types, text decoded strictly. Peers may send anything: whatever cannot be read raises PeerFault and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import msgpack

from saltwire.errors import OwnFault, PeerFault

#: Extension types of Salt: date and time as text, internal constants as (name, value).
_EXT_DATETIME = 78
_EXT_CONSTANT = 79
_DATETIME_FORMAT = "%Y%m%dT%H:%M:%S.%f"

#: Largest message that is unpacked. A return may be large (a report, a log); a hundred megabytes are an attack or a mistake.
MAX_MESSAGE = 100 * 1024 * 1024

#: Lists and maps in each other that are read. msgpack packs 511, and what came in a message goes on inside of an event or a record.
_DEEPEST = 400

_SEPARATOR = b"\n\n"

#: Integers that msgpack can hold; others travel as decimal text.
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1


def packb(value: object) -> bytes:
    """Wire bytes of a value. Sets become lists, integers beyond 64 bits text, unknown objects their text.

    Raises OwnFault for what nests too deeply (or contains itself).
    """
    return _packed(value, use_bin_type=False)


def unpackb(data: bytes, *, raw: bool = False) -> Any:
    """A value of the wire; texts decoded where they are UTF-8, left as bytes where not. ``raw``: keys decoded, values as bytes.

    Raises PeerFault for anything that is not one msgpack value.
    """
    if len(data) > MAX_MESSAGE:
        raise PeerFault(f"a message of {len(data)} bytes; {MAX_MESSAGE} are allowed")
    try:
        value = msgpack.unpackb(data, raw=True, strict_map_key=False, ext_hook=_from_ext)
        return _keys_decoded(value) if raw else _decoded(value)
    except RecursionError as error:
        raise PeerFault("a message nests too deeply") from error
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise PeerFault(f"not msgpack: {type(error).__name__}: {error}") from error


def pack_event(tag: str, data: Mapping[str, object]) -> bytes:
    """The bytes of an event: tag, two newlines, map. Raises OwnFault as ``packb`` does."""
    return tag.encode() + _SEPARATOR + _packed(dict(data), use_bin_type=True)


def unpack_event(frame: bytes) -> tuple[str, dict[str, Any]]:
    """Tag and data of an event. Raises PeerFault."""
    tag, separator, body = frame.partition(_SEPARATOR)
    try:
        data = msgpack.unpackb(
            body, raw=False, strict_map_key=False, ext_hook=_from_ext, unicode_errors="surrogateescape"
        )
        if separator and isinstance(data, dict):
            return tag.decode(), data
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise PeerFault(f"not an event: {error}") from error
    raise PeerFault("not an event: a tag, two newlines and a map are needed")


def text(value: object) -> str | None:
    """A text field that may have stayed bytes; None when it is neither."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else None


def octets(value: object) -> bytes | None:
    """A binary field that may have turned into text on its way (section 2); None when it is neither."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    return value if isinstance(value, bytes) else None


def _packed(value: object, *, use_bin_type: bool) -> bytes:
    packed: bytes
    try:
        packed = msgpack.packb(value, use_bin_type=use_bin_type, default=_to_wire)
    except (OverflowError, TypeError, ValueError):
        try:
            packed = msgpack.packb(
                _portable(value), use_bin_type=use_bin_type, default=_to_wire, unicode_errors="surrogateescape"
            )
        except (RecursionError, ValueError) as error:
            raise OwnFault("a value nests too deeply to be sent, or contains itself") from error
    return packed


def _to_wire(value: object) -> object:
    if isinstance(value, datetime):
        return msgpack.ExtType(_EXT_DATETIME, value.strftime(_DATETIME_FORMAT).encode())
    if isinstance(value, date):
        return msgpack.ExtType(
            _EXT_DATETIME, datetime(value.year, value.month, value.day).strftime(_DATETIME_FORMAT).encode()
        )
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, int):
        return str(value)
    return str(value)


def _portable(value: object) -> object:
    """A copy in which every integer fits and every text can be encoded; only made when plain packing failed."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if _INT_MIN <= value <= _INT_MAX else str(value)
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, Mapping):
        return {_portable(key): _portable(item) for key, item in value.items()}
    if isinstance(value, tuple):
        # Stays one: it may be the key of a map.
        return tuple(_portable(item) for item in value)
    if isinstance(value, list | set | frozenset):
        return [_portable(item) for item in value]
    return value


def _encodable(value: str) -> str:
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # A lone surrogate that stands for no byte; JSON can bring one.
        return value.encode("utf-8", "replace").decode()
    return value


def _from_ext(code: int, data: bytes) -> Any:
    if code == _EXT_DATETIME:
        return datetime.strptime(data.decode(), _DATETIME_FORMAT)
    if code == _EXT_CONSTANT:
        return _decoded(msgpack.unpackb(data, raw=True))
    return data


def _decoded(value: Any, levels: int = _DEEPEST) -> Any:
    # The unpacker makes no subclasses. Most values are texts: those of a list or map are not asked for one by one.
    kind = type(value)
    if kind is bytes:
        return _text(value)
    if kind is list:
        if not levels:
            raise RecursionError
        levels -= 1
        return [_text(item) if type(item) is bytes else _decoded(item, levels) for item in value]
    if kind is dict:
        if not levels:
            raise RecursionError
        levels -= 1
        return {
            _text(key) if type(key) is bytes else key: _text(item) if type(item) is bytes else _decoded(item, levels)
            for key, item in value.items()
        }
    return value


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _keys_decoded(value: Any, levels: int = _DEEPEST) -> Any:
    if not isinstance(value, dict | list):
        return value
    if not levels:
        raise RecursionError
    if isinstance(value, dict):
        return {_decoded(key): _keys_decoded(item, levels - 1) for key, item in value.items()}
    return [_keys_decoded(item, levels - 1) for item in value]
