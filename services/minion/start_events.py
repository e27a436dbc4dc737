"""What a minion tells when it is ready for jobs, as stock minions do (protocol section 7.1)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from saltwire import tags
from services.kit.minion_options import MinionOptions


def start_events(options: MinionOptions, minion_id: str, grains: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Requests that carry the start events, with the grains that ``start_event_grains`` names."""
    text = f"Minion {minion_id} started at {time.asctime()}"
    told = {name: grains[name] for name in options.start_event_grains if name in grains}
    names = [tags.MINION_START_LEGACY] if options.enable_legacy_startup_events else []
    base = {"cmd": "_minion_event", "data": text, "pretag": None, **({"grains": told} if told else {})}
    return [{**base, "tag": tag} for tag in (*names, tags.minion_start(minion_id))]
