"""``salt.utils.beacons``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def list_to_dict(config: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All entries in one map, the later over the earlier."""
    return {key: value for entry in config for key, value in entry.items()}


def remove_hidden_options(config: list[dict[str, Any]], whitelist: Sequence[str]) -> list[dict[str, Any]]:
    """The list, which loses the entries whose name begins with ``_`` and is not in ``whitelist``."""
    config[:] = [entry for entry in config if not any(k.startswith("_") and k not in whitelist for k in entry)]
    return config
