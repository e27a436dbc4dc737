"""Which accepted minions a job waits for (protocol section 11.2). Whether it runs is decided by each minion for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from services.mworker.desk import Desk
from statecore.match import Subject, compile_target

#: Target types that need nothing but ids.
_BY_ID = frozenset({"glob", "pcre", "list"})


@dataclass(frozen=True)
class Resolved:
    """Whom a job is for."""

    minions: tuple[str, ...]
    #: Names in a list target without an accepted key.
    missing: tuple[str, ...] = ()


def resolve(desk: Desk, tgt: Any, tgt_type: str, delimiter: str = ":") -> Resolved:
    """Accepted minions that match. Raises statecore.match.TargetError for an expression that cannot be understood."""
    accepted = desk.store.minion_keys.ids("accepted")
    if tgt_type == "list":
        return _listed(tgt, accepted)
    matcher = compile_target(tgt, tgt_type, delimiter=delimiter, nodegroups=desk.options.nodegroups)
    if tgt_type in _BY_ID:
        return Resolved(tuple(name for name in accepted if matcher(Subject(name, {}))))
    grains = desk.store.cache.grains_of(accepted)
    return Resolved(tuple(name for name in accepted if matcher(Subject(name, grains.get(name) or {"id": name}))))


def _listed(tgt: Any, accepted: Sequence[str]) -> Resolved:
    names = [name.strip() for name in tgt.split(",")] if isinstance(tgt, str) else [str(name) for name in tgt]
    wanted = dict.fromkeys(name for name in names if name)
    known = set(accepted)
    return Resolved(
        tuple(name for name in wanted if name in known),
        tuple(name for name in wanted if name not in known),
    )
