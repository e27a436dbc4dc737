"""ASGI middleware that checks each request before it reaches a route: the client's address, the size and speed of the
body, and the origin of web pages. It also writes the access log and the metrics.

The log has no queries, headers or bodies, because these may contain passwords and tokens.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from saltern.api.answers import Refused
from saltern.api.bodies import BodyFault, accepted
from saltern.api.settings import ApiSettings
from saltern.kit.process.metrics import Metrics
from statecore.model.values import MASK

#: Most bytes of a body that is too large which are read before the answer.
_DISCARDED = 16 * 1024 * 1024

#: Headers of every answer.
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"SAMEORIGIN"),
)

_METHODS = "GET, POST"
_REQUEST_HEADERS = "Content-Type, X-Auth-Token, X-Requested-With, Last-Event-ID"

#: First parts of paths that are labels of metrics.
_PATHS = frozenset(
    {
        *("", "login", "logout", "token", "run", "minions", "jobs", "keys", "hook", "stats", "events", "ws", "app"),
        *("static", "openapi.json", "openapi", "console", "v1"),
    }
)


#: Parts of routes' paths that are secrets, by the names that the routes give them.
_SECRET_PARTS = frozenset({"token"})

#: Longest part of a path, in characters, that is shown although no parameter of a route matched it: a JID.
_LONGEST_SHOWN = 20


class Guard:
    """ASGI middleware around the API's routes: checks each request, logs it and measures it."""

    def __init__(
        self, app: ASGIApp, settings: ApiSettings, metrics: Metrics, log: logging.Logger, page: Callable[[], Response]
    ) -> None:
        """Put the middleware around ``app``. ``page`` returns the response to browsers that ask for HTML, if the
        setting ``app`` is set.
        """
        self._app = app
        self._settings = settings
        self._metrics = metrics
        self._log = log
        self._page = page
        self._networks = [ipaddress.ip_network(one, strict=False) for one in settings.authorized_ips]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request or websocket: answer it here, or pass it to the routes."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        status = 0
        headers = Headers(scope=scope)
        notes: dict[str, str] = {}
        scope.setdefault("state", {})["notes"] = notes

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message.setdefault("headers", [])
                message["headers"] = [*message["headers"], *_ALWAYS, *cross_origin(headers, self._settings)]
            elif message["type"] in ("websocket.accept", "websocket.close"):
                status = 101 if message["type"] == "websocket.accept" else status or 403
            await send(message)

        try:
            refused = _bad_framing(scope) or self._refused(scope)
            if refused is not None and scope["type"] == "http":
                await refused(scope, receive, sending)
            elif refused is not None:
                await sending({"type": "websocket.close", "code": 1008})
            else:
                await self._app(scope, self._bounded(scope, headers, receive), sending)
        finally:
            self._note(scope, status, time.monotonic() - started, notes)

    def _refused(self, scope: Scope) -> Response | None:
        """Return the response if the middleware itself answers the request, such as a refusal; None if a route must
        answer it.
        """
        headers = Headers(scope=scope)
        if self._networks and not self._may_come(address_of(scope)):
            return JSONResponse({"status": 403, "return": "Bad IP"}, 403)
        if scope["type"] == "websocket":
            return None
        if scope["method"] == "OPTIONS":
            return preflight(headers)
        if self._settings.app and wants_page(scope["method"], scope["path"], headers, self._settings):
            return self._page()
        return None

    def _may_come(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks)

    def _bounded(self, scope: Scope, headers: Mapping[str, str], receive: Receive) -> Receive:
        """Return the ASGI function ``receive`` with limits for the size of the request's body and for the time to
        receive it. The returned function raises BodyFault above a limit.
        """
        if scope["type"] == "websocket":
            return receive
        most, seconds = self._settings.max_request_body_size, self._settings.body_seconds
        left, end, whole = most, time.monotonic() + seconds, False

        async def bounded() -> Message:
            nonlocal left, whole
            if whole:
                # Waits for the client to leave, which takes as long as it takes.
                return await receive()
            length = headers.get("content-length", "0")
            if length.isdigit() and int(length) > most:
                await _discard(receive, end)
                raise BodyFault(413, f"the body is larger than {most} bytes (max_request_body_size)")
            try:
                message = await asyncio.wait_for(receive(), max(end - time.monotonic(), 0.001))
            except TimeoutError as error:
                raise BodyFault(408, f"the body did not arrive within {seconds} s (body_seconds)") from error
            if message["type"] == "http.request":
                left -= len(message.get("body", b""))
                whole = not message.get("more_body")
                if left < 0:
                    await _discard(receive, end)
                    raise BodyFault(413, f"the body is larger than {most} bytes (max_request_body_size)")
            return message

        return bounded

    def _note(self, scope: Scope, status: int, seconds: float, notes: Mapping[str, str]) -> None:
        name = scope["path"].removeprefix(self._settings.root_prefix).lstrip("/").partition("/")[0]
        path = name if name in _PATHS else "other"
        self._metrics.api_requests.labels(path or "/", str(status)).inc()
        if path not in ("events", "ws"):
            self._metrics.api_request_seconds.labels(path or "/").observe(seconds)
        said = "".join(f" {name}={value!r}" for name, value in notes.items())
        method = scope.get("method", "WEBSOCKET")
        self._log.info(
            "%s %s %s %r %d %.3f s%s",
            address_of(scope),
            scope["type"],
            method,
            shown_path(scope),
            status,
            seconds,
            said,
        )


