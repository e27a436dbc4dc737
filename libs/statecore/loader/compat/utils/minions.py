"""``salt.utils.minions`` for users' modules: what a master knows of minions, and which minions a target matches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.loader.current_context import context_of
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.ports import MasterCall

#: Type of a target -> execution function that matches it against the minion on which it runs.
_MATCHERS: Mapping[str, str] = {
    "glob": "match.glob",
    "pcre": "match.pcre",
    "list": "match.list",
    "grain": "match.grain",
    "grain_pcre": "match.grain_pcre",
    "pillar": "match.pillar",
    "pillar_pcre": "match.pillar_pcre",
    "ipcidr": "match.ipcidr",
    "compound": "match.compound",
}


def runner(ctx: Context, fun: str, *args: object, **kwargs: object) -> Any:
    """Return the result of the runner function ``fun`` of the running master. Raise CommandError on a minion, or if the
    runner fails.
    """
    if ctx.master is None:
        raise CommandError(f"the runner {fun} can be called on a master only")
    done = ctx.master.run([MasterCall(fun, args, kwargs)])[0]
    if not done["success"]:
        raise CommandError(f"the runner {fun} failed: {done['return']}")
    return done["return"]


def get_minion_data(minion: str | None, opts: object) -> tuple[str | None, Any, Any]:
    """Return (minion id, its grains, its pillar) from the master's cache. Grains or pillar that the cache lacks are
    None; on a minion both are.
    """
    ctx = context_of("salt.utils.minions.get_minion_data")
    if ctx.master is None or not minion:
        return minion if minion else None, None, None
    grains = runner(ctx, "cache.grains", minion, tgt_type="list").get(minion)
    pillar = runner(ctx, "cache.pillar", minion, tgt_type="list").get(minion)
    return minion, grains or None, pillar or None


class CkMinions:
    """Finds the minions that a target matches."""

    def __init__(self, opts: object) -> None:
        """Accept and ignore the options: the running master is used."""

    def check_minions(
        self, expr: str, tgt_type: str = "glob", delimiter: str = ":", greedy: bool = True, fun: object = None
    ) -> dict[str, list[str]]:
        """Return {"minions": ids of the minions that the target ``expr`` matches, "missing": ids in a list target that
        are not accepted}.

        On a master, minions are matched by the grains and pillar that it knows. Elsewhere (in an external pillar) only
        the minion whose pillar is compiled is compared. Raise CommandError for an unknown type of target.
        """
        ctx = context_of("salt.utils.minions.CkMinions.check_minions")
        if tgt_type not in _MATCHERS:
            raise CommandError(f"unknown type of target {tgt_type!r}; there are {', '.join(_MATCHERS)}")
        if ctx.master is None:
            minion = str(ctx.opts["id"])
            return {"minions": [minion] if ctx.call(_MATCHERS[tgt_type], expr) else [], "missing": []}
        if tgt_type == "list":
            names = expr.split(",") if isinstance(expr, str) else [str(each) for each in expr]
            accepted = ctx.master.wheel(MasterCall("key.list", (), {"match": "acc"}))["return"].get("minions", [])
            found = [name for name in names if name in accepted]
            return {"minions": found, "missing": [name for name in names if name not in found]}
        return {"minions": sorted(runner(ctx, "cache.grains", expr, tgt_type=tgt_type)), "missing": []}

    def connected_ids(self, subset: object = None, show_ip: bool = False) -> set[str]:
        """Return the ids of the minions that are connected to the master. Raise CommandError on a minion."""
        ctx = context_of("salt.utils.minions.CkMinions.connected_ids")
        if ctx.master is None:
            raise CommandError("only a master knows which minions are connected")
        return {str(each) for each in ctx.master.wheel(MasterCall("minions.connected"))["return"]}
