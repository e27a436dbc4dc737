"""``salt.utils.json`` for users' modules: Python's json, but non-ASCII characters are not escaped."""

from __future__ import annotations

import contextlib
import json as _json
from collections.abc import Callable
from json import JSONDecodeError as JSONDecodeError
from typing import Protocol

__all__ = ["JSONDecodeError", "dump", "dumps", "find_json", "load", "loads"]


class _Readable(Protocol):
    def read(self) -> str | bytes: ...


class _Writable(Protocol):
    def write(self, text: str, /) -> object: ...


# Users' modules may pass any keyword argument on to Python's functions.
_load: Callable[..., object] = _json.load
_loads: Callable[..., object] = _json.loads
_dump: Callable[..., None] = _json.dump
_dumps: Callable[..., str] = _json.dumps


def load(fp: _Readable, **kwargs: object) -> object:
    """Return the data of an open JSON file. Raise ValueError if the content is not JSON."""
    kwargs.pop("_json_module", None)
    return _load(fp, **kwargs)


def loads(s: str | bytes | bytearray, **kwargs: object) -> object:
    """Return the data of a JSON text. Raise ValueError if it is not JSON."""
    kwargs.pop("_json_module", None)
    return _loads(s, **kwargs)


def dump(obj: object, fp: _Writable, **kwargs: object) -> None:
    """Write data as JSON to the open file ``fp``."""
    kwargs.pop("_json_module", None)
    _dump(obj, fp, **{"ensure_ascii": False, **kwargs})


def dumps(obj: object, **kwargs: object) -> str:
    """Return data as JSON text."""
    kwargs.pop("_json_module", None)
    return _dumps(obj, **{"ensure_ascii": False, **kwargs})


def find_json(s: str) -> object:
    """Return the data of the first JSON map or list inside a text, such as a program's output. Raise ValueError if
    there is none.
    """
    decoder = _json.JSONDecoder()
    for at, char in enumerate(s):
        if char in "{[":
            with contextlib.suppress(_json.JSONDecodeError):
                return decoder.raw_decode(s[at:])[0]
    raise ValueError
