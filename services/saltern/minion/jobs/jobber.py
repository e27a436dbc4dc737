"""The jobber: one process that runs one job, spools the return, and ends.

It is forked from the zygote, so the state engine is loaded. Connections and files that it opens belong to it alone.
Source: docs/execution.md#minion-jobs
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgpack

from saltern.kit.command.arguments import read_arguments
from saltern.kit.process.logs import tag_job
from saltern.kit.process.tracing import Tracing
from saltern.minion.ipc.framed_socket import FramedSocket
from saltern.minion.ipc.messages import SPOOLED, JobLoad
from saltern.minion.jobs.journal import JobSteps
from saltern.minion.jobs.spool import Spool
from statecore.host.content import data_files
from statecore.model.errors import CommandError
from statecore.model.redaction import shown_arguments
from statecore.runtime.calls import Returned
from statecore.runtime.return_delivery import named
from statecore.runtime.runtime import Runtime
from statecore.runtime.state_runs.running_jobs import ProcDirectory

_LOG = logging.getLogger("saltern.minion")

#: Prefix of the keyword arguments that describe the publication. ``__pub_id`` is the id of the publishing minion.
_PUBLICATION = "__pub_"

#: Fields passed with that prefix. Salt: salt/minion.py, load_args_and_kwargs; scheduled jobs: salt/utils/schedule.py
_PUBLICATION_FIELDS = ("arg", "fun", "id", "jid", "metadata", "ret", "tgt", "tgt_type", "user")
_OWN_JOB_FIELDS = ("fun", "jid", "metadata", "schedule")


def work(
    runtime: Runtime,
    load: JobLoad,
    procs: ProcDirectory,
    spool: Spool,
    notify: FramedSocket,
    send_to_other_masters: Callable[[Mapping[str, object]], None],
    steps: JobSteps | None = None,
    send_unspooled: Callable[[Mapping[str, object]], None] | None = None,
    tracing: Tracing | None = None,
) -> None:
    """Run one job of the minion, spool its return and pass it to the job's returners. Call in the jobber's
    process.

    ``procs``: directory in which the running job is recorded. ``notify``: socket to the main process, which
    is told that the spool has a return. ``steps``: the job's journal; the job does not run if another process
    has begun it; None: it has no journal entry. ``send_to_other_masters``: called with the return of a job
    that the minion started itself. ``send_unspooled``: called with the return if the spool's disk is full;
    None: OSError is raised. ``tracing``: None switches traces off.
    """
    # Its own process group: a signal to the job also reaches the commands that it started.
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    tag_job(str(load["jid"]))
    begun = steps.begin(load["jid"]) if steps else None
    if steps and begun is None:
        _LOG.warning("another process has begun this job; it is not run again", extra={"jid": load["jid"]})
        return
    # A scheduled job with ``jid_include: False`` does not appear among the running jobs.
    with procs.record(load) if load.get("jid_include", True) else contextlib.nullcontext():
        result = _traced(runtime, load, tracing)
        if load.get("return_job", True):
            _spool_return(result, spool, send_unspooled)
            if steps and begun:
                steps.end(begun, load["jid"])
            if load.get("own"):
                send_to_other_masters(result)
            # If the main process is gone, the next one finds the return in the spool.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                notify.send(SPOOLED)
        returned = {
            **{name: value for name, value in result.items() if name != "cmd"},
            "id": runtime.opts["id"],
            "jid": load["jid"],
        }
        if runtime.opts.get("cache_jobs"):
            _cache_return(runtime, load["jid"], returned)
        # After the return to the master, because a returner may be slow or fail.
        if names := named(load.get("ret"), [] if load.get("own") else runtime.opts.get("return_")):
            runtime.deliver(names, returned)


def _traced(runtime: Runtime, load: JobLoad, tracing: Tracing | None) -> dict[str, object]:
    """Run the job ``load`` and return its ``_return`` load. If the load names a trace, measure the run as a span of
    this trace.
    """
    if tracing is None or load.get("own"):
        return run(runtime, load)
    traced = {"salt.jid": str(load["jid"]), "salt.fun": str(load["fun"]), "salt.minion": str(runtime.opts["id"])}
    with tracing.of_peer("salt.minion.exec", load, "SERVER", **traced) as span:
        result = run(runtime, load)
        if not result["success"]:
            span.fail(f"retcode {result['retcode']}")
        return span.marked(result)


def _spool_return(
    result: Mapping[str, object], spool: Spool, send_unspooled: Callable[[Mapping[str, object]], None] | None
) -> None:
    try:
        spool.put(result)
    except OSError as error:
        if send_unspooled is None:
            raise
        _LOG.error("the return cannot be spooled and is sent directly: %s", error, extra={"jid": result.get("jid")})
        send_unspooled(msgpack.unpackb(spool.packed(result), strict_map_key=False))


def _cache_return(runtime: Runtime, jid: str, returned: Mapping[str, object]) -> None:
    """Store the return for saltutil.find_cached_job. A full disk is logged and does not fail the job."""
    try:
        data_files.store(Path(str(runtime.opts["cachedir"])) / "minion_jobs" / jid / "return.p", returned)
    except CommandError as error:
        _LOG.error("the return of %s is not stored in cachedir: %s", jid, error)


def run(runtime: Runtime, load: JobLoad) -> dict[str, object]:
    """Run the job ``load`` and return its ``_return`` load.

    For a job of several functions ``return``, ``retcode`` and ``success`` are maps by function name. Source:
    docs/protocol.md#returns
    """
    result = _run_own(runtime, load) if load.get("own") else _run_published(runtime, load)
    # The call may have compiled the pillar; before, nobody knew what is secret in it.
    result["fun_args"] = runtime.hidden(result["fun_args"])
    return result


def _run_published(runtime: Runtime, load: JobLoad) -> dict[str, object]:
    fun = load["fun"]
    base: dict[str, object] = {
        "cmd": "_return",
        "jid": load["jid"],
        "fun": fun,
        "fun_args": shown_arguments(fun, list(load["arg"])),
    }
    base |= _copied(load, "user", "metadata", "ret_config", "ret_kwargs")
    if isinstance(fun, str):
        return base | _shape(_call(runtime, fun, load["arg"], load))
    parts = {
        name: _shape(_call(runtime, name, args if isinstance(args, list) else [], load))
        for name, args in zip(fun, load["arg"], strict=False)
    }
    return base | {
        "return": {name: part["return"] for name, part in parts.items()},
        "retcode": {name: part["retcode"] for name, part in parts.items()},
        "success": {name: part["success"] for name, part in parts.items()},
        "out": "nested",
    }


def _run_own(runtime: Runtime, load: JobLoad) -> dict[str, object]:
    """Run a job that the minion started itself and return its ``_return`` load.

    Its ``jid`` is "req" (the master makes one), "nocache" (the master stores nothing), or the job's own if it has returners.
    Salt: salt/utils/schedule.py
    """
    positional: list[object] = []
    keywords: dict[str, object] = {}
    for one in load["arg"]:
        if isinstance(one, Mapping) and one.get("__kwarg__") is True:
            keywords |= {name: value for name, value in one.items() if name != "__kwarg__"}
        else:
            positional.append(one)
    described = _publication(load, _OWN_JOB_FIELDS) | _publication({"fun_args": positional, "pid": os.getpid()})
    # Salt's rule: scheduled jobs whose names begin with ``__`` are the minion's own: whitelist_modules does not apply.
    own = str(load.get("schedule", "")).startswith("__")
    returned = _guarded(runtime, str(load["fun"]), positional, {**keywords, **described}, load, trusted=own)
    kept_as = load["jid"] if load.get("ret") else "nocache" if load.get("return_job") == "nocache" else "req"
    more = _copied(load, "schedule", "metadata", "ret_config", "ret_kwargs")
    return {
        "cmd": "_return",
        "jid": kept_as,
        # Our master recognizes a repeated return by this key; other masters ignore it.
        **({} if kept_as == load["jid"] else {"own_jid": load["jid"]}),
        "fun": load["fun"],
        "fun_args": shown_arguments(load["fun"], [*positional, *([keywords] if keywords else [])]),
        "pid": os.getpid(),
        **more,
        **_shape(returned),
    }


def _call(runtime: Runtime, fun: str, args: Sequence[object], load: Mapping[str, object]) -> Returned:
    positional, keywords = read_arguments(args)
    # Only the master may set these: functions that sign certificates trust the id.
    keywords = {name: value for name, value in keywords.items() if not name.startswith(_PUBLICATION)}
    return _guarded(runtime, fun, positional, {**keywords, **_publication(load, _PUBLICATION_FIELDS)}, load)


def _publication(load: Mapping[str, object], names: Sequence[str] | None = None) -> dict[str, object]:
    return {f"{_PUBLICATION}{name}": load[name] for name in (load if names is None else names) if name in load}


def _guarded(
    runtime: Runtime,
    fun: str,
    positional: Sequence[object],
    keywords: Mapping[str, object],
    load: Mapping[str, object],
    *,
    trusted: bool = False,
) -> Returned:
    try:
        return runtime.call(fun, positional, keywords, load, trusted=trusted)
    except SystemExit as error:
        # A module called sys.exit. The job still returns.
        return Returned(f"The minion function ended its process: SystemExit: {error.code}", 1, False)


def _copied(load: Mapping[str, object], *names: str) -> dict[str, object]:
    return {name: load[name] for name in names if name in load}


def _shape(returned: Returned) -> dict[str, object]:
    shape = {"return": returned.value, "retcode": returned.retcode, "success": returned.success}
    return shape | ({"out": returned.out} if returned.out else {})
