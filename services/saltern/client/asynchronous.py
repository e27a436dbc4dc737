"""Clients of a master for asyncio: ``AsyncLocalClient``, ``AsyncRunnerClient``, ``AsyncWheelClient``, ``AsyncEvents``.

Names, arguments and results are those of the synchronous clients, which are Salt's. One client may have any number of
calls in flight.
"""

from __future__ import annotations

import fnmatch
import functools
import inspect
import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, NamedTuple, ParamSpec, Self, TypeVar

from saltern.client.addresses import Address, Login, address_of, login_of
from saltern.client.connection import Event, Listener
from saltern.client.master import AsyncMaster
from statecore.clients.calls import CallReturn, Started, call_of_low, call_return, runner_return
from statecore.clients.local import (
    PUBLISHED,
    Answer,
    JobArguments,
    JobClient,
    Progress,
    PublishedJob,
    answer_of,
    is_silent,
    listed,
    published_job,
    silent_answer,
)
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import MasterCall, MinionJob

#: Further arguments of jobs that the master takes from a client.
PASSED_ON = PUBLISHED | {"jid", "when_back", "no_replay"}


#: Arguments of all methods that publish a job.
_OF_THE_JOB = ("tgt", "fun", "arg", "tgt_type", "ret", "kwarg")

_Arguments = ParamSpec("_Arguments")
_Client = TypeVar("_Client")
_Returned = TypeVar("_Returned")


class _AsyncClient:
    """What the asynchronous clients have in common: the master, and the end of the connection."""

    def __init__(self, opts: str | Mapping[str, object] | None = None, *, master: Address | None = None) -> None:
        """Prepare a connection; the first call opens it.

        ``opts``: path of the master's configuration, or its options (``saltern.config.master_config``); by default
        /etc/salt/master. ``master``: a ``Control`` or ``Api`` instead.
        """
        self._master = AsyncMaster(address_of(opts, master))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        await self.close()

    async def close(self) -> None:
        """Close the connection; users who signed in with a password are signed out."""
        await self._master.close()


class _Call(NamedTuple):
    """A call of a method with the arguments of Salt's ``LocalClient``: its job, and how it is waited for."""

    job: MinionJob
    login: Login
    timeout: float | None
    full_return: bool
    progress: bool
    batch: str


