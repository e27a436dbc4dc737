"""``salt-run state.event``: prints events of the master's bus as lines of ``tag<TAB>json``."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from saltern.kit.command.command_line import CommandError, Exit
from saltern.kit.command.output.flags import Printer
from saltern.kit.links.event_bus import EventSubscriber

#: Seconds of one wait for an event. The value has no effect on the output.
_ONE_WAIT = 60.0


@dataclass(frozen=True)
class _EventWatch:
    """The arguments of the runner state.event, in Salt's order. A ``count`` of -1 means no limit."""

    tagmatch: str = "*"
    count: int = -1
    quiet: bool = False
    sock_dir: object = None
    pretty: bool = False
    node: str = "master"


def watch_events(bus: EventSubscriber, printer: Printer, arg: Sequence[Any], kwarg: Mapping[str, Any]) -> int:
    """Print the events whose tag matches ``tagmatch``, until ``count`` of them were printed (-1: no limit). Return the exit code.

    Raises CommandError (exit code 64) for other arguments than those of state.event.
    """
    try:
        watch = _EventWatch(*arg, **kwarg)
    except TypeError as error:
        problem = str(error).replace(f"{_EventWatch.__name__}.__init__()", "state.event")
        raise CommandError(f"{problem}; it takes tagmatch, count, quiet, pretty", Exit.USAGE) from error
    _check(watch)
    left = watch.count
    while left:
        event = bus.next(_ONE_WAIT)
        if event is None or not tag_matches(event[0], str(watch.tagmatch)):
            continue
        if not watch.quiet:
            printer.say(f"{event[0]}\t{_shown(event[1], pretty=bool(watch.pretty))}")
        left -= left > 0
    return Exit.OK


def _check(watch: _EventWatch) -> None:
    """Raise CommandError (exit code 64) if an argument of state.event has the wrong type."""
    rows = (
        ("tagmatch", watch.tagmatch, (str, int), "a glob or a regular expression of tags"),
        ("count", watch.count, int, "a whole number"),
        ("quiet", watch.quiet, (bool, int), "True or False"),
        ("pretty", watch.pretty, (bool, int), "True or False"),
    )
    for name, value, kinds, what in rows:
        if not isinstance(value, kinds) or (name == "count" and isinstance(value, bool)):
            raise CommandError(f"state.event: {name} must be {what}, not {value!r}", Exit.USAGE)
    if watch.node != "master":
        raise CommandError(f"state.event: node {watch.node!r}: only the master's bus exists", Exit.USAGE)


def tag_matches(tag: str, expression: str) -> bool:
    """Return whether the expression, as a glob or as a regular expression, matches the whole event tag."""
    if fnmatch.fnmatch(tag, expression):
        return True
    try:
        return re.fullmatch(expression, tag) is not None
    except re.error:
        return False


def _shown(data: Mapping[str, object], *, pretty: bool) -> str:
    return json.dumps(data, ensure_ascii=False, sort_keys=pretty, indent=4 if pretty else None, default=repr)
