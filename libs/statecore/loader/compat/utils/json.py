"""``salt.utils.json``."""

from __future__ import annotations

from json import dump, dumps, load, loads

__all__ = ["dump", "dumps", "load", "loads"]
