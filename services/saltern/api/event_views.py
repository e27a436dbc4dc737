"""Which events of the master's bus a user of the API may see. No I/O.

A user with ``@events`` or ``@jobs`` sees all. Any other user sees events of the own jobs and runners, returns and progress
of the minions that the user's rows cover, what else these minions say, and which minions start and are present. Of
others' jobs on these minions it sees that they begin, without arguments and target.

Source: docs/api.md#events
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from saltern.api.event_feed import FeedEvent

#: Fields of the event of a new job that are shown of others' jobs.
_PLAIN = ("jid", "fun", "user", "_stamp")

#: Second parts of tags ``salt/<part>/<jid>/...`` of jobs, and of functions of the master.
_JOB, _MASTERS = "job", ("run", "wheel")

#: Most own JIDs that are remembered for one listener.
_MOST = 10_000


@dataclass(frozen=True)
class EventView:
    """What a user may see, as the master says."""

    #: All events.
    everything: bool
    #: The minions that the user's rows cover; None: all.
    minions: frozenset[str] | None
    #: The text that jobs of the user carry as their owner.
    owner: str

    def covers(self, minion: object) -> bool:
        """Return whether the user may see what a minion says."""
        return isinstance(minion, str) and (self.minions is None or minion in self.minions)


#: The view of a listener about whom the master has said nothing yet.
NOTHING = EventView(everything=False, minions=frozenset(), owner="")


def view_of(answer: Mapping[str, object]) -> EventView:
    """Return the EventView in the master's answer about a token. A worker of the last release knows no views: until it is
    replaced, every user with a right sees all events, as before.
    """
    told = answer.get("events")
    if not isinstance(told, Mapping):
        return EventView(everything=True, minions=None, owner="")
    minions = told.get("minions")
    names = frozenset(map(str, minions)) if isinstance(minions, list) else None
    return EventView(told.get("everything") is True, names, str(told.get("owner")))


@dataclass
class EventFilter:
    """The events that one listener sees, in the order in which they come."""

    view: EventView
    #: JIDs of the user's own jobs and runners of which an event came by.
    _own: dict[str, None] = field(default_factory=dict)

    def shown(self, event: FeedEvent) -> FeedEvent | None:
        """Return the event as the user sees it; None if it is not for this user."""
        if self.view.everything:
            return event
        parts = event.tag.split("/")
        if parts[0] == "salt" and len(parts) > 3 and parts[1] in (_JOB, *_MASTERS):
            return self._of_a_job(event, parts)
        if parts[:2] == ["salt", "presence"] or (parts[:2] == ["salt", "minion"] and parts[-1] == "start"):
            return event
        return event if self.view.covers(event.data.get("id")) else None

    def _of_a_job(self, event: FeedEvent, parts: list[str]) -> FeedEvent | None:
        jid, what = parts[2], parts[3]
        # The master fires these events; the data of a return is the minion's own.
        by_master = what == "new" or parts[1] in _MASTERS
        if by_master and self.view.owner and event.data.get("owner") == self.view.owner:
            self._own[jid] = None
            if len(self._own) > _MOST:
                del self._own[next(iter(self._own))]
        if jid in self._own:
            return event
        if parts[1] in _MASTERS:
            return None
        if what in ("ret", "prog") and len(parts) > 4:
            return event if self.view.covers(parts[4]) else None
        return self._begun(event) if what == "new" else None

    def _begun(self, event: FeedEvent) -> FeedEvent | None:
        """Return the event of another's new job without what is not for the user."""
        minions = event.data.get("minions")
        seen = [name for name in minions if self.view.covers(name)] if isinstance(minions, list) else []
        if not seen:
            return None
        data = {name: event.data[name] for name in _PLAIN if name in event.data}
        data |= {"arg": [], "tgt": seen, "tgt_type": "list", "minions": seen, "missing": []}
        return replace(event, text=json.dumps({"tag": event.tag, "data": data}, default=str), data=data)