def shown_path(scope: Scope) -> str:
    """Return the path of a request for the log. Secret parts of the matched route are hidden.

    A long part that no parameter of the route matched is hidden, too: the path may be that of a route with a secret,
    written wrongly.
    """
    given = {name: str(value).split("/") for name, value in scope.get("path_params", {}).items()}
    secret = {part for name in _SECRET_PARTS for part in given.get(name, ())}
    named = {part for parts in given.values() for part in parts} - secret
    shown = (
        MASK if part in secret or (len(part) > _LONGEST_SHOWN and part not in named) else part
        for part in scope["path"].split("/")
    )
    return "/".join(shown)


def _bad_framing(scope: Scope) -> Response | None:
    """Return the refusal of a request whose end a proxy may see elsewhere than this server; None for another request.

    Such a request has Transfer-Encoding beside Content-Length, or Transfer-Encoding in HTTP/1.0. The connection is
    closed after the answer, so that no byte behind it is read as a request (RFC 9112, section 6.1).
    """
    names = {name for name, _ in scope["headers"]}
    if b"transfer-encoding" not in names:
        return None
    if b"content-length" not in names and scope.get("http_version") != "1.0":
        return None
    text = "a request has Transfer-Encoding or Content-Length, not both; HTTP/1.0 has no Transfer-Encoding"
    return JSONResponse({"status": 400, "return": text}, 400, headers={"Connection": "close"})


async def _discard(receive: Receive, end: float) -> None:
    """Read and drop the rest of a request's body, until ``end`` (seconds of the monotonic clock) and at most
    _DISCARDED bytes.

    Otherwise a client that is still sending the body would see a broken connection in place of the response.
    """
    left = _DISCARDED
    while left > 0:
        try:
            message = await asyncio.wait_for(receive(), max(end - time.monotonic(), 0.001))
        except TimeoutError:
            return
        left -= len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body"):
            return


def address_of(scope: MutableMapping[str, Any]) -> str:
    """Return the IP address of a request's client; empty text if it is unknown."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def wants_page(method: str, path: str, headers: Mapping[str, str], settings: ApiSettings) -> bool:
    """Return whether a request comes from a browser that asks for an HTML page (Accept: text/html), at a path that is
    not one of the static files. Salt's API answers such a request with the page of the setting ``app``.
    """
    accept = headers.get("accept", "")
    if method not in ("GET", "HEAD") or accept in ("", "*/*") or path == "/openapi":
        return False
    if path.startswith((settings.app_path, settings.static_path, f"{settings.root_prefix}/console")):
        return False
    return accepted(accept, ("application/json", "text/html", "application/x-yaml", "text/event-stream")) == "text/html"


def cross_origin(headers: Mapping[str, str], settings: ApiSettings) -> list[tuple[bytes, bytes]]:
    """Return the response headers that allow a web page of another origin to read the response (CORS).

    Any page may read responses to requests with a token in a header. Responses to requests with a user's cookie may be
    read only by pages whose origin is in ``cors_origin``.
    """
    origin = headers.get("origin")
    if not origin:
        return []
    exposed = (b"access-control-expose-headers", b"X-Auth-Token")
    if origin in settings.cors_origin:
        allowed = (b"access-control-allow-origin", origin.encode("latin-1"))
        return [allowed, (b"access-control-allow-credentials", b"true"), (b"vary", b"Origin"), exposed]
    return [(b"access-control-allow-origin", b"*"), exposed]


def preflight(headers: Mapping[str, str]) -> Response:
    """Return the response to an OPTIONS request of a browser (CORS preflight); Salt's API answers 500 to it."""
    more = {"Allow": _METHODS}
    if headers.get("access-control-request-method") in ("GET", "POST"):
        more |= {
            "Access-Control-Allow-Methods": _METHODS,
            "Access-Control-Allow-Headers": _REQUEST_HEADERS,
            "Access-Control-Max-Age": "1400",
        }
    return Response(status_code=200, headers=more)


def check_origin(headers: Mapping[str, str], settings: ApiSettings, *, publishes: bool = False) -> None:
    """Raise Refused if a web page of another origin sends a request with a user's cookie: the user may not know about
    the request.

    ``publishes``: the request publishes a job although its method is GET, so that a link to it is enough. A browser then
    has to say that a page of this origin sends the request.
    """
    origin, host = headers.get("origin"), headers.get("host", "")
    site = headers.get("sec-fetch-site")
    if site == "cross-site" and origin not in settings.cors_origin:
        raise Refused(403, "a page of another site may not use the cookie: send the header X-Auth-Token")
    if origin and origin.partition("://")[2] != host and origin not in settings.cors_origin:
        raise Refused(403, f"the origin {origin} is not in cors_origin: send the header X-Auth-Token")
    followed = site not in (None, "same-origin") if site or origin else "text/html" in headers.get("accept", "")
    if publishes and followed and not (origin and origin in settings.cors_origin):
        raise Refused(403, "this request publishes a job, and a link may have sent it: send the header X-Auth-Token")
