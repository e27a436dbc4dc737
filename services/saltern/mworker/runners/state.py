"""Runners of orchestration: a state run on the master whose states are jobs, runners and wheel functions.

Source: docs/execution.md#master-processes
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from saltern.kit.config.master import as_opts
from saltern.kit.trees.served_files import file_server
from saltern.mworker.runners.orchestration import OrchestrationMaster
from saltern.mworker.runners.runner import RunnerFault, RunnerTools
from statecore.runtime.calls import Returned
from statecore.runtime.runtime import Runtime, local_runtime
from statecore.runtime.state_runs.pauses import ANY

#: Runners that read operators' orders (pause, kill) before each state.
_ORCHESTRATIONS = frozenset(
    f"runner.state.{name}" for name in ("orchestrate", "orch", "sls", "orchestrate_single", "orchestrate_high")
)


def orchestrate(
    tools: RunnerTools,
    mods: str | Sequence[str],
    saltenv: str | None = "base",
    test: object = None,
    exclude: object = None,
    pillar: Mapping[str, object] | None = None,
    pillarenv: str | None = None,
    pillar_enc: str | None = None,
    orchestration_jid: str | None = None,
) -> dict[str, object]:
    """Apply SLS files of the master's state tree on the master: ``salt.state``, ``salt.function``, ``salt.runner`` and the
    other ``salt.*`` states.

    mods
        SLS names, separated by commas or as a list
    pillar
        a map whose values override the pillar of the minion id ``<master id>_master``
    test
        ``True`` shows the changes without making them: minions get their jobs with ``test=True``

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
    test: object = None,
    queue: object = False,
    pillar: Mapping[str, object] | None = None,
    **kwargs: object,
) -> dict[str, object]:
    """Run a single state of an orchestration, for example ``fun=salt.wheel name=key.list_all``.

    Returns ``{"data": {id: running}, "outputter": "highstate", "retcode": 0 or 1}``.
    """
    given = {"test": test, "pillar": _map(pillar)}
    named = {key: value for key, value in given.items() if value is not None}
    return _shown(tools, "state.single", [fun, name], {**kwargs, **named, "concurrent": True})


def orchestrate_high(
    tools: RunnerTools,
    data: Mapping[str, object],
    test: object = None,
    queue: object = False,
    pillar: Mapping[str, object] | None = None,
    **kwargs: object,
) -> dict[str, object]:
    """Run an orchestration that is passed as high data (``data``: a map of state ID to states).

    Returns ``{"data": {id: running}, "outputter": "highstate", "retcode": 0 or 1}``.
    """
    given = {"test": test, "pillar": _map(pillar)}
    named = {key: value for key, value in given.items() if value is not None}
    return _shown(tools, "state.high", [data], {**kwargs, **named, "concurrent": True})


def orchestrate_show_sls(
    tools: RunnerTools,
    mods: str | Sequence[str],
    saltenv: str | None = "base",
    test: object = None,
    queue: object = False,
    pillar: Mapping[str, object] | None = None,
    pillarenv: str | None = None,
    pillar_enc: str | None = None,
) -> dict[str, object]:
    """Return the high data of an orchestration's SLS files: {id: high data}, or a list of compile errors."""
    given = {"saltenv": saltenv, "test": test, "pillar": _map(pillar), "pillarenv": pillarenv, "pillar_enc": pillar_enc}
    runtime = runtime_of(tools)
    returned = runtime.call("state.show_sls", [mods], {key: value for key, value in given.items() if value is not None})
    return {str(runtime.opts["id"]): returned.value}


def pause(tools: RunnerTools, jid: object, state_id: str | None = None, duration: float | None = None) -> None:
    """Pause an orchestration before a state. Without an ID: before its next state. The orchestration waits until it is
    resumed, or for ``duration`` seconds.

    CLI Example:

        salt-run state.pause 20261121001824892890 deploy 60
    """
    if duration is not None and (isinstance(duration, bool) or not isinstance(duration, int | float) or duration < 0):
        raise RunnerFault(f"duration is a number of seconds, not {duration!r}")
    _tell(tools, jid, state_id, {"duration": duration} if duration else {})


def soft_kill(tools: RunnerTools, jid: object, state_id: str | None = None) -> None:
    """End an orchestration before a state. Without an ID: before its next state. A state that is already running finishes."""
    _tell(tools, jid, state_id, {"kill": True})


def resume(tools: RunnerTools, jid: object, state_id: str | None = None) -> None:
    """Cancel the pause or kill order for a state of an orchestration. Without an ID: cancel all orders."""
    tools.store.runner_jobs.take_back(str(jid), state_id)


