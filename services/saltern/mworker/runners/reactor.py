"""Runners about the reactor: show and change its table of reactions, and handle events whose reactions failed.

A change applies to all reactors of this master until their option ``reactor`` changes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from masterstore.event_groups import DEAD_KEPT, DeadEvent
from masterstore.events import WANTED_BELIEVED
from saltern.kit.links.event_bus import unpack
from saltern.mworker.runners.runner import RunnerFault, RunnerTools
from saltwire import tags

#: Name of the reactors' group of event readers.
_GROUP = "reactor"

#: Above the number of dead events that are kept, so that a query reads all of them.
_MOST = 2 * DEAD_KEPT

#: Seconds to wait for the reactor's answer; the reactor may be rendering a file.
_PATIENCE = 15.0

#: Seconds to wait until the event bus confirms the subscription to the answer.
_BUS_PATIENCE = 5.0


def list_(tools: RunnerTools, saltenv: str = "base", test: object = None) -> list[dict[str, object]]:
    """Return the reactions in use: [{tag glob: reactor SLS files}].

    CLI Example:

        salt-run reactor.list
    """
    rows: list[dict[str, object]] = _ask(tools, "list", {}, "list-results")["reactors"]
    return rows


def add(
    tools: RunnerTools, event: str, reactors: str | Sequence[str], saltenv: str = "base", test: object = None
) -> dict[str, object]:
    """Add reactor SLS files for a tag glob: {"status": whether they were added, "comment": ...}. A glob that already has
    reactions is not changed.

    CLI Example:

        salt-run reactor.add 'site/*/down' reactors='/srv/reactor/down/*.sls'
    """
    files = [reactors] if isinstance(reactors, str) else list(reactors)
    result: dict[str, object] = _ask(tools, "add", {"event": event, "reactors": files}, "add-complete")["result"]
    # Workers reread the wanted tags only this often. After this wait no event of the new glob is missed.
    time.sleep(WANTED_BELIEVED)
    return result


def delete(tools: RunnerTools, event: str, saltenv: str = "base", test: object = None) -> dict[str, object]:
    """Remove the reactions of a tag glob: {"status": whether there were any, "comment": ...}.

    CLI Example:

        salt-run reactor.delete 'site/*/down'
    """
    result: dict[str, object] = _ask(tools, "delete", {"event": event}, "delete-complete")["result"]
    return result


def is_leader(tools: RunnerTools) -> bool:
    """Return whether the reactor reacts to events."""
    return bool(_ask(tools, "is_leader", {}, "leader/value")["result"])


def set_leader(tools: RunnerTools, value: bool = True) -> bool:
    """Switch reactions to events on or off; return the new setting."""
    if not isinstance(value, bool):
        raise RunnerFault(f"value is True or False, not {value!r}")
    return bool(_ask(tools, "set_leader", {"id": tools.options.id, "value": value}, "leader/value")["result"])


def backlog(tools: RunnerTools) -> dict[str, int]:
    """Return numbers of events as {"waiting", "in_hand", "missed", "dead"}: those that wait for a reactor, that a
    reactor is handling, that left the stream before a reactor read them, and whose reactions were given up.

    CLI Example:

        salt-run reactor.backlog
    """
    found = tools.store.event_groups.backlog(_GROUP)
    return {"waiting": found.waiting, "in_hand": found.in_hand, "missed": found.missed, "dead": found.dead}


def dead(tools: RunnerTools, limit: int = 100) -> dict[str, dict[str, object]]:
    """Return the events whose reactions failed ``reactor_tries`` times, newest first: {id: {tag, data, why, tries, when}}.

    CLI Example:

        salt-run reactor.dead
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise RunnerFault(f"limit is a number of events, not {limit!r}")
    return {event.id: _shown(event) for event in tools.store.event_groups.dead(_GROUP, limit)}


def retry(tools: RunnerTools, id: str) -> list[str]:
    """Let the reactors handle a dead event again, with all of its reactions. ``id`` is the event's id, or ``all`` for
    all dead events. Return the ids of these events.

    CLI Example:

        salt-run reactor.retry 1795289400123-0
    """
    return _each(tools, id, lambda one: tools.store.event_groups.revive(_GROUP, one, tools.options.events_kept_count))


def drop(tools: RunnerTools, id: str) -> list[str]:
    """Delete a dead event. ``id`` is the event's id, or ``all`` for all dead events. Return the ids of the deleted
    events.

    CLI Example:

        salt-run reactor.drop 1795289400123-0
    """
    return _each(tools, id, lambda one: tools.store.event_groups.drop(_GROUP, one))


def _each(tools: RunnerTools, wanted: str, work: Callable[[str], bool]) -> list[str]:
    """Call ``work`` for one dead event (an event whose reactions failed for good), or for all of them if ``wanted`` is "all";
    return their ids. Raises RunnerFault for a malformed id, and for an id that no dead event has.
    """
    given = str(wanted)
    if given != "all" and re.fullmatch(r"\d+-\d+", given) is None:
        raise RunnerFault(
            f"'{given}' is no id of an event: they look like 1795289400123-0, and reactor.dead lists them"
        )
    ids = [event.id for event in tools.store.event_groups.dead(_GROUP, _MOST)] if given == "all" else [given]
    done = [one for one in ids if work(one)]
    if given != "all" and not done:
        raise RunnerFault(f"no event {given} was given up (any more); reactor.dead lists them")
    return done


def _shown(event: DeadEvent) -> dict[str, object]:
    found = unpack(event.frame)
    tag, data = found if found is not None else ("", {})
    when = datetime.fromtimestamp(int(event.id.partition("-")[0]) / 1000, UTC)
    return {
        "tag": tag,
        "data": data,
        "why": event.why,
        "tries": event.tries,
        "when": when.isoformat(timespec="seconds"),
    }


def _ask(tools: RunnerTools, order: str, data: dict[str, object], answer: str) -> dict[str, Any]:
    wanted = tags.REACTOR_ORDERS + answer
    tools.events.subscribe(wanted)
    if not tools.events.ready(_BUS_PATIENCE):
        raise RunnerFault("the reactor cannot be asked: the event publisher does not answer")
    tools.sender.fire(tags.REACTOR_ORDERS + order, data)
    deadline = time.monotonic() + _PATIENCE
    while (left := deadline - time.monotonic()) > 0:
        event = tools.events.next(left)
        if event is not None and event[0] == wanted:
            return event[1]
    raise RunnerFault(f"Reactor system is not running: no answer within {_PATIENCE:g} s; is the role reactor up?")
