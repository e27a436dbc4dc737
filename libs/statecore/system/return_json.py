"""JSON of returns and events for returners: values that JSON does not have become text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping


def plain(value: object) -> object:
    """Return a copy of a value that JSON and databases can hold.

    Bytes, dates and other values become text, tuples and sets lists, keys text. NUL characters and lone surrogates,
    which databases refuse, become U+FFFD.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode() if _is_odd(value) else value
    if isinstance(value, bytes):
        return plain(value.decode("utf-8", "backslashreplace"))
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return [plain(item) for item in sorted(value, key=str)]
    return [plain(item) for item in value] if isinstance(value, list | tuple) else plain(str(value))


def as_json(value: object) -> str:
    """Return a value as JSON text; values that JSON does not have are first converted by ``plain``."""
    return json.dumps(plain(value))


def _is_odd(text: str) -> bool:
    if "\0" in text:
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
