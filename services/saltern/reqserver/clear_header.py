"""Reads the unencrypted part of a request: the id of the sender and, if the request is not encrypted, its command.

Nothing in this part is authenticated. It decides about order and pools, never about permissions. A malformed request
gives an empty header; the worker will refuse the request. Reading takes microseconds, however large or nested a
request is.

Source: docs/protocol.md#request-envelope
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgpack

from saltwire.busy import PATIENT
from saltwire.pack import MAX_CLEAR_BYTES

#: Requests up to so many bytes are unpacked whole. Of larger ones only the plain entries of the outermost map are read.
_WHOLE = 4096

#: Most entries of a large map that are read.
_ENTRIES = 16


class ClearHeader(NamedTuple):
    """The unencrypted fields of a request to the master: command, sender's id, and whether the sender knows the busy reply."""

    #: Command; empty if the request is encrypted.
    cmd: str = ""
    sender: bytes = b""
    #: Whether the sender understands the busy reply (saltwire.busy).
    patient: bool = False


NO_HEADER = ClearHeader()


def of_minion(payload: bytes) -> ClearHeader:
    """Return the ClearHeader of a minion's request on port 4506; an empty one if the request is malformed."""
    outer = _map(payload)
    load = outer.get(b"load")
    patient = outer.get(PATIENT.encode()) is True
    if isinstance(load, dict):
        return ClearHeader(_text(load.get(b"cmd")), _bytes(load.get(b"id")), patient)
    return ClearHeader("", _bytes(outer.get(b"id")), patient)


def is_plausible(payload: bytes) -> bool:
    """Return whether a request on port 4506 may be handed to a worker: above MAX_CLEAR_BYTES only an encrypted one may."""
    return len(payload) <= MAX_CLEAR_BYTES or _map(payload).get(b"enc") == b"aes"


def of_operator(payload: bytes) -> ClearHeader:
    """Return the ClearHeader of an operator's request on port 4507; an empty one if the request is malformed."""
    return ClearHeader(_text(_map(payload).get(b"cmd")), b"", True)


def _map(payload: bytes) -> dict[Any, Any]:
    try:
        found = (
            msgpack.unpackb(payload, raw=True, strict_map_key=False) if len(payload) <= _WHOLE else _outermost(payload)
        )
    except (ValueError, TypeError, msgpack.UnpackException):
        # msgpack raises ValueError for too deep nesting, TypeError for a map as a key.
        return {}
    return found if isinstance(found, dict) else {}


#: Map of a msgpack type byte of text or bytes to the size of its length field, bytes.
_LENGTH_BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}

_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def _outermost(payload: bytes) -> dict[bytes, Any]:
    """Return the outermost msgpack map of a request, with the keys up to the first value that is a list or map; {} if
    the request is no map.

    A value of more than _WHOLE bytes becomes None.
    """
    first = payload[0]
    if 0x80 <= first <= 0x8F:
        count, offset = first & 0x0F, 1
    elif first == 0xDE:
        count, offset = int.from_bytes(payload[1:3], "big"), 3
    else:
        return {}
    found: dict[bytes, Any] = {}
    for _ in range(min(count, _ENTRIES)):
        key, offset = _plain_value(payload, offset)
        value, offset = _plain_value(payload, offset)
        if not isinstance(key, bytes) or offset < 0:
            break
        found[key] = value
    return found


def _plain_value(payload: bytes, offset: int) -> tuple[Any, int]:
    """Return (msgpack value at the offset, offset of the next value); the second is -1 if the value is a list or map."""
    if not 0 <= offset < len(payload):
        return None, -1
    first = payload[offset]
    offset += 1
    if 0xA0 <= first <= 0xBF:
        return payload[offset : offset + (first & 0x1F)], offset + (first & 0x1F)
    if first in _LENGTH_BYTES:
        wide = _LENGTH_BYTES[first]
        length = int.from_bytes(payload[offset : offset + wide], "big")
        offset += wide
        return (payload[offset : offset + length] if length <= _WHOLE else None), offset + length
    if first <= 0x7F:
        return first, offset
    return (_CONSTANTS[first], offset) if first in _CONSTANTS else (None, -1)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else b""


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""
