"""Events that minions send to the master's bus (protocol sections 7.1, 7.6)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from saltwire import tags
from services.mworker.desk import Desk


def minion_event(desk: Desk, minion_id: str, load: Mapping[str, Any]) -> None:
    """Fires one event (the whole load under its tag) or a batch (each with its own data). Tags of the master's own are dropped."""
    desk.store.presence.seen(minion_id, int(time.time() * 1000))
    pretag = load.get("pretag")
    events = load.get("events")
    if isinstance(events, list):
        for event in events:
            if isinstance(event, Mapping) and isinstance(event.get("tag"), str):
                _fire_one(desk, minion_id, event["tag"], event.get("data"), pretag)
        return
    tag = load.get("tag")
    if isinstance(tag, str) and tags.minion_may_fire(tag):
        kept = {name: value for name, value in load.items() if name not in ("nonce", "tok", "sig")}
        desk.fire(tag, {**kept, "id": minion_id})


def _fire_one(desk: Desk, minion_id: str, tag: str, data: Any, pretag: Any) -> None:
    body = dict(data) if isinstance(data, Mapping) else {"data": data}
    if isinstance(pretag, str) and pretag:
        desk.fire(f"{pretag}/{tag}", body)
    if tags.minion_may_fire(tag):
        desk.fire(tag, body)
    else:
        desk.log.warning("the event %r is the master's own and was dropped", tag, extra={"minion": minion_id})


def register_resources(desk: Desk, minion_id: str, load: Mapping[str, Any]) -> bool:
    """True: minions of Salt 3008 announce resources at their start; targeting by them is not served, so nothing is kept."""
    return True
