"""The minion's own affairs: running jobs, refreshing, fetching users' modules (Salt's ``saltutil`` module)."""

from __future__ import annotations

from statecore.builtin.modules.saltutil import fetching, jobs, keys, masters, refreshing
from statecore.builtin.modules.saltutil.fetching import sync_output
from statecore.builtin.modules.saltutil.refreshing import refresh_pillar

#: The modules whose functions make up this one.
PARTS = (jobs, refreshing, fetching, masters, keys)

ALIASES = {
    "refresh_pillar": "refresh_pillar",
    "pillar_refresh": "refresh_pillar",
    "sync_output": "sync_output",
    "sync_outputters": "sync_output",
}

__all__ = ["ALIASES", "PARTS", "refresh_pillar", "sync_output"]
