"""The clients of Salt's API: local, local_async, local_batch, local_subset, runner, runner_async, wheel, wheel_async.

Each takes one chunk of low data (a map of what the user sent) and returns the value for the answer's list ``return``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from saltern.api.event_feed import EventFeed
from saltern.kit.config.master import MasterOptions
from saltern.kit.jobs.job_runs import JobCall, JobReturn, JobRuns
from saltern.kit.links.master_link import MasterLink
from statecore.model.nearest import close_matches

Chunk: TypeAlias = Mapping[str, Any]

#: Fields of a chunk that are no arguments of a runner or wheel function.
_RESERVED = frozenset(
    {
        *("client", "fun", "arg", "kwarg", "token", "username", "password", "eauth", "timeout", "full_return"),
        *("print_event", "token_expire"),
    }
)

#: Fields that are arguments of runners such as cache.grains, but of no wheel function.
_TARGET = frozenset({"tgt", "tgt_type", "expr_form"})

#: Fields of a chunk of local clients that become keyword arguments of the publication.
_PASSED_ON = ("delimiter", "metadata", "module_executors", "executor_opts", "ret_config", "ret_kwargs", "start_event")

#: The word for a minion that did not return, with the advice that Salt adds.
_SILENT = (
    "Minion did not return. [No response]\nThe minions may not have all finished running and any remaining minions will "
    "return upon completion. To look up the return data for this job later, run the following command:\n\n"
    "salt-run jobs.lookup_jid {jid}"
)


class Values(list[object]):
    """Several values of one chunk: each becomes an element of the answer's list ``return``, as in Salt."""


class ChunkError(Exception):
    """Raised for a malformed chunk of low data. The message is sent to the user."""


class Clients:
    """The clients of the API: each is a function that runs one chunk of low data."""

    def __init__(self, link: MasterLink, feed: EventFeed, options: MasterOptions) -> None:
        self._link = link
        self._feed = feed
        self._options = options
        self._clients: Mapping[str, Callable[[JobRuns, Chunk], Awaitable[object]]] = {
            "local": self._local,
            "local_async": self._local_async,
            "local_batch": self._local_batch,
            "local_subset": self._local_subset,
            "runner": self._runner,
            "runner_async": self._runner_async,
            "wheel": self._wheel,
            "wheel_async": self._wheel_async,
        }

    @property
    def names(self) -> list[str]:
        """Return the names of all clients, sorted."""
        return sorted(self._clients)

    async def run(self, chunk: Chunk, token: str) -> object:
        """Run one chunk of low data with the rights of the token's user: call the client that the chunk names, and
        return its value.

        Raises ChunkError, ControlError, ControlTimeout and TimeoutError.
        """
        name = chunk.get("client")
        client = self._clients.get(name) if isinstance(name, str) else None
        if client is None:
            near = close_matches(str(name), self.names, n=1)
            raise ChunkError(f"Invalid client specified: '{name}'" + (f". The nearest is '{near[0]}'." if near else ""))
        if name not in self._options.netapi_enable_clients:
            raise ChunkError(
                f"Client disabled: '{name}'. Add to 'netapi_enable_clients' master config option to enable."
            )
        if not chunk.get("fun"):
            raise ChunkError("the chunk names no function in 'fun'")
        return await client(JobRuns(self._link, self._feed, self._options, {"token": token}), {**chunk, "token": token})

    async def _local(self, runs: JobRuns, chunk: Chunk) -> dict[str, object]:
        found = [each async for each in runs.returns(_job_call(chunk), self._timeout(chunk))]
        return {each.minion: _shown(each, full=bool(chunk.get("full_return"))) for each in found}

    async def _local_async(self, runs: JobRuns, chunk: Chunk) -> dict[str, object]:
        job = await runs.publish(_job_call(chunk))
        return {"jid": job["jid"], "minions": job["minions"]} if job["jid"] else {}

    async def _local_batch(self, runs: JobRuns, chunk: Chunk) -> Values:
        call, size = _job_call(chunk), str(chunk.get("batch") or "100%")
        full, failhard = bool(chunk.get("full_return")), bool(chunk.get("failhard"))
        wait = _number(chunk, "batch_wait", 0.0)
        try:
            batch = runs.batch(call, size, self._timeout(chunk), failhard=failhard, wait=wait)
            return Values([{each.minion: _shown(each, full=full)} async for each in batch])
        except ValueError as error:
            raise ChunkError(f"batch must be a number or a percentage from 1 up, not {size!r}") from error

    async def _local_subset(self, runs: JobRuns, chunk: Chunk) -> dict[str, object]:
        call, timeout = _job_call(chunk), self._timeout(chunk)
        count = int(_number(chunk, "subset" if "subset" in chunk else "sub", 3))
        drawn = await runs.drawn(call, count, timeout)
        if not drawn:
            return {}
        chosen = JobCall(drawn, "list", call.fun, call.arg, call.kwargs, call.fields)
        full = bool(chunk.get("full_return"))
        return {each.minion: _shown(each, full=full) async for each in runs.returns(chosen, timeout)}

    async def _runner(self, runs: JobRuns, chunk: Chunk) -> object:
        fun, arg, kwarg = _master_call(chunk)
        tag, data = await runs.runner(fun, arg, kwarg, _number(chunk, "timeout", 0.0))
        if chunk.get("full_return"):
            return {"tag": tag, "data": dict(data)}
        return data.get("return")

    async def _runner_async(self, runs: JobRuns, chunk: Chunk) -> object:
        started = await runs.start_runner(*_master_call(chunk))
        return {"tag": started["tag"], "jid": started["jid"]}

    async def _wheel(self, runs: JobRuns, chunk: Chunk) -> object:
        fun, arg, kwarg = _wheel_call(chunk)
        # A wheel function may fetch repositories.
        return await self._link.call(
            "wheel", timeout=300.0, token=chunk["token"], fun=fun, arg=arg, kwarg=kwarg, full=True
        )

    async def _wheel_async(self, runs: JobRuns, chunk: Chunk) -> object:
        answer = await self._wheel(runs, chunk)
        assert isinstance(answer, Mapping)
        return {"tag": answer["tag"], "jid": answer["data"]["jid"]}

    def _timeout(self, chunk: Chunk) -> float:
        return _number(chunk, "timeout", 0.0) or float(self._options.timeout)


