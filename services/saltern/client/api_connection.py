"""A client's connection to the API: the commands of port 4507 as HTTP requests, and events as Server-Sent Events.

Source: docs/api.md
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from saltern.client.addresses import Api, Login
from saltern.client.connection import Event, Listener
from saltern.kit.config.reading import ConfigError
from saltern.kit.jobs.job_feed import JobFeed
from saltern.kit.links.control import CONTROL_PATIENCE, ControlError, ControlTimeout

#: Seconds to wait for the first bytes of the event stream; after that the job cache is read instead.
_STREAM_PATIENCE = 5.0


#: Seconds before a broken event stream is opened again.
_AGAIN = 0.4

#: Seconds for requests that the API answers only after work: sign-ins, wheel functions.
_SIGN_IN, _WHEEL = 60.0, 310.0

#: Fields of a publication that stand beside ``kwargs``.
_BESIDE = ("ret", "jid", "when_back", "no_replay")

#: HTTP status -> name of the refusal, where the status alone says it.
_REFUSALS: Mapping[int, str] = {
    400: "InvocationError",
    403: "AuthorizationError",
    404: "UnknownFunction",
    413: "InvocationError",
    429: "TooManyLogins",
}


@dataclass(frozen=True, slots=True)
class _ApiLimits:
    """Time limits of a master behind an API, which does not tell its own: Salt's defaults."""

    timeout: float = 5.0
    gather_job_timeout: float = 10.0
    id: str = ""


