"""``salt.runner`` for users' runners: calls other runners."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.clients.calls import RunnerCalls
from statecore.loader.compat.master_client import MasterClient
from statecore.loader.dunders import SaltTable
from statecore.model.ports import Master, MasterCall


class RunnerClient(MasterClient, RunnerCalls):
    """Calls runner functions of the master on which the user's runner runs."""

    NAME = "salt.runner.RunnerClient"
    NO_MASTER = "salt.runner.RunnerClient works in runners only: on a minion, use __salt__['publish.runner']"

    @property
    def functions(self) -> SaltTable:
        """Map of runner name ("jobs.active") to the runner function."""
        return SaltTable(self._context("functions").functions)

    def _done(self, call: MasterCall) -> Mapping[str, object]:
        # In this process, which runs a runner already.
        return {"return": SaltTable(self._context("cmd").functions)[call.fun](*call.arg, **call.kwarg), "success": True}

    def get_docs(self, arg: str | None = None) -> dict[str, str]:
        """Return {runner name: docstring} of the runners whose names start with ``arg``; without ``arg``, of all
        runners.
        """
        names = (name for name in self.functions if name.startswith(arg or ""))
        return {name: doc for name in names if (doc := self.functions[name].__doc__)}

    def _master_for(self, what: str, low: dict[str, object]) -> Master:
        return self._master(what)


Runner = RunnerClient
