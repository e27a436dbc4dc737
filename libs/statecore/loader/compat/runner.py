"""``salt.runner``: runners that call each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statecore.loader.dunders import SaltTable
from statecore.loader.entered import context_of
from statecore.model.errors import CommandError


class RunnerClient:
    """Runners of the master that the module runs on."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Options say nothing here: the running master is asked."""

    def cmd(
        self,
        fun: str,
        arg: Sequence[Any] | None = None,
        pub_data: Any = None,
        kwarg: Mapping[str, Any] | None = None,
        print_event: bool = True,
        full_return: bool = False,
    ) -> Any:
        """What the runner returns. Raises KeyError for one that is not there, CommandError on a minion."""
        context = context_of("salt.runner.RunnerClient.cmd")
        if context.master is None:
            raise CommandError("salt.runner.RunnerClient is for runners: on a minion, use __salt__['publish.runner']")
        value = SaltTable(context.functions)[fun](*(arg or ()), **(kwarg or {}))
        return {"return": value, "success": True} if full_return else value


Runner = RunnerClient