class ApiConnection:
    """Connection to the API. It belongs to the asyncio loop that is running when it is made."""

    def __init__(self, address: Api) -> None:
        """Prepare the connection; nothing is sent yet. Raises ConfigError for a wrong URL or an unreadable ``ca_file``."""
        self.limits = _ApiLimits()
        self.where = address.url.rstrip("/")
        self.feed = JobFeed(whole=True)
        self._address = address
        self._listeners: set[Listener] = set()
        self._stream: asyncio.Task[None] | None = None
        self._flows = asyncio.Event()
        #: Set once the stream flows, or the first attempt to open it has failed.
        self._tried = asyncio.Event()
        self._fault: ControlError | None = None
        if not self.where.startswith(("http://", "https://")):
            raise ConfigError(f"the API's url {address.url!r} does not start with https:// or http://")
        try:
            verify: ssl.SSLContext | bool = (
                ssl.create_default_context(cafile=address.ca_file) if address.ca_file else address.verify
            )
        except OSError as error:
            raise ConfigError(f"ca_file {address.ca_file}: {error}") from error
        self._http = httpx.AsyncClient(base_url=self.where, verify=verify, timeout=address.patience)
        self._commands: Mapping[str, Callable[[str, Mapping[str, Any], float], Awaitable[object]]] = {
            "publish": self._publish,
            "job_returns": self._job_returns,
            "runner": self._runner,
            "wheel": self._wheel,
            "logout": self._logout,
        }

    @property
    def trouble(self) -> str:
        """Return "": certificates are checked by each request."""
        return ""

    async def call(self, cmd: str, *, timeout: float = CONTROL_PATIENCE, once: bool = False, **fields: object) -> Any:
        """Send a command as an HTTP request and return what port 4507 would return. Raises ControlError, ControlTimeout."""
        patience = self._address.patience if timeout == CONTROL_PATIENCE else timeout
        return await self._commands[cmd](str(fields.pop("token", "")), fields, patience)

    async def hear_jobs(self, rights: Mapping[str, object]) -> bool:
        """Open the event stream at the first call; return whether events arrive."""
        self._open_stream(str(rights.get("token", "")))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._tried.wait(), _STREAM_PATIENCE)
        return self._flows.is_set() and self._fault is None

    async def listen(self, prefix: str, rights: Mapping[str, object]) -> Listener:
        """Return a new listener for events whose tags start with the prefix. Raises ControlError if the user may not
        read events, ControlTimeout.
        """
        listener = Listener(prefix)
        self._listeners.add(listener)
        if not await self.hear_jobs(rights):
            self._listeners.discard(listener)
            raise self._fault or ControlTimeout(f"{self.where}/events", _STREAM_PATIENCE)
        return listener

    def leave(self, listener: Listener) -> None:
        """Stop to queue events for a listener."""
        self._listeners.discard(listener)

    def rights(self, token: str) -> dict[str, Any]:
        """Return the fields of a command that say for whom it acts."""
        return {"token": token}

    async def sign_in(self, login: Login) -> tuple[str, float]:
        """Sign in a user; return (token, Unix time at which it expires)."""
        body = {"username": login.username, "password": login.password, "eauth": login.eauth}
        answer = await self._ask("POST", "/login", "", max(_SIGN_IN, self._address.patience), body)
        session = answer["return"][0]
        return str(session["token"]), float(session["expire"])

    async def cached_returns(self, jid: str, rights: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]:
        """Return {minion id: return} of a job from the job cache. Raises ControlError, ControlTimeout."""
        return await self._job_rows(str(rights.get("token", "")), jid, self._address.patience)

    async def close(self) -> None:
        """Close the event stream and the connections."""
        if self._stream is not None:
            self._stream.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._stream
        await self._http.aclose()

    # --------------------------------------------------------------------------------------------------------- commands

    async def _publish(self, token: str, fields: Mapping[str, Any], patience: float) -> object:
        chunk = {name: fields[name] for name in ("tgt", "tgt_type", "fun", "arg")} | dict(fields.get("kwargs") or {})
        chunk |= {name: fields[name] for name in _BESIDE if fields.get(name)}
        made = await self._run(token, {"client": "local_async", **chunk}, patience)
        if not isinstance(made, Mapping) or not made.get("jid"):
            return {"jid": None, "minions": [], "missing": []}
        return {"jid": str(made["jid"]), "minions": list(made.get("minions", ())), "missing": []}

    async def _job_returns(self, token: str, fields: Mapping[str, Any], patience: float) -> object:
        try:
            found = await self._job_rows(token, str(fields["jid"]), patience)
        except ControlError as error:
            # A user who may not read the job cache gets returns as events.
            if error.name == "AuthorizationError" and self._flows.is_set():
                return {}
            raise
        wanted = fields.get("minions")
        return found if wanted is None else {minion: load for minion, load in found.items() if minion in wanted}

    async def _job_rows(self, token: str, jid: str, patience: float) -> dict[str, Mapping[str, object]]:
        answer = await self._ask("GET", f"/jobs/{jid}", token, patience)
        info = answer.get("info") or [{}]
        rows = info[0].get("Result") or {}
        return {name: {**row, "jid": jid} if isinstance(row, dict) else {"return": row} for name, row in rows.items()}

    async def _runner(self, token: str, fields: Mapping[str, Any], patience: float) -> object:
        return await self._run(token, {"client": "runner_async", **_call(fields)}, patience)

    async def _wheel(self, token: str, fields: Mapping[str, Any], patience: float) -> object:
        return await self._run(token, {"client": "wheel", **_call(fields)}, max(patience, _WHEEL))

    async def _logout(self, token: str, fields: Mapping[str, Any], patience: float) -> object:
        await self._ask("POST", "/logout", str(fields.get("of", "")), patience, {})
        return True

    async def _run(self, token: str, chunk: Mapping[str, object], patience: float) -> object:
        answer = await self._ask("POST", "/", token, patience, chunk)
        return answer["return"][0]

    async def _ask(
        self, method: str, path: str, token: str, patience: float, body: Mapping[str, object] | None = None
    ) -> dict[str, Any]:
        """Send an HTTP request and return the map in the answer. Raises ControlError, ControlTimeout."""
        headers = {"Accept": "application/json", **({"X-Auth-Token": token} if token else {})}
        try:
            content = None if body is None else json.dumps(body)
        except (TypeError, ValueError) as error:
            raise ControlError("InvocationError", f"the arguments cannot be sent as JSON: {error}") from error
        if content is not None:
            headers["Content-Type"] = "application/json"
        began = time.monotonic()
        try:
            answer = await self._http.request(method, path, headers=headers, content=content, timeout=patience)
            # The session's cookie would act for the last user who signed in.
            self._http.cookies.clear()
            if answer.status_code >= 400:
                raise _refusal(self.where, path, answer)
            found = answer.json()
        except httpx.TimeoutException as error:
            raise ControlTimeout(self.where, patience) from error
        except httpx.TransportError as error:
            raise ControlTimeout(self.where, round(time.monotonic() - began, 1)) from error
        except ValueError as error:
            raise ControlError("BadAnswer", f"{self.where}{path} answers no JSON: is it Salt's API?") from error
        if not isinstance(found, dict):
            raise ControlError("BadAnswer", f"{self.where}{path} answers no map: is it Salt's API?")
        return found

    # ----------------------------------------------------------------------------------------------------------- events

    def _open_stream(self, token: str) -> None:
        if self._stream is None or self._stream.done():
            self._fault = None
            self._flows.clear()
            self._tried.clear()
            self._stream = asyncio.get_running_loop().create_task(self._follow_events(token))

    async def _follow_events(self, token: str) -> None:
        """Receive events until the connection is closed, or the API refuses the user. A broken stream goes on after
        the last event.
        """
        last = ""
        while True:
            headers = {"X-Auth-Token": token, **({"Last-Event-ID": last} if last else {})}
            try:
                timeout = httpx.Timeout(self._address.patience, read=None)
                async with self._http.stream("GET", "/events", headers=headers, timeout=timeout) as answer:
                    if answer.status_code >= 400:
                        await answer.aread()
                        refusal = _refusal(self.where, "/events", answer)
                        if isinstance(refusal, ControlError):
                            self._fault = refusal
                            self._tried.set()
                            return
                        raise httpx.TransportError(str(refusal))
                    self._flows.set()
                    self._tried.set()
                    data = ""
                    async for line in answer.aiter_lines():
                        name, _, value = line.partition(": ")
                        if name == "data":
                            data = value
                        elif name == "id":
                            last = value
                        elif not line and data:
                            self._receive(data)
                            data = ""
            except (httpx.TransportError, httpx.StreamError):
                # The replica ended or is away; another one goes on after the last event.
                self._tried.set()
            await asyncio.sleep(_AGAIN)

    def _receive(self, text: str) -> None:
        try:
            event = json.loads(text)
            tag, data = str(event["tag"]), dict(event["data"])
        except (ValueError, KeyError, TypeError):
            return
        self.feed.deliver(tag, data, len(text))
        for listener in list(self._listeners):
            listener.put(Event(tag, data))


def _call(fields: Mapping[str, Any]) -> dict[str, object]:
    return {
        "fun": fields["fun"],
        "arg": list(fields.get("arg") or ()),
        "kwarg": dict(fields.get("kwarg") or {}),
    }


def _refusal(where: str, path: str, answer: httpx.Response) -> ControlError | ControlTimeout:
    """Return the error for an HTTP status from 400 up, with the text of the answer."""
    try:
        said = str(answer.json().get("return", ""))
    except (ValueError, AttributeError):
        said = answer.text[:200]
    status = answer.status_code
    if status in (503, 504):
        return ControlError("StoreUnavailable", f"{where} answers {status}: {said}")
    if status == 401:
        if path == "/login":
            return ControlError("EauthAuthenticationError", said)
        unknown = said.startswith("No permission --")
        return ControlError("TokenAuthenticationError" if unknown else "AuthorizationError", said)
    return ControlError(_REFUSALS.get(status, f"HTTP {status}"), said or f"{where}{path} answers {status}")
