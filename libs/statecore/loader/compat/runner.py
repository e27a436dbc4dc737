"""``salt.runner``: runners that call each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statecore.loader.dunders import SaltTable
from statecore.loader.entered import context_of
from statecore.model.errors import CommandError


class RunnerClient:
    """Calls runners of the master on which the module runs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Accept and ignore Salt's arguments: the running master is used."""

    def cmd(
        self,
        fun: str,
        arg: Sequence[Any] | None = None,
        pub_data: Any = None,
        kwarg: Mapping[str, Any] | None = None,
        print_event: bool = True,
        full_return: bool = False,
    ) -> Any:
        """Call a runner and return its result. Raise KeyError if the runner does not exist; CommandError on a minion."""
        context = context_of("salt.runner.RunnerClient.cmd")
        if context.master is None:
            raise CommandError("salt.runner.RunnerClient is for runners: on a minion, use __salt__['publish.runner']")
        value = SaltTable(context.functions)[fun](*(arg or ()), **(kwarg or {}))
        return {"return": value, "success": True} if full_return else value


Runner = RunnerClient
