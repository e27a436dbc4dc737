"""Commands by which minions fire events on the master's bus. Source: docs/protocol.md#event-blacklist"""

from __future__ import annotations

from collections.abc import Mapping

from saltern.mworker.worker_context import WorkerContext
from saltwire import tags
from saltwire.errors import shown

#: Fields of a message that do not go into the event; the master sets ``_stamp`` itself.
_NOT_FIRED = frozenset({"nonce", "tok", "sig", "_stamp"})


def minion_event(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> None:
    """Fire the events in a minion's request: one event (the whole load under its tag), or a list (each with its own data).

    Events with a tag that the minion may not fire, and events above the minion's limits, are dropped. Returns None.
    """
    pretag = load.get("pretag")
    events = load.get("events")
    if isinstance(events, list):
        size = context.request_bytes / max(1, len(events))
        for event in events:
            if isinstance(event, Mapping) and isinstance(event.get("tag"), str):
                if not context.quotas.may_fire(minion_id, size):
                    return
                _fire_one(context, minion_id, event["tag"], event.get("data", event), pretag)
        return
    tag = load.get("tag")
    if isinstance(tag, str) and context.quotas.may_fire(minion_id, context.request_bytes):
        fire_for(context, minion_id, tag, {name: value for name, value in load.items() if name not in _NOT_FIRED})


def _fire_one(context: WorkerContext, minion_id: str, tag: str, data: object, pretag: object) -> None:
    body = (
        {name: value for name, value in data.items() if name != "_stamp"}
        if isinstance(data, Mapping)
        else {"data": data}
    )
    for one in ([f"{pretag}/{tag}"] if isinstance(pretag, str) and pretag else []) + [tag]:
        fire_for(context, minion_id, one, body)


def fire_for(context: WorkerContext, minion_id: str, tag: str, data: Mapping[str, object]) -> None:
    """Fire an event whose tag or data a minion chose. If the minion may not fire the tag, log a warning and fire nothing.

    The event's field ``id`` is always the sender's, because reactions trust it.
    """
    if tags.minion_may_fire(tag, minion_id):
        context.fire(tag, {**data, "id": minion_id})
    else:
        context.log.warning(
            "the event %s is not for minions to fire and was dropped", shown(tag), extra={"minion": minion_id}
        )


def register_resources(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> bool:
    """Return True and store nothing: minions of Salt 3008 announce resources at their start, but targeting by resources
    is not supported.
    """
    return True
