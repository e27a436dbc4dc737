"""What a request shows to who has no key: its command where that is in the clear, and who says to have sent it.

Requests of minions are sealed but for sign-ins (protocol section 3); their envelope names the sender. Nothing of it is proved: it
decides about turns and pools, and never about rights. What cannot be read shows nothing; the worker will say so. However large or
nested a request is, looking at it takes microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgpack

from saltwire.busy import PATIENT

#: Requests up to so many bytes are read whole; of larger ones the outermost map alone, as far as its values are plain.
_WHOLE = 4096

#: Entries of a map that are looked at.
_ENTRIES = 16


@dataclass(frozen=True, slots=True)
class ClearHeader:
    """What was seen."""

    #: Empty where it is sealed.
    cmd: str = ""
    sender: bytes = b""
    #: Whether the sender understands that the master is busy (saltwire.busy).
    patient: bool = False


NO_HEADER = ClearHeader()


def of_minion(payload: bytes) -> ClearHeader:
    """What a request on 4506 shows."""
    outer = _map(payload)
    load = outer.get(b"load")
    patient = outer.get(PATIENT.encode()) is True
    if isinstance(load, dict):
        return ClearHeader(_text(load.get(b"cmd")), _bytes(load.get(b"id")), patient)
    return ClearHeader("", _bytes(outer.get(b"id")), patient)


def of_operator(payload: bytes) -> ClearHeader:
    """What a request on 4507 shows."""
    return ClearHeader(_text(_map(payload).get(b"cmd")), b"", True)


def _map(payload: bytes) -> dict[Any, Any]:
    try:
        found = (
            msgpack.unpackb(payload, raw=True, strict_map_key=False) if len(payload) <= _WHOLE else _outermost(payload)
        )
    except (ValueError, TypeError, msgpack.UnpackException):
        # RecursionError and the like of msgpack's are ValueErrors; TypeError: a map as a key.
        return {}
    return found if isinstance(found, dict) else {}


#: First byte of a string or bytes -> how many bytes its length has.
_LENGTH_BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}

_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def _outermost(payload: bytes) -> dict[bytes, Any]:
    """Plain entries of a map, values of more than _WHOLE bytes left out; up to the first value that is not plain."""
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
    """The value at a place, and where the next one begins; -1 where there is none that is plain."""
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
