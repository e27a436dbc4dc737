"""Orchestration: a state run on the master, whose states are jobs, runners and wheels (seed 004)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from services.kit.config import as_opts
from services.mworker.runners.orchestration import OrchestrationMaster
from services.mworker.runners.runner import RunnerFault, RunnerTools
from statecore.runtime import Returned, Runtime, local_runtime


def orchestrate(
    tools: RunnerTools,
    mods: str | Sequence[str],
    saltenv: str | None = "base",
    test: Any = None,
    exclude: Any = None,
    pillar: Mapping[str, Any] | None = None,
    pillarenv: str | None = None,
    pillar_enc: str | None = None,
    orchestration_jid: str | None = None,
) -> dict[str, Any]:
    """Applies SLS of the master's state tree on the master: ``salt.state``, ``salt.function``, ``salt.runner`` and their kin.

    mods
        SLS names, separated by commas or as a list
    pillar
        a map whose values go over the pillar that the master has for its own id with ``_master`` behind it
    test
        ``True`` shows what would be done: minions are asked with ``test=True``

    Returns ``{"data": {id: running}, "outputter": "highstate", "retcode": 0 or 1}``.
    """
    options = {
        "test": test,
        "exclude": exclude,
        "saltenv": saltenv,
        "pillar": _map(pillar),
        "pillarenv": pillarenv,
        "pillar_enc": pillar_enc,
    }
    runtime = runtime_of(tools, orchestration_jid)
    given = {name: value for name, value in options.items() if value is not None}
    returned = runtime.call("state.sls", [mods], {**given, "concurrent": True})
    return {"data": {runtime.opts["id"]: returned.value}, "outputter": "highstate", "retcode": _code(returned)}


def orchestrate_single(
    tools: RunnerTools,
    fun: str,
    name: str,
    test: Any = None,
    queue: Any = False,
    pillar: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """Runs one state of an orchestration: ``fun=salt.wheel name=key.list_all``."""
    given = {"test": test, "pillar": _map(pillar)}
    named = {key: value for key, value in given.items() if value is not None}
    return _shown(tools, "state.single", [fun, name], {**kwargs, **named, "concurrent": True})


def orchestrate_high(
    tools: RunnerTools,
    data: Mapping[str, Any],
    test: Any = None,
    queue: Any = False,
    pillar: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """Runs an orchestration that is given as high data."""
    given = {"test": test, "pillar": _map(pillar)}
    named = {key: value for key, value in given.items() if value is not None}
    return _shown(tools, "state.high", [data], {**kwargs, **named, "concurrent": True})


def orchestrate_show_sls(
    tools: RunnerTools,
    mods: str | Sequence[str],
    saltenv: str | None = "base",
    test: Any = None,
    queue: Any = False,
    pillar: Mapping[str, Any] | None = None,
    pillarenv: str | None = None,
    pillar_enc: str | None = None,
) -> dict[str, Any]:
    """High data of SLS of an orchestration: {id: high data}, or the errors of its compilation."""
    given = {"saltenv": saltenv, "test": test, "pillar": _map(pillar), "pillarenv": pillarenv, "pillar_enc": pillar_enc}
    runtime = runtime_of(tools)
    returned = runtime.call("state.show_sls", [mods], {key: value for key, value in given.items() if value is not None})
    return {str(runtime.opts["id"]): returned.value}


def _shown(tools: RunnerTools, fun: str, arg: Sequence[Any], kwarg: Mapping[str, Any]) -> dict[str, Any]:
    runtime = runtime_of(tools)
    returned = runtime.call(fun, arg, kwarg)
    return {"data": {runtime.opts["id"]: returned.value}, "outputter": "highstate", "retcode": _code(returned)}


def _map(pillar: Any) -> Mapping[str, Any] | None:
    if pillar is not None and not isinstance(pillar, Mapping):
        raise RunnerFault("Pillar data must be formatted as a dictionary")
    return pillar


def _code(returned: Returned) -> int:
    return int(not returned.success)


def runtime_of(tools: RunnerTools, jid: str | None = None) -> Runtime:
    """The state engine with the master's files and pillar, as a minion of its own name."""
    options = tools.options
    master = OrchestrationMaster(tools, jid or tools.jid)
    opts = as_opts(options, id=f"{options.id}_master", file_client="local", cachedir="", __role="master")
    return local_runtime(opts, jobs=_OneJob(master.jid), events=master, master=master)


class _OneJob:
    """The orchestration is all that runs in this process."""

    def __init__(self, jid: str) -> None:
        self._job = {"jid": jid, "fun": "runner.state.orchestrate", "pid": os.getpid()}

    def running(self) -> list[dict[str, Any]]:
        """The orchestration."""
        return [self._job]

    def signal(self, jid: str, number: int) -> str:
        """Nothing here takes signals."""
        return ""
