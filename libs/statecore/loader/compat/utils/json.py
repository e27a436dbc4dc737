"""``salt.utils.json``: Python's, which leaves characters beyond ASCII as they are."""

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


#: The functions of Python's module. Modules may pass them any keyword argument.
_load: Callable[..., object] = _json.load
_loads: Callable[..., object] = _json.loads
_dump: Callable[..., None] = _json.dump
_dumps: Callable[..., str] = _json.dumps


def load(fp: _Readable, **kwargs: object) -> object:
    """The value of a JSON file."""
    kwargs.pop("_json_module", None)
    return _load(fp, **kwargs)


def loads(s: str | bytes | bytearray, **kwargs: object) -> object:
    """The value of a JSON text."""
    kwargs.pop("_json_module", None)
    return _loads(s, **kwargs)


def dump(obj: object, fp: _Writable, **kwargs: object) -> None:
    """A value as JSON into a file."""
    kwargs.pop("_json_module", None)
    _dump(obj, fp, **{"ensure_ascii": False, **kwargs})


def dumps(obj: object, **kwargs: object) -> str:
    """A value as JSON."""
    kwargs.pop("_json_module", None)
    return _dumps(obj, **{"ensure_ascii": False, **kwargs})


def find_json(s: str) -> object:
    """Return the first JSON map or list in a text. Raise ValueError if there is none."""
    decoder = _json.JSONDecoder()
    for at, char in enumerate(s):
        if char in "{[":
            with contextlib.suppress(_json.JSONDecodeError):
                return decoder.raw_decode(s[at:])[0]
    raise ValueError
