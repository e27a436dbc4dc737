"""The mine: what minions offer to each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.mworker.desk import Desk
from services.mworker.targets import resolve
from statecore.match import TargetError


def store(desk: Desk, minion_id: str, load: Mapping[str, Any]) -> bool:
    """Keeps ``data`` ({function: value}) of the sender; ``clear`` forgets the rest first."""
    data = load.get("data")
    if not isinstance(data, Mapping):
        return False
    if load.get("clear"):
        desk.store.cache.mine_flush(minion_id)
    desk.store.cache.mine_set(minion_id, data)
    return True


def get(desk: Desk, minion_id: str, load: Mapping[str, Any]) -> dict[str, Any]:
    """One function: {minion: value}; several: {function: {minion: value}}."""
    fun = load.get("fun", "")
    functions = fun.split(",") if isinstance(fun, str) else [str(name) for name in fun] if isinstance(fun, list) else []
    try:
        target = resolve(desk, load.get("tgt", "*"), str(load.get("tgt_type", "glob")), by_pillar=False)
    except TargetError as error:
        desk.log.warning("the target of a mine request is not understood: %s", error, extra={"minion": minion_id})
        return {}
    found = {name: desk.store.cache.mine_get(target.minions, name) for name in functions}
    return found[functions[0]] if isinstance(fun, str) and len(functions) == 1 else found


def delete(desk: Desk, minion_id: str, load: Mapping[str, Any]) -> bool:
    """Forgets one function of the sender."""
    return desk.store.cache.mine_delete(minion_id, str(load.get("fun", "")))


def flush(desk: Desk, minion_id: str, load: Mapping[str, Any]) -> bool:
    """Forgets all that the sender offers."""
    desk.store.cache.mine_flush(minion_id)
    return True