def _shown(found: JobReturn, *, full: bool) -> object:
    load = found.load
    if load is None:
        text = _SILENT.format(jid=found.jid)
        # salt-pepper's exit code looks at the retcode.
        return {"out": "no_return", "ret": text, "retcode": 1} if full else text
    if not full:
        return load.get("return")
    more = {name: load[name] for name in ("out", "retcode") if name in load}
    return {"ret": load.get("return"), **more, "jid": found.jid}


def _job_call(chunk: Chunk) -> JobCall:
    """Return the JobCall (target, function, arguments) that a chunk of a local client describes. Raises ChunkError."""
    if "tgt" not in chunk:
        raise ChunkError("the chunk names no target in 'tgt'")
    # Salt forgot expr_form, which pepper's library still sends.
    tgt_type = str(chunk.get("tgt_type") or chunk.get("expr_form") or "glob")
    tgt = chunk["tgt"]
    if tgt_type == "list" and isinstance(tgt, str):
        tgt = [name.strip() for name in tgt.split(",")]
    arg, kwarg = _arguments(chunk)
    kwargs = {name: chunk[name] for name in _PASSED_ON if chunk.get(name) is not None}
    fields: dict[str, object] = {
        name: chunk[name] for name in ("ret", "jid", "when_back", "no_replay") if chunk.get(name)
    }
    return JobCall(tgt, tgt_type, chunk["fun"], [*arg, {"__kwarg__": True, **kwarg}] if kwarg else arg, kwargs, fields)


def _wheel_call(chunk: Chunk) -> tuple[str, list[object], dict[str, object]]:
    """Return (function, arguments, keyword arguments) of a chunk of a wheel client; a target is left out. Raises ChunkError."""
    return _master_call({name: value for name, value in chunk.items() if name not in _TARGET})


def _master_call(chunk: Chunk) -> tuple[str, list[object], dict[str, object]]:
    """Return (function, arguments, keyword arguments) of a chunk of a runner or wheel client. Raises ChunkError."""
    arg, kwarg = _arguments(chunk)
    flat = {
        str(name): value for name, value in chunk.items() if name not in _RESERVED and not str(name).startswith("__")
    }
    fun = chunk["fun"]
    if not isinstance(fun, str):
        raise ChunkError(f"'fun' must be text, not {fun!r}")
    return fun, arg, {**flat, **kwarg}


def _arguments(chunk: Chunk) -> tuple[list[object], dict[str, object]]:
    given, kwarg = chunk.get("arg"), chunk.get("kwarg") or {}
    if not isinstance(kwarg, Mapping):
        raise ChunkError(f"'kwarg' must be a map, not {kwarg!r}")
    arg = given if isinstance(given, list) else [] if given is None else [given]
    return arg, {str(name): value for name, value in kwarg.items()}


def _number(chunk: Chunk, name: str, default: float) -> float:
    value = chunk.get(name)
    if value in (None, ""):
        return float(default)
    try:
        number = float(str(value))
    except ValueError as error:
        raise ChunkError(f"'{name}' must be a number, not {value!r}") from error
    if not 0 <= number <= 86400 * 30:
        raise ChunkError(f"'{name}' must be a number from 0 up, not {value!r}")
    return number
