"""``salt.utils.master`` for users' runners: what the master knows of minions."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from typing import Any

from statecore.loader.compat.utils.minions import CkMinions, runner
from statecore.loader.current_context import context_of
from statecore.model.ports import MinionJob


class MasterPillarUtil:
    """Grains, pillar and mine data of the minions that a target matches, from the master's cache."""

    def __init__(
        self, tgt: object = "", tgt_type: str = "glob", saltenv: str | None = None, *args: object, **kwargs: object
    ) -> None:
        """Store the target (``tgt``, ``tgt_type``). The other arguments, by which Salt decides whether to ask minions,
        are ignored: minions are never asked.
        """
        self.tgt = tgt
        self.tgt_type = tgt_type

    def _asked(self, fun: str) -> dict[str, Any]:
        found = runner(context_of("salt.utils.master.MasterPillarUtil"), fun, self.tgt, tgt_type=self.tgt_type)
        return dict(found)

    def get_minion_grains(self) -> dict[str, Any]:
        """Map of minion id to grains, for the minions that the target matches. Raise CommandError on a minion."""
        return self._asked("cache.grains")

    def get_minion_pillar(self) -> dict[str, Any]:
        """Map of minion id to pillar, for the minions that the target matches. Raise CommandError on a minion."""
        return self._asked("cache.pillar")

    def get_cached_mine_data(self) -> dict[str, Any]:
        """Map of minion id to mine data, for the minions that the target matches. Raise CommandError on a minion."""
        return self._asked("cache.mine")

    def clear_cached_minion_data(
        self,
        clear_pillar: bool = False,
        clear_grains: bool = False,
        clear_mine: bool = False,
        clear_mine_func: str | None = None,
    ) -> bool:
        """Delete data of the targeted minions from the master's cache: pillar, grains, the whole mine, or with
        ``clear_mine_func`` one function of the mine. Return True. Raise CommandError on a minion.
        """
        context = context_of("salt.utils.master.MasterPillarUtil")
        chosen = {
            "cache.clear_pillar": clear_pillar,
            "cache.clear_grains": clear_grains,
            "cache.clear_mine": clear_mine,
        }
        for fun, wanted in chosen.items():
            if wanted:
                runner(context, fun, self.tgt, tgt_type=self.tgt_type)
        if clear_mine_func:
            runner(
                context, "cache.clear_mine_func", self.tgt, tgt_type=self.tgt_type, clear_mine_func_flag=clear_mine_func
            )
        return True


def ping_all_connected_minions(opts: object) -> None:
    """Publish ``test.ping`` to all minions that are connected to the master, and do not wait. Raise CommandError on a
    minion.
    """
    context = context_of("salt.utils.master.ping_all_connected_minions")
    minions = sorted(CkMinions(opts).connected_ids())
    if minions and context.master is not None:
        context.master.publish(MinionJob(minions, "test.ping", "list"))


def get_running_jobs(opts: object) -> list[dict[str, Any]]:
    """List of the jobs that run now on minions of this master, each a map with its ``jid``. Raise CommandError on a
    minion.
    """
    found = runner(context_of("salt.utils.master.get_running_jobs"), "jobs.active")
    return [{"jid": jid, **job} for jid, job in found.items()]


def get_values_of_matching_keys(pattern_dict: Mapping[str, object], user_name: str) -> list[Any]:
    """Return one list of the values whose keys (globs or regular expressions) in ``pattern_dict`` match a user's
    name.
    """
    found: list[Any] = []
    for expression, values in pattern_dict.items():
        if _matches(user_name, expression):
            found.extend(values if isinstance(values, list | tuple) else [values])
    return found


def _matches(name: str, expression: str) -> bool:
    if name == expression or fnmatch.fnmatchcase(name, expression):
        return True
    try:
        return re.fullmatch(expression, name) is not None
    except re.error:
        return False
