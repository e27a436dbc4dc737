"""Runner ``match``: targeting on behalf of minions, needed for the signing policies of ``x509``."""

from __future__ import annotations

from saltern.kit.links.control import ControlError
from saltern.mworker.runners.runner import RunnerTools


def compound_matches(tools: RunnerTools, expr: str, minion_id: str) -> dict[str, str | bool]:
    """Return ``{"res": MINION}`` if a compound target matches an accepted minion, else ``{"res": False}``.

    The option ``peer_run`` can allow minions to call this runner. Therefore terms about pillar match exact values only, and
    an invalid target matches no minion.
    """
    try:
        meant = minion_id in tools.minions(expr, "compound_pillar_exact")
    except ControlError:
        meant = False
    return {"res": minion_id if meant else False}
