"""JSON as Salt's Redis returner writes it, extended for values that JSON does not have.

Bytes that are UTF-8 become text; other bytes become ``{"__bytes__": base64}`` and are bytes again after reading. Sets
become lists, times their ISO form, other objects their ``str()``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import date, datetime

from masterstore.errors import StoreCorrupt, StoreError

#: Key of a map that stands for bytes.
_MARK = "__bytes__"


def dumps(value: object) -> str:
    """Return a value as JSON text for Redis. Raises StoreError for a value that is nested too deeply or contains
    itself.
    """
    try:
        try:
            packed = _ENCODE(value)
        except (TypeError, ValueError):
            packed = _ENCODE(_portable(value))
        return packed if _encodable(packed) else json.dumps(json.loads(packed))
    except (RecursionError, ValueError) as error:
        raise StoreError(f"a value nests too deeply to be kept, or contains itself: {error}") from error


def loads(data: bytes | str, key: str) -> object:
    """Return the value of JSON text from Redis. Raises StoreCorrupt, which names the Redis key ``key``, if it is not
    JSON.
    """
    try:
        # A look at the text is cheaper than one at each of its maps.
        marked = (_MARK.encode() if isinstance(data, bytes) else _MARK) in data  # type: ignore[operator]
        return json.loads(data, object_hook=_revived if marked else None)
    except (ValueError, RecursionError) as error:
        raise StoreCorrupt(key, f"not JSON: {error}") from error


def loads_map(data: bytes | str, key: str) -> dict[str, object]:
    """Return the map in JSON text from Redis. Raises StoreCorrupt, which names the Redis key ``key``, for any other
    value.
    """
    value = loads(data, key)
    if not isinstance(value, dict):
        raise StoreCorrupt(key, f"a {type(value).__name__}, not a map")
    return value


def number(data: bytes | str | float | None, key: str) -> int:
    """Return a whole number read from Redis; 0 for a missing one. Raises StoreCorrupt, which names ``key``."""
    try:
        return int(data or 0)
    except (ValueError, OverflowError) as error:
        raise StoreCorrupt(key, f"no number: {error}") from error


def _revived(found: dict[str, object]) -> object:

    if found.keys() != {_MARK}:
        return found
    encoded = found[_MARK]
    try:
        return base64.b64decode(encoded, validate=True) if isinstance(encoded, str) else found
    except ValueError:
        return found


def _encodable(packed: str) -> bool:

    try:
        packed.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fallback(value: object) -> object:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {_MARK: base64.b64encode(value).decode()}
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, datetime | date):
        return value.isoformat()
    return dict(value) if isinstance(value, Mapping) else str(value)


def _portable(value: object) -> object:
    """Return a copy whose map keys are all text, as JSON requires."""
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else str(_fallback(key)): _portable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_portable(item) for item in value]
    return value


#: Made once: ``json.dumps`` makes one for each value that is not of the plainest kind.
_ENCODE = json.JSONEncoder(default=_fallback, ensure_ascii=False).encode
