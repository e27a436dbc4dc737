"""Reads lists of minions and the parts of the master from the store, for commands and runners."""

from __future__ import annotations

import time
from dataclasses import asdict

from masterstore.store import Store


def rows_of(store: Store, minions: list[str], window: int) -> list[dict[str, object]]:
    """Return a map for each minion: id, seen (milliseconds since 1970, None: never), present, and its MinionFacts.
    ``window``: seconds after its last message for which a minion counts as present.
    """
    facts, seen, saltern = store.overview.facts(), store.overview.last_seen(), store.overview.saltern_minions()
    present = store.presence.present(int((time.time() - window) * 1000))
    rows: list[dict[str, object]] = []
    for minion in minions:
        row: dict[str, object] = {"id": minion, "seen": seen.get(minion), "present": minion in present}
        row["saltern"] = minion in saltern
        if fact := facts.get(minion):
            row |= asdict(fact)
        rows.append(row)
    return rows


def topology_of(store: Store, master: str, window: int) -> dict[str, object]:
    """Return what the command ``topology`` returns, for the master with this id. ``window``: seconds of presence."""
    now_ms = int(time.time() * 1000)
    keys, backlog = store.minion_keys.all(), store.event_groups.backlog("reactor")
    present = store.presence.present(now_ms - window * 1000)
    return {
        "master": master,
        "now": now_ms,
        "redis": store.overview.redis(),
        "clients": store.overview.clients(),
        "reqservers": store.overview.reqservers(now_ms),
        "publishers": store.overview.publishers(),
        "newest_publication": store.overview.newest_publication(),
        "reactor": asdict(backlog),
        "lengths": store.overview.lengths(),
        "minions": {state: len(ids) for state, ids in keys.items()}
        | {"present": len(present & set(keys.get("accepted", ())))},
    }
