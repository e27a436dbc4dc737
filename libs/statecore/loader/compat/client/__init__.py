"""``salt.client`` for users' modules: LocalClient publishes jobs from runners, Caller calls the minion's own functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.clients.local import Answer as Answer
from statecore.clients.local import JobClient
from statecore.loader.compat.master_client import MasterClient
from statecore.loader.compat.utils import event as event_bus
from statecore.loader.compat.utils.minions import CkMinions, runner
from statecore.loader.current_context import context_of
from statecore.loader.dunders import SaltTable
from statecore.model.ports import Master


class LocalClient(MasterClient, JobClient):
    """Publishes jobs to minions and waits for their returns. It works in runners only: a minion cannot publish through
    a master.

    ``expr_form``, the old name of ``tgt_type``, is accepted everywhere.
    """

    NAME = "salt.client.LocalClient"
    NO_MASTER = "salt.client.LocalClient works in runners only: on a minion, use __salt__['publish.publish']"

    @property
    def event(self) -> event_bus.LocalClientEvent:
        """The master's event bus, with the methods of ``salt.utils.event.SaltEvent``."""
        return event_bus.LocalClientEvent()

    def gather_minions(self, tgt: Any, expr_form: str = "glob") -> list[str]:
        """Return the ids of the minions that a target matches. Raise CommandError on a minion."""
        self._master("gather_minions")
        return list(CkMinions(None).check_minions(tgt, expr_form)["minions"])

    def get_cache_returns(self, jid: str) -> dict[str, Answer]:
        """Return {minion id: {"ret": return}} of a job from the job cache, with ``out`` if the return names an
        outputter. Nothing is waited for.
        """
        found = runner(context_of("salt.client.LocalClient.get_cache_returns"), "jobs.list_job", str(jid))
        returns = found.get("Result") if isinstance(found, Mapping) else None
        shown: dict[str, Answer] = {}
        for name, entry in returns.items() if isinstance(returns, Mapping) else ():
            shown[str(name)] = {"ret": entry.get("return")}
            if entry.get("out"):
                shown[str(name)]["out"] = str(entry["out"])
        return shown

    def _master_for(self, what: str, further: dict[str, object]) -> Master:
        return self._master(what)


class Caller:
    """Calls execution functions of the minion on which the user's module runs."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Accept and ignore Salt's arguments: the running minion is used."""

    def cmd(self, fun: str, *args: object, **kwargs: object) -> object:
        """Call an execution function such as ``test.ping`` and return its result. Raise KeyError if the function does
        not exist.
        """
        return SaltTable(context_of("salt.client.Caller.cmd").functions)[fun](*args, **kwargs)

    function = cmd


def get_local_client(*args: object, **kwargs: object) -> LocalClient:
    """Return a LocalClient, which publishes jobs to minions. The arguments are ignored."""
    return LocalClient()
