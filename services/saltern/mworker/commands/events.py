"""Events that minions fire on the master's bus. Source: docs/protocol.md#event-blacklist"""

from __future__ import annotations

from collections.abc import Mapping

from saltern.mworker.commands.resend import heard_of
from saltern.mworker.worker_context import WorkerContext
from saltwire import tags

#: Kinds of Salt's own tags that a minion may fire about itself. Others (returns, sign-ins, keys, presence) are the master's alone,
#: because listeners act on them.
_OF_MINIONS = frozenset({"job_start", "job_progress", "minion_start", "beacon"})

#: Fields of a message that do not go into the event; the master sets ``_stamp`` itself.
_NOT_FIRED = frozenset({"nonce", "tok", "sig", "_stamp"})


def minion_event(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> None:
    """Fire one event (the whole load under its tag) or a batch of events (each with its own data). Forbidden tags are
    dropped.
    """
    heard_of(context, minion_id, started=load.get("tag") == tags.minion_start(minion_id))
    pretag = load.get("pretag")
    events = load.get("events")
    if isinstance(events, list):
        for event in events:
            if isinstance(event, Mapping) and isinstance(event.get("tag"), str):
                _fire_one(context, minion_id, event["tag"], event.get("data", event), pretag)
        return
    tag = load.get("tag")
    if isinstance(tag, str) and _allowed(context, minion_id, tag):
        kept = {name: value for name, value in load.items() if name not in _NOT_FIRED}
        context.fire(tag, {**kept, "id": minion_id})


def _fire_one(context: WorkerContext, minion_id: str, tag: str, data: object, pretag: object) -> None:
    body = (
        {name: value for name, value in data.items() if name != "_stamp"}
        if isinstance(data, Mapping)
        else {"data": data}
    )
    for one in ([f"{pretag}/{tag}"] if isinstance(pretag, str) and pretag else []) + [tag]:
        if _allowed(context, minion_id, one):
            # Readers of Salt's own tags trust the id in the data, so it is set to the sender's.
            context.fire(one, body | {"id": minion_id} if "id" in body and tags.is_salts(one) else body)


def _allowed(context: WorkerContext, minion_id: str, tag: str) -> bool:
    """Return whether a minion may fire an event with this tag: no tag that only the master fires, none about another minion."""
    about = tags.parse(tag)
    own = about is None or (about.kind in _OF_MINIONS and about.minion == minion_id)
    if own and tags.minion_may_fire(tag):
        return True
    context.log.warning("the event %r is not for minions to fire and was dropped", tag, extra={"minion": minion_id})
    return False


def register_resources(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> bool:
    """Return True and store nothing: minions of Salt 3008 announce resources at their start, but targeting by resources
    is not supported.
    """
    return True
