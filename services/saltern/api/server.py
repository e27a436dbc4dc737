"""The objects that all routes of one API server share, and the form of its answers."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from saltern.api.answers import Refused, status_of
from saltern.api.bodies import JSON, BodyFault, accepted, read_body, written
from saltern.api.clients import Clients, Values
from saltern.api.event_feed import EventFeed
from saltern.api.guard import address_of, check_origin, shown_path
from saltern.api.sessions import Logins, Sessions, User
from saltern.api.settings import ApiSettings
from saltern.api.streams import Streams
from saltern.kit.config.access_rows import LiveRows
from saltern.kit.config.master import MasterOptions
from saltern.kit.links.master_link import MasterLink
from saltern.kit.process.metrics import Metrics

#: Name of the cookie with a session's token.
COOKIE = "session_id"


@dataclass
class Api:
    """The objects that all routes of one API server share: options, settings, connections, event feed, sessions,
    metrics and log.
    """

    options: MasterOptions
    settings: ApiSettings
    link: MasterLink
    feed: EventFeed
    metrics: Metrics
    log: logging.Logger
    clients: Clients = field(init=False)
    logins: Logins = field(init=False)
    sessions: Sessions = field(init=False)
    streams: Streams = field(init=False)
    started: float = field(default_factory=time.time)
    requests: int = 0
    #: Directory of the file ``master``; as of Role.
    config_dir: str | None = ""

    def __post_init__(self) -> None:
        self.clients = Clients(self.link, self.feed, self.options)
        rows = LiveRows(self.options, self.config_dir)
        self.logins = Logins(self.link, lambda: rows.current().api_acl if rows.follows else self.settings.api_acl)
        self.sessions = Sessions(self.logins)
        self.streams = Streams(self.link, self.feed, self.sessions, self.settings)

    # ------------------------------------------------------------------------------------------------- who asks, and what

    def token_of(self, request: HTTPConnection, *, publishes: bool = False) -> str:
        """Return the token of a request: the header X-Auth-Token, else the session's cookie, else "". Raises Refused
        if a page of another site uses the cookie. ``publishes``: the request publishes a job although its method is GET.
        """
        if token := request.headers.get("x-auth-token", ""):
            return token
        if token := request.cookies.get(COOKIE, ""):
            check_origin(request.headers, self.settings, publishes=publishes)
        return token

    async def signed_in(
        self, request: HTTPConnection, token: str | None = None, *, publishes: bool = False
    ) -> tuple[str, User]:
        """Return (token, User) of a request. Raises Refused (401) if the token is missing, unknown or has expired.

        ``publishes``: the request publishes a job although its method is GET.
        """
        token = self.token_of(request, publishes=publishes) if token is None else token
        user = await self.sessions.user_of(token, address_of(request.scope))
        if user is None:
            raise Refused(401, "No permission -- see authorization schemes")
        request.state.notes["user"] = user.name
        return token, user

    async def value(self, request: Request, *, known: bool = True, most: int = 0) -> object:
        """Return the data in the body of a request, such as a list of chunks. Raises BodyFault.

        ``known``: the session is known. ``most``: largest number of bytes, if it is less than that of every request.
        """
        body = await request.body()
        if most and len(body) > most:
            raise BodyFault(413, f"the body is larger than {most} bytes")
        return read_body(request.headers.get("content-type", ""), body, known=known)

    async def run(self, request: Request, chunks: list[dict[str, Any]], token: str) -> list[object]:
        """Run chunks of low data one after the other with the rights of the token's user. Return the list of their
        values.
        """
        found: list[object] = []
        for chunk in chunks:
            value = await self.clients.run(chunk, token)
            note_jid(request, value)
            found += value if isinstance(value, Values) else [value]
        return found


def note_jid(request: Request, value: object) -> None:
    """Record the JID in ``value``, the value of a chunk, for the access log. A value without a JID is ignored."""
    jid = value.get("jid") if isinstance(value, Mapping) else None
    if isinstance(jid, str):
        request.state.notes["jid"] = jid


def kind_of(request: Request) -> str | None:
    """Return the content type of the answer that a request prefers, JSON or YAML; None if it accepts neither."""
    return accepted(request.headers.get("accept", ""))


def shown(request: Request, value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response with a value in the body, in the format (JSON or YAML) that the request prefers."""
    kind = kind_of(request) or JSON
    return Response(written(value, kind), status, {"Cache-Control": "private", **(headers or {})}, kind)


def failed(api: Api, request: Request, error: Exception) -> Response:
    """Return the response to a request that failed with this error; an unexpected error is logged."""
    status, text = status_of(error, debug=api.settings.debug)
    if status == 500:
        api.log.error("%s %s failed", request.method, shown_path(request.scope), exc_info=error)
    headers = {"Retry-After": "60"} if status == 429 else {}
    if status in (408, 413):
        # The rest of the body is not read.
        headers["Connection"] = "close"
    return shown(request, {"status": status, "return": text}, status, headers)


#: Answers one request.
Handler: TypeAlias = Callable[[Api, Request], Awaitable[Response]]