def _as_salts(
    method: Callable[Concatenate[Any, _Arguments], Any],
) -> Callable[[Callable[[_Client, _Call], _Returned]], Callable[Concatenate[_Client, _Arguments], _Returned]]:
    """Give a method the signature of a method of the synchronous client, which is Salt's: the decorated function gets
    the arguments as a _Call.
    """
    signature = inspect.signature(method)

    def decorated(
        work: Callable[[_Client, _Call], _Returned],
    ) -> Callable[Concatenate[_Client, _Arguments], _Returned]:
        @functools.wraps(work)
        def called(self: _Client, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Returned:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            return work(self, _call_of(method.__name__, bound.arguments))

        # Of the two that the tools look for, this one comes first.
        called.__signature__ = signature  # type: ignore[attr-defined]
        return called

    return decorated


def _call_of(method: str, named: Mapping[str, Any]) -> _Call:
    """Return the _Call for the arguments of a method by their names; ``kwargs`` are those that it does not name."""
    further = {**({"jid": named["jid"]} if named.get("jid") else {}), **named["kwargs"]}
    if method == "cmd_async":
        # Accepted and ignored, because nobody waits.
        further.pop("timeout", None)
    failhard = bool(further.pop("failhard", False)) if method == "cmd_batch" else False
    given = JobArguments(method=method, further=further, **{name: named[name] for name in _OF_THE_JOB})
    job, login = _job(given)
    return _Call(
        job._replace(failhard=failhard),
        login,
        named.get("timeout"),
        bool(named.get("full_return")),
        bool(named.get("progress")),
        str(named.get("batch", "")),
    )


class AsyncLocalClient(_AsyncClient):
    """Publishes jobs to minions and waits for their returns, on an asyncio loop."""

    @_as_salts(JobClient.cmd)
    async def cmd(self, call: _Call) -> dict[str, object]:
        """Publish a job and return {minion id: return} for the minions that returned within ``timeout`` seconds; with
        ``full_return`` as ``cmd_full_return``.
        """
        answers = await self._master.ask(call.job._replace(timeout=call.timeout), call.login)
        return {name: answer_of(answer) if call.full_return else answer.get("ret") for name, answer in answers.items()}

    @_as_salts(JobClient.cmd_full_return)
    async def cmd_full_return(self, call: _Call) -> dict[str, Answer]:
        """Publish a job and return {minion id: {"ret": return, "retcode": exit code, "jid": JID}}."""
        answers = await self._master.ask(call.job._replace(timeout=call.timeout), call.login)
        return {name: answer_of(answer) for name, answer in answers.items()}

    @_as_salts(JobClient.run_job)
    async def run_job(self, call: _Call) -> PublishedJob:
        """Publish a job without waiting. Return {"jid": JID, "minions": [minion id ...]}; {} if no minion matches."""
        return published_job(await self._master.publish(call.job, call.login))

    @_as_salts(JobClient.cmd_async)
    async def cmd_async(self, call: _Call) -> str | int:
        """Publish a job without waiting and return its JID; 0 if no minion matches."""
        return published_job(await self._master.publish(call.job, call.login)).get("jid") or 0

    @_as_salts(JobClient.cmd_iter)
    async def cmd_iter(self, call: _Call) -> AsyncIterator[dict[str, Answer]]:
        """Publish a job and yield {minion id: {"ret": return, "retcode": exit code, "jid": JID}} for each minion, when
        its return arrives.
        """
        async for name, answer in self._master.returns(call.job._replace(timeout=call.timeout), call.login):
            if not is_silent(answer):
                yield {name: answer_of(answer)}

    @_as_salts(JobClient.cmd_iter_no_block)
    async def cmd_iter_no_block(self, call: _Call) -> AsyncIterator[dict[str, Answer] | None]:
        """As ``cmd_iter``, but yield None whenever no return has arrived for a moment."""
        made = published_job(await self._master.publish(call.job, call.login))
        if made:
            async for one in self._master.follow(made["jid"], made["minions"], call.timeout, call.login):
                if one is None:
                    yield None
                elif not is_silent(one[1]):
                    yield {one[0]: answer_of(one[1])}

    @_as_salts(JobClient.cmd_cli)
    async def cmd_cli(self, call: _Call) -> AsyncIterator[dict[str, Answer] | Progress]:
        """As ``cmd_iter``; minions that do not return in time are yielded, too, with ``out`` "no_return" and a sentence
        as ``ret``. ``progress``: also yield {"minion_count": ..., "return_count": ...} before each return.
        """
        made = published_job(await self._master.publish(call.job, call.login))
        if not made:
            return
        count = 0
        async for one in self._master.follow(made["jid"], made["minions"], call.timeout, call.login):
            if one is None:
                continue
            if is_silent(one[1]):
                yield {one[0]: silent_answer(made["jid"])}
                continue
            count += 1
            if call.progress:
                yield {"minion_count": len(made["minions"]), "return_count": count}
            yield {one[0]: answer_of(one[1])}

    @_as_salts(JobClient.cmd_batch)
    async def cmd_batch(self, call: _Call) -> AsyncIterator[dict[str, object]]:
        """Run a job on ``batch`` minions at the same time (a number or a percentage), and yield {minion id: return} for
        each, when its return arrives. ``failhard``: start no further minions after a failure.
        """
        async for name, answer in self._master.returns(call.job._replace(batch=call.batch), call.login):
            if not is_silent(answer):
                yield {name: answer.get("ret")}

    async def cmd_subset(
        self,
        tgt: object,
        fun: str,
        arg: Sequence[object] = (),
        tgt_type: str = "glob",
        ret: str = "",
        kwarg: Mapping[str, object] | None = None,
        subset: int = 3,
        full_return: bool = False,
        **kwargs: object,
    ) -> dict[str, object]:
        """Run a job on as many minions as ``subset`` says, chosen at random from those of the target that answer and
        have the function. Return as ``cmd`` does.
        """
        job, login = _job(JobArguments("cmd_subset", tgt, fun, arg, tgt_type, ret, kwarg, kwargs))
        answers = await self._master.ask(job._replace(subset=int(subset)), login)
        return {name: answer_of(answer) if full_return else answer.get("ret") for name, answer in answers.items()}

    async def get_cli_returns(
        self, jid: str, minions: Iterable[str], timeout: float | None = None, **kwargs: object
    ) -> AsyncIterator[dict[str, Answer]]:
        """Yield {minion id: map with ``ret``, ``retcode`` and ``jid``} for each of the ``minions`` that returned a job,
        or returns it within ``timeout`` seconds.
        """
        async for one in self._master.follow(str(jid), sorted(map(str, minions)), timeout, login_of(dict(kwargs))):
            if one is not None and not is_silent(one[1]):
                yield {one[0]: answer_of(one[1])}

    async def get_full_returns(
        self, jid: str, minions: Iterable[str], timeout: float | None = None
    ) -> dict[str, Answer]:
        """Wait up to ``timeout`` seconds for the returns of a job, and return {minion id: map with ``ret``, ``retcode``
        and ``jid``}.
        """
        found: dict[str, Answer] = {}
        async for one in self.get_cli_returns(jid, minions, timeout):
            found |= one
        return dict(sorted(found.items()))

    async def get_returns(self, jid: str, minions: Iterable[str], timeout: float | None = None) -> dict[str, object]:
        """As ``get_full_returns``, but with the values of the function."""
        return {
            name: answer.get("ret") for name, answer in (await self.get_full_returns(jid, minions, timeout)).items()
        }

    async def get_cache_returns(self, jid: str) -> dict[str, Answer]:
        """Return {minion id: {"ret": return}} of a job from the job cache. Nothing is waited for."""
        found = await self._master.job_returns(str(jid), Login())
        return {name: cached_answer(load) for name, load in found.items()}

    async def returns_for_job(self, jid: str) -> bool:
        """Return whether the job cache has returns of a job."""
        return bool(await self.get_cache_returns(jid))

    async def gather_minions(self, tgt: object, expr_form: str = "glob") -> list[str]:
        """Return the ids of the minions that a target matches, by the grains that the master has."""
        return await self._master.gather_minions(*listed(tgt, expr_form), Login())

    async def sample(self, tgt: object, tgt_type: str, count: int) -> list[str]:
        """Return at most ``count`` random ids of the minions that a target matches."""
        matched = await self.gather_minions(tgt, tgt_type)
        return sorted(random.sample(matched, min(count, len(matched))))


class AsyncRunnerClient(_AsyncClient):
    """Calls runner functions of the master, on an asyncio loop."""

    async def cmd(
        self,
        fun: str,
        arg: Sequence[object] | None = None,
        kwarg: Mapping[str, object] | None = None,
        full_return: bool = False,
    ) -> object:
        """Run a runner on the master and return its result; with ``full_return`` {"return": result, "success": bool}."""
        done = await self._master.run(MasterCall(fun, tuple(arg or ()), dict(kwarg or {})), Login())
        return {"return": done["return"], "success": done["success"]} if full_return else done["return"]

    async def cmd_sync(
        self, low: Mapping[str, object], timeout: float | None = None, full_return: bool = False
    ) -> object:
        """Call the runner that ``low`` describes, wait for it, and return its result; with ``full_return`` {"tag": tag of
        its last event, "data": data of this event}. ``timeout``: seconds; None: no limit.
        """
        chunk = dict(low)
        login = login_of(chunk)
        done = await self._master.run(call_of_low(chunk), login, timeout or 0)
        return runner_return(str(chunk["fun"]), done) if full_return else done["return"]

    async def cmd_async(self, low: Mapping[str, object]) -> Started:
        """Start the runner that ``low`` describes and return {"jid": JID, "tag": start of the tags of its events}."""
        chunk = dict(low)
        login = login_of(chunk)
        started = await self._master.start(call_of_low(chunk), login)
        return {"jid": started["jid"], "tag": started["tag"]}


class AsyncWheelClient(_AsyncClient):
    """Calls wheel functions of the master, on an asyncio loop."""

    async def cmd(self, fun: str, kwarg: Mapping[str, object] | None = None, full_return: bool = False) -> object:
        """Call a wheel function with arguments by name and return its result; with ``full_return`` {"return": result,
        "success": bool}. Raise CommandError if it fails.
        """
        data = call_return(await self._master.wheel(MasterCall(fun, (), dict(kwarg or {})), Login()))["data"]
        if full_return:
            return {"return": data["return"], "success": data["success"]}
        if not data["success"]:
            raise CommandError(str(data["return"]))
        return data["return"]

    async def cmd_sync(self, low: Mapping[str, object]) -> CallReturn:
        """Call the wheel function that ``low`` describes; return {"tag": tag, "data": map with ``return``, ``success``,
        ``jid`` and ``fun``}.
        """
        chunk = dict(low)
        login = login_of(chunk)
        return call_return(await self._master.wheel(call_of_low(chunk), login))

    async def cmd_async(self, low: Mapping[str, object]) -> Started:
        """Call the wheel function that ``low`` describes; return {"jid": JID, "tag": tag of its events}."""
        done = await self.cmd_sync(low)
        return {"jid": done["data"].get("jid", ""), "tag": done["tag"]}


class AsyncEvents(_AsyncClient):
    """The events of the master's bus: ``async for event in AsyncEvents("salt/job/")``.

    Events are received from the first use on. ``tag``: the start of the tags, or a glob (``salt/job/*/ret/*``).
    """

    def __init__(
        self, tag: str = "", opts: str | Mapping[str, object] | None = None, *, master: Address | None = None
    ) -> None:
        super().__init__(opts, master=master)
        self._tag = tag
        self._listener: Listener | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def start(self) -> None:
        """Begin to receive events, unless this was done."""
        if self._listener is None:
            self._listener = await self._master.listen(fixed_start(self._tag), Login())

    @property
    def lost(self) -> int:
        """Number of events that were dropped, because 10,000 events waited to be read."""
        return self._listener.lost if self._listener is not None else 0

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            event = await self.next(None)
            if event is not None:
                yield event

    async def next(self, seconds: float | None = 5.0) -> Event | None:
        """Return the next event; None after so many seconds. ``seconds`` None waits without limit."""
        await self.start()
        assert self._listener is not None
        while True:
            event = await self._master.next_event(self._listener, seconds)
            if event is None or tag_matches(event.tag, self._tag):
                return event

    async def fire_event(self, data: Mapping[str, object], tag: str) -> bool:
        """Fire an event on the master's bus (by the runner ``event.send``); return whether the bus accepted it."""
        return await self._master.fire(tag, data, Login())

    async def close(self) -> None:
        """Stop to receive events and close the connection."""
        if self._listener is not None:
            self._master.leave(self._listener)
            self._listener = None
        await super().close()


def fixed_start(tag: str) -> str:
    """Return the part of a glob before its first ``*``, ``?`` or ``[``: what the bus can select."""
    return next((tag[:index] for index, char in enumerate(tag) if char in "*?["), tag)


def tag_matches(tag: str, wanted: str) -> bool:
    """Return whether a tag starts with ``wanted``, or matches the glob ``wanted``."""
    return fnmatch.fnmatchcase(tag, wanted) if fixed_start(wanted) != wanted else tag.startswith(wanted)


def cached_answer(load: Mapping[str, object]) -> Answer:
    """Return a return of the job cache as ``get_cache_returns`` shows it."""
    shown: Answer = {"ret": load.get("return")}
    if load.get("out"):
        shown["out"] = str(load["out"])
    return shown


def _job(given: JobArguments) -> tuple[MinionJob, Login]:
    further = dict(given.further)
    login = login_of(further)
    if not isinstance(given.fun, str) or not given.fun:
        what = f"saltern.AsyncLocalClient.{given.method}"
        raise InvocationError(f"{what}: fun must be the name of a function, not {given.fun!r}")
    job = given._replace(further=further).job("saltern.AsyncLocalClient", PASSED_ON)
    return job._replace(expected=False), login
