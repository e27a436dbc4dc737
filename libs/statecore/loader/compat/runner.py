"""``salt.runner`` for users' runners: calls other runners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statecore.loader.compat.master_client import LowClient, call_of_low
from statecore.loader.dunders import SaltTable


class RunnerClient(LowClient):
    """Calls runner functions of the master on which the user's runner runs."""

    NAME = "salt.runner.RunnerClient"
    NO_MASTER = "salt.runner.RunnerClient works in runners only: on a minion, use __salt__['publish.runner']"

    @property
    def functions(self) -> SaltTable:
        """Map of runner name ("jobs.active") to the runner function."""
        return SaltTable(self._context("functions").functions)

    def cmd(
        self,
        fun: str,
        arg: Sequence[object] | None = None,
        pub_data: object = None,
        kwarg: Mapping[str, object] | None = None,
        print_event: bool = True,
        full_return: bool = False,
    ) -> object:
        """Call a runner function and return its result; with ``full_return`` {"return": result, "success": True}.

        Raise KeyError if the runner does not exist, CommandError on a minion.
        """
        value = SaltTable(self._context("cmd").functions)[fun](*(arg or ()), **(kwarg or {}))
        return {"return": value, "success": True} if full_return else value

    def cmd_sync(self, low: Mapping[str, Any], timeout: float | None = None, full_return: bool = False) -> Any:
        """Call the runner that ``low`` describes ({"fun": ..., "arg": [...], "kwarg": {...}}; other keys are arguments by
        name) as a job of the master, wait for it, and return its result.

        With ``full_return`` return {"tag": tag of the job's last event, "data": map with ``return``, ``success``, ``jid``
        and ``fun``}. ``timeout`` is ignored: the runner's own time limits apply. Raise CommandError on a minion.
        """
        call = call_of_low(low)
        done = self._master("cmd_sync").run([call])[0]
        if full_return:
            jid = str(done.get("jid", ""))
            return {"tag": f"salt/run/{jid}/ret", "data": {"fun": f"runner.{call.fun}", **done}}
        return done["return"]

    def cmd_async(self, low: Mapping[str, Any]) -> dict[str, str]:
        """Start the runner that ``low`` describes, as for ``cmd_sync``, and return {"jid": JID, "tag": start of the tags of
        its events} at once. Raise CommandError on a minion, or if the master refuses it.
        """
        return self._master("cmd_async").start(call_of_low(low))

    def master_call(self, **kwargs: Any) -> dict[str, str]:
        """Start the runner that the arguments describe as a low chunk, as ``cmd_async`` does."""
        return self.cmd_async(kwargs)

    def get_docs(self, arg: str | None = None) -> dict[str, str]:
        """Return {runner name: docstring} of the runners whose names start with ``arg``; without ``arg``, of all
        runners.
        """
        names = (name for name in self.functions if name.startswith(arg or ""))
        return {name: doc for name in names if (doc := self.functions[name].__doc__)}


Runner = RunnerClient
