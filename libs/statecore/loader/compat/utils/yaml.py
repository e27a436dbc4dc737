"""``salt.utils.yaml``."""

from __future__ import annotations

from typing import Any

import yaml as _yaml


def safe_load(stream: Any, Loader: Any = None) -> Any:
    """The value of a YAML text or file."""
    return _yaml.safe_load(stream)


def safe_dump(data: Any, stream: Any = None, **kwargs: Any) -> Any:
    """A value as YAML, into a file or returned."""
    kwargs.setdefault("allow_unicode", True)
    return _yaml.safe_dump(data, stream, **kwargs)


load = safe_load
dump = safe_dump
