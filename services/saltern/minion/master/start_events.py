"""What a minion tells when it is ready for jobs, and when it begins one that asks for that, as stock minions do (protocol
sections 7.1, 10.2)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from saltern.kit.config.minion_options import MinionOptions
from saltwire import tags


def start_events(options: MinionOptions, minion_id: str, grains: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Requests that carry the start events, with the grains that ``start_event_grains`` names."""
    text = f"Minion {minion_id} started at {time.asctime()}"
    told = {name: grains[name] for name in options.start_event_grains if name in grains}
    names = [tags.MINION_START_LEGACY] if options.enable_legacy_startup_events else []
    base = {"cmd": "_minion_event", "data": text, "pretag": None, **({"grains": told} if told else {})}
    return [{**base, "tag": tag} for tag in (*names, tags.minion_start(minion_id))]


def job_started(job: Mapping[str, Any], minion_id: str) -> dict[str, Any] | None:
    """The request that says that the minion begins this publication; None where ``start_event`` does not ask for it."""
    if not job.get("start_event"):
        return None
    told = {"id": minion_id, **{name: job.get(name) for name in ("jid", "fun", "tgt", "tgt_type", "user")}}
    if job.get("metadata") is not None:
        told["metadata"] = job["metadata"]
    return {"cmd": "_minion_event", "data": told, "pretag": None, "tag": tags.job_start(str(job["jid"]), minion_id)}
