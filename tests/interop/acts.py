"""A day at a master as a table of acts, and what its event bus said of it, reduced to what two masters can be compared by.

``events.json`` holds what a stock master says of this day with a stock minion.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MINION = "web1"

#: Options of either master for the day; ``file_roots`` comes with the tree.
OPTIONS: Mapping[str, Any] = {
    "presence_events": True,
    "state_events": True,
    "fileserver_events": True,
    "auto_accept": False,
}

#: The tree: path -> text.
TREE: Mapping[str, str] = {
    "day.sls": ("fine:\n  test.succeed_with_changes:\n    - fire_event: True\nbad:\n  test.fail_without_changes: []\n"),
    "orch/day.sls": (
        f"ping:\n  salt.function:\n    - name: test.ping\n    - tgt: {MINION}\n"
        "keys:\n  salt.wheel:\n    - name: key.list_all\n"
        "arg:\n  salt.runner:\n    - name: test.arg\n    - arg: [1]\n"
    ),
}

#: Commands of the operator, and the tag of the event (a glob) that the next one waits for. The minion runs and waits for its key.
ACTS: Sequence[tuple[tuple[str, ...], str]] = (
    (("salt-key", "-y", "-a", MINION), f"salt/minion/{MINION}/start"),
    (("salt", MINION, "test.echo", "x", "--metadata", "{why: x}"), ""),
    (("salt", MINION, "test.ping", "--start-event", "--metadata", "{why: y}"), f"salt/job/*/start/{MINION}"),
    (("salt", MINION, "no.such"), ""),
    (("salt", MINION, "event.send", "site/told", "{a: 1}"), "site/told"),
    (("salt", MINION, "event.fire_master", "{a: 1}", "site/fired"), "site/fired"),
    (("salt", MINION, "state.sls", "day"), ""),
    (("salt", MINION, "saltutil.refresh_grains"), ""),
    (("salt", MINION, "beacons.add", "memusage", "[{percent: 1}]"), f"salt/beacon/{MINION}/memusage/"),
    (("salt-run", "test.arg", "1", "a=2"), ""),
    (("salt-run", "error.error", "Exception", "text"), ""),
    (("salt-run", "event.send", "site/run", "{a: 1}"), "site/run"),
    (("salt-run", "fileserver.update"), ""),
    (("salt-run", "state.orchestrate", "orch.day"), "salt/run/*/ret"),
    (("salt-key", "-y", "-r", MINION, "--include-accepted"), ""),
    (("salt-key", "-y", "-d", MINION), ""),
)

#: What is in a tag by chance -> what stands for it.
_CHANCE = ((re.compile(r"\b\d{20}\b"), "JID"), (re.compile(r"(prog/[^/]+)/\d+"), r"\1/N"))

#: Events of the listener's own.
_OWN = ("interop/",)


def reduced(events: Iterable[tuple[str, Any]]) -> dict[str, list[list[str]]]:
    """{tag without what is in it by chance: the different sets of names in its data}, all sorted.

    A minion's event carries its sender's data under ``data``: their names come as ``data.NAME``.
    """
    found: dict[str, set[tuple[str, ...]]] = {}
    for tag, data in events:
        if tag.startswith(_OWN):
            continue
        for pattern, stands in _CHANCE:
            tag = pattern.sub(stands, tag)
        found.setdefault(tag, set()).add(_names(data))
    return {tag: sorted(map(list, names)) for tag, names in sorted(found.items())}


def _names(data: Any) -> tuple[str, ...]:
    if not isinstance(data, Mapping):
        return (type(data).__name__,)
    inner = data.get("data")
    more = [f"data.{name}" for name in inner] if isinstance(inner, Mapping) else []
    return tuple(sorted([*map(str, data), *more]))
