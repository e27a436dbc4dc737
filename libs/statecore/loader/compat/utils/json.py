"""``salt.utils.json``: Python's, which leaves characters beyond ASCII as they are."""

from __future__ import annotations

import contextlib
import json as _json
from json import JSONDecodeError as JSONDecodeError
from typing import Any

__all__ = ["JSONDecodeError", "dump", "dumps", "find_json", "load", "loads"]


def load(fp: Any, **kwargs: Any) -> Any:
    """The value of a JSON file."""
    kwargs.pop("_json_module", None)
    return _json.load(fp, **kwargs)


def loads(s: Any, **kwargs: Any) -> Any:
    """The value of a JSON text."""
    kwargs.pop("_json_module", None)
    return _json.loads(s, **kwargs)


def dump(obj: Any, fp: Any, **kwargs: Any) -> None:
    """A value as JSON into a file."""
    kwargs.pop("_json_module", None)
    _json.dump(obj, fp, **{"ensure_ascii": False, **kwargs})


def dumps(obj: Any, **kwargs: Any) -> str:
    """A value as JSON."""
    kwargs.pop("_json_module", None)
    return _json.dumps(obj, **{"ensure_ascii": False, **kwargs})


def find_json(s: str) -> Any:
    """Return the first JSON map or list in a text. Raise ValueError if there is none."""
    decoder = _json.JSONDecoder()
    for at, char in enumerate(s):
        if char in "{[":
            with contextlib.suppress(_json.JSONDecodeError):
                return decoder.raw_decode(s[at:])[0]
    raise ValueError
