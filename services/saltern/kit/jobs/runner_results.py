"""Collects the results of runners from the event bus, and from the job cache where the bus lost the event."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping

from saltern.kit.jobs.wait import TRIMMED
from saltern.kit.links.answers import RunnerAnswer
from saltern.kit.links.control import CONTROL_PATIENCE, ControlClient
from saltern.kit.links.event_bus import EventSubscriber

#: Seconds between two reads of the job cache, by whether the bus confirmed the subscription.
_LOOK_EVERY = {False: 0.5, True: 5.0}


class NotYet(Exception):
    """Raised when a runner has not ended within the timeout. The message and ``jid`` are the runner's JID."""

    def __init__(self, jid: str) -> None:
        super().__init__(jid)
        self.jid = jid


def runner_results(
    jobs: Collection[RunnerAnswer],
    control: ControlClient,
    bus: EventSubscriber,
    clock: Callable[[], float],
    master_id: str,
    *,
    heard: bool,
    timeout: float = 0,
    on_event: Callable[[str, Mapping[str, object]], None] | None = None,
) -> dict[str, Mapping[str, object]]:
    """Wait for runners to end; return {JID: result}, where a result is the map with ``return``, ``success`` and
    more.

    ``jobs``: the master's answers to the command ``runner``. ``heard``: the bus has confirmed a subscription
    to ``salt/run/``; if False, the job cache is read more often. ``on_event``: called with (end of the tag,
    data) for each event that a runner fires itself (``__jid_event__``). Raises NotYet after ``timeout``
    seconds (0: no limit), and the errors of ControlClient.
    """
    tags = {f"{job['tag']}/ret": str(job["jid"]) for job in jobs}
    found: dict[str, Mapping[str, object]] = {}
    start = clock()
    end = start + timeout if timeout > 0 else math.inf
    look_at = min(start + _LOOK_EVERY[heard], end)
    while waiting := [jid for jid in tags.values() if jid not in found]:
        event = bus.next(max(look_at - clock(), 0.0))
        jid = tags.get(event[0], "") if event is not None else ""
        if event is not None and jid and event[1].get("return") != TRIMMED:
            found[jid] = event[1]
            continue
        if event is not None and on_event is not None and (suffix := _suffix(event[0], jobs)):
            on_event(suffix, event[1])
        now = clock()
        if now < look_at and not jid:
            continue
        for each in waiting:
            stored = control.call("job_returns", timeout=CONTROL_PATIENCE, jid=each)
            if stored:
                found[each] = stored.get(master_id) or next(iter(stored.values()))
        if now >= end and len(found) < len(tags):
            raise NotYet(next(jid for jid in tags.values() if jid not in found))
        look_at = min(now + _LOOK_EVERY[heard], end)
    return found


#: Ends of the tags of events that every runner and every orchestration has. Other ends are events that the runner fires itself.
_OF_THE_JOB = ("new", "ret", "args")


def _suffix(tag: str, jobs: Iterable[RunnerAnswer]) -> str:
    """Return the last part of an event's tag if one of the runners ``jobs`` fired the event itself
    (``__jid_event__``); "" for any other event.
    """
    for job in jobs:
        stem, suffix = f"{job['tag']}/", tag.removeprefix(f"{job['tag']}/")
        if tag.startswith(stem) and suffix not in _OF_THE_JOB:
            return suffix
    return ""
