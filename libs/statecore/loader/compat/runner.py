"""``salt.runner`` for users' runners: calls other runners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statecore.loader.current_context import context_of
from statecore.loader.dunders import SaltTable
from statecore.model.errors import CommandError


class RunnerClient:
    """Calls runner functions of the master on which the user's runner runs."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Accept and ignore Salt's arguments: the running master is used."""

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
        context = context_of("salt.runner.RunnerClient.cmd")
        if context.master is None:
            raise CommandError(
                "salt.runner.RunnerClient works in runners only: on a minion, use __salt__['publish.runner']"
            )
        value = SaltTable(context.functions)[fun](*(arg or ()), **(kwarg or {}))
        return {"return": value, "success": True} if full_return else value


Runner = RunnerClient
