"""Jobs, refreshes, users' modules and keys of the minion itself: Salt's ``saltutil`` execution module."""

from __future__ import annotations

from statecore.builtin.modules.saltutil import jobs, masters, minion_data, sync
from statecore.builtin.modules.saltutil.minion_data import refresh_pillar
from statecore.builtin.modules.saltutil.sync import sync_output

#: The modules that define the functions of ``saltutil``.
PARTS = (jobs, minion_data, sync, masters)

ALIASES = {
    "refresh_pillar": "refresh_pillar",
    "pillar_refresh": "refresh_pillar",
    "sync_output": "sync_output",
    "sync_outputters": "sync_output",
}

__all__ = ["ALIASES", "PARTS", "refresh_pillar", "sync_output"]
