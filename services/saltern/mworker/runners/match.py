"""Who is meant by a target, for minions that must know (signing policies of ``x509``)."""

from __future__ import annotations

from saltern.kit.links.control import ControlError
from saltern.mworker.runners.runner import RunnerTools


def compound_matches(tools: RunnerTools, expr: str, minion_id: str) -> dict[str, str | bool]:
    """``{"res": MINION}`` where a compound target means an accepted minion, else ``{"res": False}``.

    Minions are let to ask this by the option ``peer_run``: so words about pillar name values exactly, and what cannot
    be understood means nobody.
    """
    try:
        meant = minion_id in tools.minions(expr, "compound_pillar_exact")
    except ControlError:
        meant = False
    return {"res": minion_id if meant else False}
