"""A master as the clients use it, on an asyncio loop: jobs, runners, wheel functions, events, and typed errors."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, NoReturn, Protocol, cast

from saltern.client.addresses import Address, Api, Control, Login
from saltern.client.connection import Connection, Event, Listener
from saltern.kit.command.arguments import on_the_wire
from saltern.kit.config.reading import ConfigError
from saltern.kit.jobs.job_runs import JobCall, JobReturn, JobRuns
from saltern.kit.jobs.returns import retcode_of
from saltern.kit.links.answers import PublishAnswer
from saltern.kit.links.control import ControlError, ControlTimeout
from statecore.clients.errors import (
    AuthenticationError,
    AuthorizationError,
    EauthAuthenticationError,
    SaltClientError,
    SaltConfigurationError,
    SaltMasterError,
    SaltReqTimeoutError,
    TokenAuthenticationError,
)
from statecore.model.errors import InvocationError, StatecoreError
from statecore.model.ports import MasterCall, MinionJob

#: Seconds after which a stream of returns says that nothing has arrived.
TICK = 0.25

#: Kind of address -> (module, class) of its connection. Only the one that is used is imported.
_CONNECTIONS: Mapping[type[Address], tuple[str, str]] = {
    Control: ("saltern.client.control_connection", "ControlConnection"),
    Api: ("saltern.client.api_connection", "ApiConnection"),
}

#: Fields of a publication that stand beside its keyword arguments.
_BESIDE = frozenset({"jid", "when_back", "no_replay"})

#: Seconds before its end at which a user's token is replaced by a new sign-in.
_EARLY = 5.0

#: Name of the master's refusal -> (error, what to do next).
_REFUSALS: Mapping[str, tuple[type[StatecoreError], str]] = {
    "AuthorizationError": (
        AuthorizationError,
        "control_acl and publisher_acl say what a key may do, external_auth a user",
    ),
    "EauthAuthenticationError": (
        EauthAuthenticationError,
        "check username, password and eauth; external_auth has its row",
    ),
    "TooManyLogins": (EauthAuthenticationError, ""),
    "TokenAuthenticationError": (TokenAuthenticationError, "sign in again: a token lives for token_expire seconds"),
    "UnknownFunction": (InvocationError, ""),
    "InvocationError": (InvocationError, ""),
    "TargetError": (InvocationError, ""),
    "JidError": (InvocationError, ""),
    "StoreUnavailable": (SaltMasterError, "try again when Redis answers the master"),
    "StoreError": (SaltMasterError, "the log of the mworker names the fault"),
    "TooManyRunners": (SaltMasterError, "try again later, or raise max_runners"),
    "Busy": (SaltMasterError, "try again later"),
}


class _MakeConnection(Protocol):
    def __call__(self, address: Address) -> Connection: ...


class AsyncMaster:
    """One master, for the clients of one asyncio loop. It connects at its first use.

    Each method takes the Login of the user for whom it acts; an empty one stands for the address' own user or key.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._connection: Connection | None = None
        #: The loop to which the connection belongs.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signing_in = asyncio.Lock()
        #: Users who signed in: their tokens, and the Unix time at which they expire.
        self._tokens: dict[Login, tuple[str, float]] = {}

    async def ask(self, job: MinionJob, login: Login) -> dict[str, dict[str, object]]:
        """Publish a job, wait for it, and return {minion id: {ret, retcode, jid, out}}. With ``expected`` a minion that
        did not return has {failed: True, out: "no_return", jid}.
        """
        found = {name: answer async for name, answer in self.returns(job, login) if _is_wanted(job, answer)}
        return dict(sorted(found.items()))

    async def returns(self, job: MinionJob, login: Login) -> AsyncIterator[tuple[str, dict[str, object]]]:
        """Publish a job, or a batch, and yield (minion id, {ret, retcode, jid, out}) for each minion, as in ``ask``,
        when its return arrives.
        """
        with self._faults():
            runs = await self._runs(login)
            call, timeout = job_call(job), self._timeout(job.timeout)
            if job.subset:
                drawn = await runs.drawn(call, job.subset, timeout)
                if not drawn:
                    return
                call = JobCall(drawn, "list", call.fun, call.arg, call.kwargs, call.fields)
            if job.batch is None:
                found = runs.returns(call, timeout)
            else:
                found = runs.batch(call, job.batch, timeout, failhard=job.failhard, wait=0.0)
            async for each in found:
                yield each.minion, _answer(each)

    async def publish(self, job: MinionJob, login: Login) -> dict[str, object]:
        """Publish a job without waiting; return {"jid", "minions"}, or {} if no minion matches."""
        with self._faults():
            made = await (await self._runs(login, hear=False)).publish(job_call(job))
        return {"jid": str(made["jid"]), "minions": list(made["minions"])} if made["jid"] else {}

    async def follow(
        self, jid: str, minions: Sequence[str], timeout: float | None, login: Login
    ) -> AsyncIterator[tuple[str, dict[str, object]] | None]:
        """Yield (minion id, {ret, retcode, jid, out}) for each return of a published job, as in ``ask``; None whenever
        nothing has arrived for a moment.
        """
        job: PublishAnswer = {"jid": jid, "minions": list(minions), "missing": []}
        with self._faults():
            runs = await self._runs(login)
            async for each in runs.follow(job, self._timeout(timeout), TICK):
                yield None if each is None else (each.minion, _answer(each))

    async def job_returns(self, jid: str, login: Login) -> Mapping[str, Mapping[str, object]]:
        """Return {minion id: return} of a job from the job cache."""
        with self._faults():
            rights = await self._rights(login)
            return await self._opened().cached_returns(jid, rights)

    async def start(self, call: MasterCall, login: Login) -> dict[str, str]:
        """Start a runner without waiting for it; return its {"jid", "tag"}."""
        with self._faults():
            runs = await self._runs(login, hear=False)
            started = await runs.start_runner(call.fun, call.arg, call.kwarg)
        return {"jid": started["jid"], "tag": started["tag"]}

    async def run(self, call: MasterCall, login: Login, timeout: float = 0) -> dict[str, object]:
        """Run a runner and return the data of its last event: {return, success, jid, fun ...}. ``timeout``: seconds, 0:
        no limit.
        """
        with self._faults():
            runs = await self._runs(login)
            try:
                tag, data = await runs.runner(call.fun, call.arg, call.kwarg, timeout)
            except TimeoutError as error:
                raise SaltReqTimeoutError(
                    f"runner {call.fun} did not end within {timeout:g} s; it goes on at {self._opened().where}: read its "
                    "result later with the runner jobs.lookup_jid"
                ) from error
        # The job cache keeps a runner's data as the return of the master.
        inner = data.get("return")
        whole = inner if isinstance(inner, Mapping) and {"return", "success", "fun"} <= inner.keys() else data
        return {"success": True, **whole, "jid": tag.split("/")[2]}

    async def wheel(self, call: MasterCall, login: Login) -> dict[str, object]:
        """Call a wheel function; return tag and data of its last event."""
        with self._faults():
            rights = await self._rights(login)
            fields: dict[str, Any] = {"fun": call.fun, "arg": list(call.arg), "kwarg": dict(call.kwarg)}
            answer: dict[str, object] = await self._opened().call("wheel", timeout=300.0, full=True, **fields, **rights)
        return answer

    async def gather_minions(self, tgt: object, tgt_type: str, login: Login) -> list[str]:
        """Return the ids of the minions that a target matches, by the grains that the master has."""
        done = await self.run(MasterCall("cache.grains", (tgt,), {"tgt_type": tgt_type}), login)
        found = done["return"]
        if not isinstance(found, Mapping):
            raise InvocationError(f"target {tgt!r} ({tgt_type}): {found}")
        return sorted(map(str, found))

    async def fire(self, tag: str, data: Mapping[str, object], login: Login) -> bool:
        """Fire an event on the master's bus by the runner ``event.send``; return whether the bus accepted it."""
        done = await self.run(MasterCall("event.send", (tag, dict(data))), login)
        return bool(done["return"]) and bool(done["success"])

    async def listen(self, prefix: str, login: Login) -> Listener:
        """Return a new listener for events whose tags start with the prefix. ``leave`` ends it."""
        with self._faults():
            rights = await self._rights(login)
            return await self._opened().listen(prefix, rights)

    async def next_event(self, listener: Listener, seconds: float | None) -> Event | None:
        """Return the next event of a listener; None after so many seconds. None waits without limit."""
        try:
            return await asyncio.wait_for(listener.queue.get(), seconds)
        except TimeoutError:
            return None

    def leave(self, listener: Listener) -> None:
        """End a listener."""
        if self._connection is not None:
            self._connection.leave(listener)

    async def token(self, login: Login) -> str:
        """Return the token of a user, who signs in if necessary; "" for nobody."""
        given = login or self.address.login
        if given.token or not given:
            return given.token
        async with self._signing_in:
            token, expire = self._tokens.get(given, ("", 0.0))
            if expire - _EARLY < time.time():
                with self._faults():
                    token, expire = self._tokens[given] = await self._opened().sign_in(given)
            return token

    async def close(self) -> None:
        """Sign out users who signed in with a password, and close the connection."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        for token, _ in self._tokens.values():
            with contextlib.suppress(ControlError, ControlTimeout):
                await connection.call("logout", of=token, timeout=2.0)
        self._tokens.clear()
        await connection.close()

    def _opened(self) -> Connection:
        loop = asyncio.get_running_loop()
        if self._connection is None or self._loop is not loop:
            # The connection of a loop that has ended cannot be closed any more.
            self._loop, self._signing_in = loop, asyncio.Lock()
            module, name = _CONNECTIONS[type(self.address)]
            try:
                make = cast("_MakeConnection", getattr(importlib.import_module(module), name))
            except ImportError as error:
                raise SaltConfigurationError(
                    f"{error}; clients of the API need the extra `client`: pip install 'saltern-services[client]'"
                ) from error
            try:
                self._connection = make(self.address)
            except ConfigError as error:
                raise SaltConfigurationError(str(error)) from error
        return self._connection

    async def _rights(self, login: Login) -> dict[str, Any]:
        token = await self.token(login)
        return self._opened().rights(token)

    async def _runs(self, login: Login, *, hear: bool = True) -> JobRuns:
        rights, connection = await self._rights(login), self._opened()
        heard = await connection.hear_jobs(rights) if hear else False
        # The API answers such a look by a runner of its own.
        look = 0.05 if isinstance(self.address, Control) else 2.0
        return JobRuns(connection, connection.feed, connection.limits, rights, heard=heard, runner_look=look)

    def _timeout(self, given: float | None) -> float:
        return float(self._opened().limits.timeout if given is None else given)

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        """Raise the typed error for a refusal of the master, or for no answer, in the block."""
        try:
            yield
        except ControlError as error:
            self._refused(error)
        except ControlTimeout as error:
            self._unanswered(error)
        except ValueError as error:
            raise InvocationError(f"{error}: a batch is a number of minions or a percentage, from 1 up") from error

    def _refused(self, error: ControlError) -> NoReturn:
        kind, hint = _REFUSALS.get(error.name, (SaltClientError, ""))
        text = f"the master at {self._opened().where} refuses: {error.message or error.name}"
        raise kind(f"{text}; {hint}" if hint else text) from error

    def _unanswered(self, error: ControlTimeout) -> NoReturn:
        connection = self._opened()
        cause = f" ({error.__cause__})" if error.__cause__ is not None and str(error.__cause__) else ""
        if connection.trouble == "refused":
            raise AuthenticationError(
                f"the master at {connection.where} refuses this operator's key: it knows no such key. Make one with "
                "`saltern keygen --out DIR --operator NAME`, give the master its public key, and name DIR/NAME in key_dir"
            ) from error
        if connection.trouble:
            raise AuthenticationError(
                f"the master at {connection.where} has another key than known/reqserver.pub in this key directory: copy "
                "the master's public keys (`saltern keygen`), or check the address (reqserver_host, control_port)"
            ) from error
        raise SaltReqTimeoutError(
            f"the master at {connection.where} does not answer (waited {error.seconds:g} s){cause}: check that it runs "
            "and that this address is reached from here"
        ) from error


def job_call(job: MinionJob) -> JobCall:
    """Return the publication of a MinionJob."""
    fields = {name: value for name, value in job.passed_on.items() if name in _BESIDE}
    kwargs = {name: value for name, value in job.passed_on.items() if name not in _BESIDE}
    arg = on_the_wire(list(job.arg), dict(job.kwarg))
    return JobCall(job.tgt, job.tgt_type, job.fun, arg, kwargs, fields | ({"ret": job.ret} if job.ret else {}))


def _answer(found: JobReturn) -> dict[str, object]:
    if found.load is None:
        return {"failed": True, "out": "no_return", "jid": found.jid}
    load = found.load
    shown = {"ret": load.get("return"), "retcode": retcode_of(load), "jid": str(load.get("jid") or found.jid)}
    return shown | ({"out": load["out"]} if load.get("out") else {})


def _is_wanted(job: MinionJob, answer: Mapping[str, object]) -> bool:
    return job.expected or not answer.get("failed")
