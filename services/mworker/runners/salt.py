"""Execution functions from the master: here, or on minions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from services.kit.config import as_opts
from services.kit.served_files import file_server
from services.mworker.runners.runner import RunnerFault, RunnerTools
from statecore.runtime import local_runtime


def cmd(tools: RunnerTools, fun: str, *args: Any, **kwargs: Any) -> Any:
    """Runs an execution function on the master itself, in the worker's own container; what it returned.

    with_pillar
        ``True``: with the pillar of the master's id with ``_master`` behind it
    """
    with_pillar = bool(kwargs.pop("with_pillar", False))
    own = {"cachedir": "", "mirrors_dir": tools.options.cachedir}
    opts = as_opts(tools.options, id=f"{tools.options.id}_master", file_client="local", **own)
    returned = local_runtime(opts, files=file_server(tools.options), pillar=None if with_pillar else {}).call(
        fun, args, kwargs
    )
    if not returned.success and isinstance(returned.value, str):
        raise RunnerFault(returned.value)
    return returned.value


def execute(
    tools: RunnerTools,
    tgt: Any,
    fun: str,
    arg: Sequence[Any] = (),
    timeout: float | None = None,
    tgt_type: str = "glob",
    ret: str = "",
    kwarg: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Runs an execution function on minions: {minion: what it returned}."""
    asked = tools.ask(tgt, tgt_type, fun, arg, kwarg, timeout=timeout, ret=ret)
    return {minion: load.get("return") for minion, load in asked.returns.items()}
