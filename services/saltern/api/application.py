"""The routes of the API: they answer the same paths as Salt's ``rest_cherrypy``, so that clients of Salt work
unmodified.
"""

from __future__ import annotations

import io
import platform
import tarfile
import time
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from saltern.api import console, typed_calls
from saltern.api.answers import Refused
from saltern.api.bodies import MOST_OF_LOGIN, BodyFault, lowstate_of, read_body
from saltern.api.clients import Chunk
from saltern.api.guard import Guard, address_of
from saltern.api.openapi import document, page
from saltern.api.server import COOKIE, Api, Handler, failed, kind_of, shown
from saltern.api.sessions import with_credentials
from saltern.api.streams import EventStream, websocket
from saltern.kit.links.control import ControlError, ControlTimeout
from saltern.kit.links.rights import Verb

#: Headers of a webhook that its event does not show: they could log in here.
_PRIVATE = frozenset({"cookie", "x-auth-token"})


# --------------------------------------------------------------------------------------------------------------- routes


async def welcome(api: Api, request: Request) -> Response:
    """Answer ``GET /`` with the names of the API's clients (local, runner ...)."""
    return shown(request, {"return": "Welcome", "clients": api.clients.names})


async def lowstate(api: Api, request: Request) -> Response:
    """Answer ``POST /``: run the chunks of low data in the body with the rights of the session's user, and return
    their values.
    """
    token, _ = await api.signed_in(request)
    chunks = lowstate_of(await api.value(request))
    return shown(request, {"return": await api.run(request, chunks, token)})


async def run(api: Api, request: Request) -> Response:
    """Answer ``POST /run``: run the chunks of low data in the body. Each chunk contains its own token, or user name
    and password.
    """
    found: list[object] = []
    for chunk in lowstate_of(await api.value(request, known=False)):
        token, made = await with_credentials(api.logins, api.sessions, chunk, address_of(request.scope))
        try:
            found += await api.run(request, [chunk], token)
        finally:
            if made:
                await api.logins.end(token)
    return shown(request, {"return": found})


async def login_page(api: Api, request: Request) -> Response:
    """Answer ``GET /login`` with a text that says that one has to log in."""
    return shown(request, {"status": None, "return": "Please log in"}, headers={"WWW-Authenticate": "Session"})


async def login(api: Api, request: Request) -> Response:
    """Answer ``POST /login`` with a new session, for a user name and password or for a bearer token."""
    value = await api.value(request, known=False, most=MOST_OF_LOGIN)
    given = value[0] if isinstance(value, list) and value else value
    fields = dict(given) if isinstance(given, Mapping) else {}
    kind, _, bearer = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and bearer and "password" not in fields:
        fields = {"eauth": "oidc", "username": "", **fields, "password": bearer.strip()}
    if not fields:
        raise Refused(400, "a login has username, password and eauth")
    wanted = {name: fields.get(name) for name in ("username", "password", "eauth", "token_expire")}
    try:
        answer = await api.logins.token(address_of(request.scope), kind="session", **wanted)
    except ControlError as error:
        if error.name == "EauthAuthenticationError":
            raise Refused(401, "Could not authenticate using provided credentials") from error
        raise
    request.state.notes["user"] = str(answer["name"])
    token, seconds = str(answer["token"]), int(answer["expire"] - answer["start"])
    session = {
        "token": token,
        "expire": answer["expire"],
        "start": answer["start"],
        "user": answer["name"],
        "eauth": answer["eauth"],
        "perms": sorted_permissions(answer["perms"]) or {},
    }
    made = shown(request, {"return": [session]}, headers={"X-Auth-Token": token, "Cache-Control": "no-store"})
    secure = request.url.scheme == "https"
    made.set_cookie(COOKIE, token, max_age=seconds, path="/", secure=secure, httponly=True, samesite="lax")
    return made


def sorted_permissions(rules: list[object]) -> list[object]:
    """Return the access rules of a user, each once and sorted as Salt shows them: rules that are texts come first."""
    texts = sorted({rule for rule in rules if isinstance(rule, str)})
    others: list[object] = []
    for rule in rules:
        if not isinstance(rule, str) and rule not in others:
            others.append(rule)
    return [*texts, *sorted(others, key=repr)]


async def logout(api: Api, request: Request) -> Response:
    """Answer ``POST /logout``: revoke the token of the session."""
    token, _ = await api.signed_in(request)
    await api.logins.end(token)
    api.sessions.forget(token)
    made = shown(request, {"return": "Your token has been cleared"})
    made.delete_cookie(COOKIE, path="/")
    return made


