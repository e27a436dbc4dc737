"""``salt.utils.beacons`` for users' beacons: converts a beacon's configuration from a list of maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def list_to_dict(config: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return a beacon's configuration, which is a list of maps, merged into one map. Later maps override earlier ones."""
    return {key: value for entry in config for key, value in entry.items()}


def remove_hidden_options(config: list[dict[str, object]], whitelist: Sequence[str]) -> list[dict[str, object]]:
    """Remove the maps with a key that starts with ``_`` from a beacon's configuration, and return this list.

    Keys in ``whitelist`` are allowed.
    """
    config[:] = [entry for entry in config if not any(k.startswith("_") and k not in whitelist for k in entry)]
    return config
