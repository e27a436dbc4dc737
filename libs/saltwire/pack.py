"""msgpack in the two forms that Salt uses: requests and publications on the wire, and events on the bus.

On the wire: the old msgpack format without bin types; bytes become text where they are valid UTF-8. On the bus: bin
types, and text must be UTF-8. Every input is untrusted: bytes that cannot be unpacked raise PeerFault and no other
exception.

Source: docs/protocol.md#msgpack, docs/protocol.md#event-framing
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime

import msgpack

from saltwire.errors import OwnFault, PeerFault

#: Extension types of Salt: date and time as text, internal constants as (name, value).
_EXT_DATETIME = 78
_EXT_CONSTANT = 79
_DATETIME_FORMAT = "%Y%m%dT%H:%M:%S.%f"

#: Largest message that is unpacked, bytes. Returns may be large (a report, a log), but not larger than this.
MAX_MESSAGE = 100 * 1024 * 1024

#: Deepest nesting of lists and maps that is read. msgpack packs 511 levels, and a received value is later packed inside others.
_DEEPEST = 400

#: Most values (entries, keys, lists, maps) in one message of a peer. The largest returns have some 100,000; each value costs
#: up to 300 bytes of memory, however short its bytes are.
MAX_VALUES = 500_000

#: Largest request that is not encrypted, bytes. A sign-in has about one thousand; anybody can send one.
MAX_CLEAR_BYTES = 64 * 1024

#: Largest extension value that is read, bytes.
_MAX_EXT = 4096

_SEPARATOR = b"\n\n"

#: Integers that msgpack can hold; others travel as decimal text.
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1


def packb(value: object) -> bytes:
    """Return the wire bytes of a value. Sets become lists, integers above 64 bits become text, unknown objects become
    their ``str()``.

    Raises OwnFault for a value that is nested too deeply or contains itself.
    """
    return _packed(value, use_bin_type=False)


def unpackb(data: bytes, *, raw: bool = False, most: int | None = None) -> object:
    """Return the value of wire bytes. Bytes that are valid UTF-8 become text, others stay bytes; ``raw`` decodes only
    the keys of maps. ``most``: number of values that the message may have, lists and maps included; None for any
    number.

    Raises PeerFault for anything but one msgpack value of at most 100 MB.
    """
    if len(data) > MAX_MESSAGE:
        raise PeerFault(f"a message of {len(data)} bytes; {MAX_MESSAGE} are allowed")
    if most is not None:
        check_values(data, most)
    try:
        value = msgpack.unpackb(data, raw=True, strict_map_key=False, ext_hook=_from_ext)
        return _keys_decoded(value) if raw else _decoded(value)
    except RecursionError as error:
        raise PeerFault("a message nests too deeply") from error
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise PeerFault(f"not msgpack: {type(error).__name__}: {error}") from error


#: Map of a msgpack type byte to (bytes that the value has at least, bytes of these that hold the length of what follows). Elements
#: of lists and maps are values of their own. Missing types have one byte.
_WIDER: Mapping[int, tuple[int, int]] = {
    0xC4: (2, 1), 0xC5: (3, 2), 0xC6: (5, 4), 0xC7: (3, 1), 0xC8: (4, 2), 0xC9: (6, 4), 0xCA: (5, 0), 0xCB: (9, 0),
    0xCC: (2, 0), 0xCD: (3, 0), 0xCE: (5, 0), 0xCF: (9, 0), 0xD0: (2, 0), 0xD1: (3, 0), 0xD2: (5, 0), 0xD3: (9, 0),
    0xD4: (3, 0), 0xD5: (4, 0), 0xD6: (6, 0), 0xD7: (10, 0), 0xD8: (18, 0), 0xD9: (2, 1), 0xDA: (3, 2), 0xDB: (5, 4),
    0xDC: (3, 0), 0xDD: (5, 0), 0xDE: (3, 0), 0xDF: (5, 0), **{0xA0 + length: (1 + length, 0) for length in range(32)},
}  # fmt: skip
_STEPS = tuple(_WIDER.get(first, (1, 0)) for first in range(256))


def check_values(data: bytes, most: int) -> None:
    """Raise PeerFault if msgpack bytes hold more than ``most`` values. Nothing is built: a peer's six megabytes of
    empty maps would become 800 megabytes of memory.
    """
    # Each value has one byte or more.
    if len(data) <= most:
        return
    at, count, end = 0, 0, len(data)
    while at < end:
        count += 1
        if count > most:
            raise PeerFault(f"a message of more than {most} values")
        size, wide = _STEPS[data[at]]
        if wide:
            size += int.from_bytes(data[at + 1 : at + 1 + wide], "big")
        at += size


def pack_event(tag: str, data: Mapping[str, object]) -> bytes:
    """Return the bytes of an event: tag, two newlines, packed map. Raises OwnFault for data that is nested too deeply."""
    return tag.encode() + _SEPARATOR + _packed(dict(data), use_bin_type=True)


def unpack_event(frame: bytes) -> tuple[str, dict[str, object]]:
    """Return (tag, data) of an event's bytes. Raises PeerFault if they are malformed."""
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
    """Return a field of a received message as text; bytes are decoded. None if the field is neither text nor bytes."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else None


def octets(value: object) -> bytes | None:
    """Return a field of a received message as bytes; text is encoded. None if the field is neither text nor bytes."""
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

    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if _INT_MIN <= value <= _INT_MAX else str(value)
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, Mapping):
        return {_portable(key): _portable(item) for key, item in value.items()}
    if isinstance(value, tuple):
        # A tuple stays a tuple: it may be the key of a map, and a list cannot be one.
        return tuple(_portable(item) for item in value)
    if isinstance(value, list | set | frozenset):
        return [_portable(item) for item in value]
    return value


def _encodable(value: str) -> str:
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # A lone surrogate that does not encode a byte; JSON input can contain one.
        return value.encode("utf-8", "replace").decode()
    return value


def _from_ext(code: int, data: bytes) -> object:
    if len(data) > _MAX_EXT:
        raise ValueError(f"an extension value of {len(data)} bytes; {_MAX_EXT} are allowed")
    if code == _EXT_DATETIME:
        return datetime.strptime(data.decode(), _DATETIME_FORMAT)
    if code == _EXT_CONSTANT:
        return _decoded(msgpack.unpackb(data, raw=True))
    return data


def _decoded(value: object, levels: int = _DEEPEST) -> object:
    # Texts are handled inline for speed.
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, list):
        if not levels:
            raise RecursionError
        levels -= 1
        return [_text(item) if type(item) is bytes else _decoded(item, levels) for item in value]
    if isinstance(value, dict):
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


def _keys_decoded(value: object, levels: int = _DEEPEST) -> object:
    if not isinstance(value, dict | list):
        return value
    if not levels:
        raise RecursionError
    if isinstance(value, dict):
        return {_decoded(key): _keys_decoded(item, levels - 1) for key, item in value.items()}
    return [_keys_decoded(item, levels - 1) for item in value]