async def token(api: Api, request: Request) -> Response:
    """Answer ``POST /token`` with a list of new tokens for ``/run``. Unlike other responses, the list is not below
    ``return``.
    """
    found = []
    for creds in lowstate_of(await api.value(request, known=False, most=MOST_OF_LOGIN)):
        if any(name not in creds for name in ("username", "password", "eauth")):
            raise Refused(400, 'Require "username", "password", and "eauth" params')
        wanted = {name: creds.get(name) for name in ("username", "password", "eauth", "token_expire")}
        answer = await api.logins.token(address_of(request.scope), **wanted)
        found.append({name: answer[name] for name in ("start", "expire", "name", "eauth", "token")})
    return shown(request, found, headers={"Cache-Control": "no-store"})


async def minions(api: Api, request: Request) -> Response:
    """Answer ``GET /minions`` and ``GET /minions/<id>`` with the grains of minions. Answer ``POST /minions``: publish
    jobs without waiting for them, with status 202.
    """
    token, _ = await api.signed_in(request, publishes=request.method != "POST")
    if request.method == "POST":
        chunks = [{**chunk, "client": "local_async"} for chunk in lowstate_of(await api.value(request))]
        found = await api.run(request, chunks, token)
        jobs = [{"href": f"/jobs/{job['jid']}"} for job in found if isinstance(job, Mapping) and job.get("jid")]
        return shown(request, {"return": found, "_links": {"jobs": jobs}}, 202)
    chunk = {"client": "local", "tgt": request.path_params.get("mid", "*"), "fun": "grains.items"}
    return shown(request, {"return": await api.run(request, [chunk], token)})


async def jobs(api: Api, request: Request) -> Response:
    """Answer ``GET /jobs`` with all jobs, and ``GET /jobs/<jid>`` with one job and its returns."""
    token, _ = await api.signed_in(request)
    jid = request.path_params.get("jid")
    if not jid:
        chunk: Chunk = {"client": "runner", "fun": "jobs.list_jobs"}
        return shown(request, {"return": await api.run(request, [dict(chunk)], token)})
    chunk = {"client": "runner", "fun": "jobs.list_job", "jid": jid}
    (job,) = await api.run(request, [dict(chunk)], token)
    if not isinstance(job, Mapping):
        # The runner's error, as text.
        job = {"jid": jid, "Error": "Cannot contact returner or no job with this jid", "Result": {}}
    result = job.get("Result")
    rows = result if isinstance(result, Mapping) else {}
    returns = {minion: row.get("return") if isinstance(row, Mapping) else row for minion, row in rows.items()}
    return shown(request, {"info": [job], "return": [returns]})


async def keys(api: Api, request: Request) -> Response:
    """Answer ``GET /keys`` with the lists of minion keys, and ``GET /keys/<id>`` with the fingerprint of one key."""
    token, _ = await api.signed_in(request)
    mid = request.path_params.get("mid")
    chunk = (
        {"client": "wheel", "fun": "key.finger", "match": mid} if mid else {"client": "wheel", "fun": "key.list_all"}
    )
    (answer,) = await api.run(request, [chunk], token)
    data = answer.get("data", {}) if isinstance(answer, Mapping) else {}
    lists = data.get("return", {})
    # Salt also lists the master's own key files here; there are none.
    own: dict[str, list[str]] = {} if mid or not isinstance(lists, Mapping) else {"local": []}
    return shown(request, {"return": {**lists, **own} if isinstance(lists, Mapping) else lists})


async def new_key(api: Api, request: Request) -> Response:
    """Answer ``POST /keys`` with a key pair for a new minion, as a tar archive; the master has accepted the key
    already. The body contains the user's credentials.
    """
    chunks = lowstate_of(await api.value(request, known=False))
    chunk: dict[str, Any] = chunks[0] if chunks else {}
    if "mid" not in chunk:
        raise Refused(400, "'mid' names the minion")
    token, made = await with_credentials(api.logins, api.sessions, chunk, address_of(request.scope))
    call: dict[str, Any] = {"client": "wheel", "fun": "key.gen_accept", "id_": chunk["mid"]}
    call |= {name: chunk[name] for name in ("keysize", "force") if name in chunk}
    try:
        (answer,) = await api.run(request, [call], token)
    finally:
        if made:
            await api.logins.end(token)
    data = answer.get("data", {}) if isinstance(answer, Mapping) else {}
    pair = data.get("return")
    if not data.get("success") or not isinstance(pair, Mapping) or not pair.get("priv"):
        raise Refused(400, f"no key was made: {pair}")
    name = "".join(char for char in str(chunk["mid"]) if char.isalnum() or char in "._-")
    headers = {"Content-Disposition": f'attachment; filename="saltkeys-{name}.tar"', "Cache-Control": "no-store"}
    return Response(
        _tar({"minion.pub": str(pair["pub"]), "minion.pem": str(pair["priv"])}), 200, headers, "application/x-tar"
    )