def _tell(tools: RunnerTools, jid: object, state_id: str | None, order: Mapping[str, object]) -> None:
    running = [each for each, load in tools.store.runner_jobs.running().items() if load.get("fun") in _ORCHESTRATIONS]
    if str(jid) not in running:
        there = ", ".join(running) or "none at all"
        raise RunnerFault(f"No orchestration with the job id {jid} is in progress; there is {there}")
    tools.store.runner_jobs.tell(
        str(jid), ANY if state_id is None else str(state_id), order, ttl=tools.options.keep_jobs_seconds
    )


def graph(
    tools: RunnerTools,
    mods: str | Sequence[str],
    tgt: object = None,
    tgt_type: str = "glob",
    saltenv: str = "base",
    test: object = None,
    pillar: Mapping[str, object] | None = None,
    pillarenv: str | None = None,
    pillar_enc: str | None = None,
    timeout: float | None = None,
) -> object:
    """Return the graph of SLS files in the DOT language: of an orchestration, or with ``tgt`` a map {minion: graph}.

    CLI Example:

        salt-run state.graph orch.deploy | dot -Tpng -o deploy.png
    """
    given = {"test": test, "pillar": _map(pillar), "saltenv": saltenv, "pillarenv": pillarenv, "pillar_enc": pillar_enc}
    return _graph(tools, "state.graph", [mods], given, tgt, tgt_type, timeout)


def graph_highstate(
    tools: RunnerTools,
    tgt: object = None,
    tgt_type: str = "glob",
    pillar: Mapping[str, object] | None = None,
    pillarenv: str | None = None,
    pillar_enc: str | None = None,
    timeout: float | None = None,
) -> object:
    """Return the graph of a highstate in the DOT language: of the master's own, or with ``tgt`` a map {minion: graph}."""
    given = {"pillar": _map(pillar), "pillarenv": pillarenv, "pillar_enc": pillar_enc}
    return _graph(tools, "state.graph_highstate", [], given, tgt, tgt_type, timeout)


def _graph(
    tools: RunnerTools,
    fun: str,
    arg: Sequence[object],
    given: Mapping[str, object],
    tgt: object,
    tgt_type: str,
    timeout: float | None,
) -> object:
    kwarg = {name: value for name, value in given.items() if value is not None}
    if tgt:
        asked = tools.ask(tgt, tgt_type, fun, arg, kwarg, timeout=timeout)
        return {minion: load.get("return") for minion, load in asked.returns.items()}
    returned = runtime_of(tools).call(fun, arg, kwarg)
    if not returned.success:
        raise RunnerFault(str(returned.value))
    return returned.value


def _shown(tools: RunnerTools, fun: str, arg: Sequence[object], kwarg: Mapping[str, object]) -> dict[str, object]:
    runtime = runtime_of(tools)
    returned = runtime.call(fun, arg, kwarg)
    return {"data": {runtime.opts["id"]: returned.value}, "outputter": "highstate", "retcode": _code(returned)}


def _map(pillar: object) -> Mapping[str, object] | None:
    if pillar is not None and not isinstance(pillar, Mapping):
        raise RunnerFault("Pillar data must be formatted as a dictionary")
    return pillar


def _code(returned: Returned) -> int:
    return int(not returned.success)


def runtime_of(tools: RunnerTools, jid: str | None = None) -> Runtime:
    """Return the Runtime in which the runner ``state.orchestrate`` applies an orchestration: statecore's loader with the master's
    options as ``opts``, the files of the master's ``file_roots``, and the pillar of the master's own id.

    ``tools``: the running runner's access to the master, by which states of the orchestration start jobs and fire events. ``jid``:
    JID that these events and jobs carry; default: the JID of the running runner.
    """
    options = tools.options
    master = OrchestrationMaster(tools, jid or tools.jid)
    own = {"cachedir": "", "mirrors_dir": options.cachedir, "__role": "master"}
    opts = as_opts(options, file_client="local", **own)
    return local_runtime(opts, files=file_server(tools.options), jobs=_OneJob(master.jid), events=master, master=master)


class _OneJob:
    """Job registry of this process: the orchestration is its only job."""

    def __init__(self, jid: str) -> None:
        self._job = {"jid": jid, "fun": "runner.state.orchestrate", "pid": os.getpid()}

    def running(self) -> list[dict[str, object]]:
        """Return a list of one job: the orchestration."""
        return [self._job]

    def signal(self, jid: str, number: int) -> str:
        """Return an error message: an orchestration takes no signals."""
        return ""
