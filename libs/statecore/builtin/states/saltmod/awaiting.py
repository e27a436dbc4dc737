"""``salt.wait_for_event``: an orchestration waits for what the event bus tells."""

from __future__ import annotations

import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from statecore.builtin.states.saltmod.master import entry, master_of
from statecore.model.context import Context


def wait_for_event(
    ctx: Context, name: str, id_list: list[Any], event_id: str = "id", timeout: float = 300, node: str = "master"
) -> dict[str, Any]:
    """Waits until events whose tags match the glob ``name`` have named everything in ``id_list``.

    event_id
        the key of an event's data, or of ``data`` in it, that holds what it names: a value, or a list of values
    timeout
        seconds

    ``node`` is ``master``: an orchestration hears the master's bus. Seed 004; Salt: states/saltmod.py.
    """
    if node != "master":
        return entry(name, False, f"not supported: node={node}. An orchestration hears the events of its master")
    if not isinstance(id_list, list):
        return entry(name, False, f"id_list must be a list of what is waited for, not {type(id_list).__name__}")
    if ctx.test:
        return entry(name, None, f"Orchestration would wait for event '{name}'")
    left = list(id_list)
    seen: list[Any] = []
    began = time.monotonic()
    for tag, data in master_of(ctx).events(_prefix(name), timeout):
        if not fnmatchcase(tag, name):
            continue
        for value in _named(data, event_id):
            if value in left:
                left.remove(value)
                seen.append(value)
        if not left:
            break
    changes = {"minions_seen": seen} if seen else {}
    if left:
        return entry(name, False, f"Timeout value reached. Not seen: {', '.join(map(str, left))}", changes)
    return entry(name, True, f"All events seen in {time.monotonic() - began} seconds.", changes)


def _prefix(glob: str) -> str:
    return glob[: min((at for at in map(glob.find, "*?[") if at >= 0), default=len(glob))]


def _named(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    if value is None and isinstance(data.get("data"), Mapping):
        value = data["data"].get(key)
    return [] if value is None else value if isinstance(value, list) else [value]