def _tar(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), 0o600
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


async def hook(api: Api, request: Request) -> Response:
    """Answer ``POST /hook/<path>``: fire the event ``salt/netapi/hook/<path>`` with the request's body, parsed body
    and headers.
    """
    if not api.settings.webhook_disable_auth:
        await api.signed_in(request)
    body = await request.body()
    known = not api.settings.webhook_disable_auth
    post = read_body(request.headers.get("content-type", ""), body, known=known)
    headers = {name.title(): text for name, text in request.headers.items() if name not in _PRIVATE}
    path = [part for part in str(request.path_params.get("path", "")).split("/") if part]
    data = {"body": body.decode("utf-8", "replace"), "post": post or {}, "headers": headers}
    return shown(request, {"success": bool(await api.link.call("hook", path=path, data=data))})


async def stats(api: Api, request: Request) -> Response:
    """Answer ``GET /stats`` with figures about the server, in the form of CherryPy's statistics."""
    if not api.settings.stats_disable_auth:
        await api.signed_in(request)
    seconds = max(time.time() - api.started, 0.001)
    figures = {
        "Enabled": True,
        "Current Time": time.time(),
        "Start Time": api.started,
        "Uptime": seconds,
        "Current Requests": 1,
        "Total Requests": api.requests,
        "Requests/Second": api.requests / seconds,
        "Server Version": f"saltern, Python {platform.python_version()}",
    }
    return shown(request, {"CherryPy Applications": figures})


async def events(api: Api, request: Request) -> Response:
    """Answer ``GET /events`` with a stream of the events of the master's bus. It continues after the event that the
    header Last-Event-ID names.
    """
    given = request.query_params.get("token") or request.query_params.get("salt_token")
    if set(request.query_params) - {"token", "salt_token"}:
        raise Refused(400, "/events takes no query parameters; send the header X-Auth-Token")
    token, user = await api.signed_in(request, None if request.headers.get("x-auth-token") else given)
    if not user.has_rights:
        raise Refused(401, "No row of external_auth gives this user a right: events are for users who have one")
    stream = EventStream(api.streams, token, request.headers.get("last-event-id", ""))
    return _Streamed(stream)


class _Streamed(Response):
    """A response whose body is written by an ASGI application."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application
        self.background = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._application(scope, receive, send)


async def open_socket(api: Api, socket: WebSocket) -> None:
    """Serve ``/ws`` or ``/ws/<token>``: a websocket that sends each event of the master's bus as a message."""
    given = socket.path_params.get("token") or socket.query_params.get("token")
    try:
        token, user = await api.signed_in(socket, given)
    except (Refused, ControlError, ControlTimeout):
        await socket.close(1008)
        return
    if not user.has_rights:
        await socket.close(1008)
        return
    await websocket(api.streams, socket, token)


async def openapi(api: Api, request: Request) -> Response:
    """Answer ``GET /openapi.json`` with the description of this API."""
    return JSONResponse(document(api.settings))


async def openapi_page(api: Api, request: Request) -> Response:
    """Answer ``GET /openapi`` with the description of this API as an HTML page."""
    return HTMLResponse(page(api.settings))


# ---------------------------------------------------------------------------------------------------------- application


class Entry(Enum):
    """Who may come in by a route."""

    #: Everybody: the route tells nothing that the master keeps.
    OPEN = "open"
    #: Users with a token. What they may do and see is decided by the master, for each command that the route sends.
    TOKEN = "token"
    #: Whoever knows a password or a token, which the body has.
    CREDENTIALS = "credentials"
    #: Users with a token, until a setting (``stats_disable_auth``, ``webhook_disable_auth``) opens the route.
    SETTING = "setting"


