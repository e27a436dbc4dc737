"""Finding 38.18: what is written into logs of the paths, headers and queries that clients of the API send.

The logs of real roles are searched by ``tests.roles.lab.Lab.close``, for every lab of the suite.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import io
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement
from starlette.types import ASGIApp, Message

from saltern.api.application import application
from saltern.api.event_feed import EventFeed
from saltern.api.server import Api
from saltern.api.settings import ApiSettings
from saltern.kit.config.master import MasterOptions
from saltern.kit.process import logs
from saltern.kit.process.metrics import new_metrics
from tests.security.test_api import TOKEN, FakeLink

#: A token that the master does not know.
UNKNOWN = "c0ffee" * 8

JWT = "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJhbm4iLCJleHAiOjE3NjQ0MTY0MDB9.c2lnbmF0dXJlX29mX3RoZV90b2tlbg"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """The log of a role at the level debug, as ``configure`` sets it up; the process's own logging is restored."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        logs.configure("api", MasterOptions(), "all")
        text = io.StringIO()
        (handler,) = root.handlers
        assert isinstance(handler, logging.StreamHandler)
        handler.setStream(text)
        yield text
    finally:
        root.handlers[:] = before
        root.setLevel(level)


def application_of(prefix: str) -> ASGIApp:
    settings = ApiSettings(disable_ssl=True, root_prefix=prefix)
    link = FakeLink()
    feed = EventFeed(10, lambda: None)
    api = Api(MasterOptions(), settings, link, feed, new_metrics("api"), logging.getLogger("saltern.api"))  # type: ignore[arg-type]
    return application(api)


def ask(app: ASGIApp, path: str) -> None:
    """Send a request for a path to the API, and then open a websocket there, which is closed at once."""

    async def asked() -> None:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
            # The answer of /events does not end.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(client.get(path, headers={"X-Auth-Token": UNKNOWN[::-1]}), 0.2)
        plain, _, query = path.partition("?")
        waiting: list[Message] = [{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000}]
        scope = {"type": "websocket", "path": plain, "raw_path": plain.encode(), "query_string": query.encode()}

        async def receive() -> Message:
            return waiting.pop(0) if waiting else {"type": "websocket.disconnect", "code": 1000}

        async def send(message: Message) -> None:
            assert message["type"].startswith("websocket.")

        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(
                app(
                    {**scope, "scheme": "ws", "headers": [], "subprotocols": [], "client": ("127.0.0.1", 1)},
                    receive,
                    send,
                ),
                5,
            )

    asyncio.run(asked())


#: Ways to put a token into a request's path or query: below the prefix, beside it, and with a slip of the pen.
PATHS = (
    "/ws/{}",
    "/ws/{}/",
    "/ws//{}",
    "/ws?token={}",
    "/wss/{}",
    "/WS/{}",
    "/events/{}",
    "/events?token={}",
    "/events?salt_token={}",
    "/{}",
    "/token/{}",
    "/login/{}",
    "/salt/ws/{}",
    "/v1/ws/{}",
)


@pytest.mark.parametrize("token", [TOKEN, UNKNOWN, JWT], ids=["known", "unknown", "jwt"])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("prefix", ["", "/salt"])
def test_no_token_of_a_path_is_logged(log: io.StringIO, prefix: str, path: str, token: str) -> None:
    ask(application_of(prefix), prefix + path.format(token))
    lines = log.getvalue()
    assert " http GET " in lines
    assert " websocket " in lines
    assert token not in lines
    assert UNKNOWN[::-1] not in lines


@pytest.mark.ordinary
def test_paths_without_a_secret_are_logged(log: io.StringIO) -> None:
    for path in ("/salt/minions/web1.example.com", "/salt/jobs/20260101000000000000", "/salt/no/such/page"):
        ask(application_of("/salt"), path)
        assert path in log.getvalue()


#: Logger of a library -> a record that it writes, as text with a place for the token.
RECORDS = {
    "uvicorn.error": '127.0.0.1:5 - "WebSocket /ws/{}" [accepted]',
    "uvicorn.access": '127.0.0.1:5 - "GET /events?token={} HTTP/1.1" 200',
    "websockets.server": "< GET /ws/{} HTTP/1.1",
    "httpx": "HTTP Request: GET http://vault:8200/v1/secret?token={} 'HTTP/1.1 200 OK'",
    "httpcore.http11": "send_request_headers.started request=<Request [b'GET'] {}>",
    "asyncio": "Future exception was never retrieved: {}",
    "redis.connection": "AUTH default {}",
    "ldap3": "BASIC: bind password <{}>",
    "urllib3.connectionpool": 'https://etcd:2379 "GET /v2/keys?token={} HTTP/1.1" 200',
}


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR])
@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("token", [TOKEN, JWT], ids=["hex", "jwt"])
def test_no_library_logs_a_token(
    log: io.StringIO, monkeypatch: pytest.MonkeyPatch, name: str, level: int, token: str
) -> None:
    # A server of uvicorn that was made before switches one of its loggers off.
    monkeypatch.setattr(logging.getLogger(name), "propagate", True)
    logging.getLogger(name).log(level, RECORDS[name].replace("{}", "%s"), token)
    logging.getLogger(name).log(level, RECORDS[name].format(token))
    lines = log.getvalue().splitlines()
    assert len(lines) == (2 if level >= logging.WARNING else 0)
    assert token not in log.getvalue()


def test_a_library_that_the_operator_asks_for_shows_no_token() -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        logs.configure("api", MasterOptions(log_granular_levels={"httpx": "debug"}), "warning")
        text = io.StringIO()
        (handler,) = root.handlers
        assert isinstance(handler, logging.StreamHandler)
        handler.setStream(text)
        logging.getLogger("httpx").debug("GET /?token=%s", TOKEN)
        assert "GET /?token=" in text.getvalue()
        assert TOKEN not in text.getvalue()
    finally:
        root.handlers[:] = before
        root.setLevel(level)
        logging.getLogger("httpx").setLevel(logging.NOTSET)


@pytest.mark.ordinary
def test_every_library_that_logs_has_a_row() -> None:
    """Each installed package that a role, a command or a minion may import and that makes a logger is in LIBRARIES."""
    silent: list[str] = []
    for distribution in sorted(_runtime_distributions()):
        for path in importlib.metadata.files(distribution) or ():
            top = path.parts[0].removesuffix(".py")
            if path.suffix != ".py" or top in logs.LIBRARIES or top.endswith((".dist-info", ".data")) or top == "..":
                continue
            source = Path(str(path.locate())).read_text("utf-8", "replace")
            if re.search(r"\bgetLogger\(", source) and top not in silent:
                silent.append(top)
    assert silent == []


def _runtime_distributions() -> set[str]:
    found: set[str] = set()
    waiting = ["saltern-services", "saltern-statecore", "saltern-saltwire", "saltern-masterstore"]
    while waiting:
        name = waiting.pop()
        try:
            required = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        if name in found:
            continue
        found.add(name)
        ours = name.startswith("saltern-")
        for text in required:
            requirement = Requirement(text)
            # Extras of ours are installed on demand; extras of others only where they are asked for.
            if ours or requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name.lower())
    return {name for name in found if not name.startswith("saltern-")}