class ApiRoute(NamedTuple):
    """A row of ROUTES: a path with its methods and handler, what it does, and who may come in."""

    path: str
    methods: tuple[str, ...]
    handler: Handler
    verb: Verb
    entry: Entry


#: A route without a verb and an entry does not import. Webhooks and websockets have settings of their own (``application``).
ROUTES: tuple[ApiRoute, ...] = (
    ApiRoute("/", ("GET",), welcome, Verb.READ, Entry.OPEN),
    ApiRoute("/", ("POST",), lowstate, Verb.MANAGE, Entry.TOKEN),
    ApiRoute("/login", ("GET",), login_page, Verb.READ, Entry.OPEN),
    ApiRoute("/login", ("POST",), login, Verb.RUN, Entry.CREDENTIALS),
    ApiRoute("/logout", ("POST",), logout, Verb.RUN, Entry.TOKEN),
    ApiRoute("/token", ("POST",), token, Verb.RUN, Entry.CREDENTIALS),
    ApiRoute("/run", ("POST",), run, Verb.MANAGE, Entry.CREDENTIALS),
    ApiRoute("/minions", ("GET", "POST"), minions, Verb.RUN, Entry.TOKEN),
    ApiRoute("/minions/{mid}", ("GET",), minions, Verb.RUN, Entry.TOKEN),
    ApiRoute("/jobs", ("GET",), jobs, Verb.READ, Entry.TOKEN),
    ApiRoute("/jobs/{jid}", ("GET",), jobs, Verb.READ, Entry.TOKEN),
    ApiRoute("/keys", ("GET",), keys, Verb.READ, Entry.TOKEN),
    ApiRoute("/keys", ("POST",), new_key, Verb.MANAGE, Entry.CREDENTIALS),
    ApiRoute("/keys/{mid}", ("GET",), keys, Verb.READ, Entry.TOKEN),
    ApiRoute("/stats", ("GET",), stats, Verb.READ, Entry.SETTING),
    ApiRoute("/events", ("GET",), events, Verb.READ, Entry.TOKEN),
    ApiRoute("/openapi.json", ("GET",), openapi, Verb.READ, Entry.OPEN),
    ApiRoute("/openapi", ("GET",), openapi_page, Verb.READ, Entry.OPEN),
    *(ApiRoute(path, ("GET",), handler, Verb.READ, Entry.TOKEN) for path, handler in typed_calls.ROUTES),
)


def application(api: Api) -> ASGIApp:
    """Return the ASGI application of an API server."""
    settings = api.settings

    def bound(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            api.requests += 1
            try:
                if handler not in (openapi, openapi_page, events) and kind_of(request) is None:
                    raise Refused(406, "Accept: application/json or application/x-yaml")
                return await handler(api, request)
            except HTTPException:
                raise
            except Exception as error:  # noqa: BLE001 - every error becomes an answer; unexpected ones are logged
                return failed(api, request, error)

        return answer

    async def on_socket(socket: WebSocket) -> None:
        await open_socket(api, socket)

    async def app_page(request: Request) -> Response:
        return FileResponse(settings.app)

    async def icon(request: Request) -> Response:
        return FileResponse(settings.favicon)

    async def not_a_route(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return JSONResponse(
            {"status": error.status_code, "return": str(error.detail)}, error.status_code, headers=error.headers
        )

    async def unexpected(request: Request, error: Exception) -> Response:
        return failed(api, request, error)

    base = settings.webhook_url.rstrip("/")
    routes: list[BaseRoute] = [Route(each.path, bound(each.handler), methods=list(each.methods)) for each in ROUTES]
    routes += [Route(base + end, bound(hook), methods=["POST"]) for end in ("", "/{path:path}")]
    routes += [WebSocketRoute(path, on_socket) for path in ("/ws", "/ws/{token}")]
    if settings.console:
        routes += console.routes()
    if settings.app:
        routes += [Route(settings.app_path + end, app_page, methods=["GET"]) for end in ("", "/{rest:path}")]
    if settings.static:
        routes.append(Mount(settings.static_path, StaticFiles(directory=settings.static)))
    if settings.favicon:
        routes.append(Route("/favicon.ico", icon, methods=["GET"]))
    if settings.root_prefix:
        routes = [Mount(settings.root_prefix, routes=routes)]
    made = Starlette(routes=routes, exception_handlers={HTTPException: not_a_route, BodyFault: unexpected})
    return Guard(made, settings, api.metrics, api.log, lambda: FileResponse(settings.app))
