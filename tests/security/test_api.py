"""Attacks on the API: by pages of other sites, by bodies, by paths, by tokens in places that are logged. No master is behind it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from saltern.api.application import application
from saltern.api.event_feed import EventFeed
from saltern.api.main import _configuration
from saltern.api.server import Api
from saltern.api.settings import ApiSettings
from saltern.kit.config.master import MasterOptions
from saltern.kit.links.control import ControlError
from saltern.kit.process.metrics import new_metrics

TOKEN = "ab" * 20
HERE = "127.0.0.1"


class FakeLink:
    """A master that knows one token, and notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def call(self, cmd: str, **fields: Any) -> Any:
        self.asked.append((cmd, fields))
        if cmd == "token_info":
            if fields["of"] != TOKEN:
                raise ControlError("TokenAuthenticationError", "unknown")
            return {"name": "ann", "perms": [".*"], "expire": 9e9}
        if cmd == "login":
            return {"token": TOKEN, "name": "ann", "eauth": "file", "perms": [".*"], "start": 0, "expire": 9e9}
        if cmd == "publish":
            return {"jid": None, "minions": [], "missing": []}
        return True

    @property
    def done(self) -> list[str]:
        """What was asked, but for questions about tokens."""
        return [cmd for cmd, _ in self.asked if cmd != "token_info"]


class Server:
    """An API without a socket."""

    def __init__(self, directory: Path) -> None:
        (directory / "static").mkdir()
        (directory / "secret").write_text("s3cret")
        (directory / "static" / "link").symlink_to(directory / "secret")
        settings = ApiSettings(disable_ssl=True, static=str(directory / "static"))
        options = MasterOptions(netapi_enable_clients=["local", "local_async"])
        self.link = FakeLink()
        feed = EventFeed(10, lambda: None)
        api = Api(options, settings, self.link, feed, new_metrics("api"), logging.getLogger("saltern.api"))  # type: ignore[arg-type]
        self.sessions = api.sessions
        self.app = application(api)

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def asked() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://api") as client:
                return await client.request(method, path, **more)

        return asyncio.run(asked())


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


PUBLISH = {"client": "local_async", "tgt": "*", "fun": "cmd.run", "arg": ["id"]}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://api.evil.example"},
        {"Origin": "http://api:81"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://api", "Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/json"])
def test_a_page_of_another_site_cannot_use_the_cookie(server: Server, headers: dict[str, str], kind: str) -> None:
    body = b'{"client": "local_async", "tgt": "*", "fun": "cmd.run"}'
    sent = {**headers, "Cookie": f"session_id={TOKEN}", "Content-Type": kind}
    assert server.ask("POST", "/", content=body, headers=sent).status_code == 403
    assert server.ask("POST", "/logout", content=b"{}", headers=sent).status_code == 403
    assert server.link.done == []


#: Headers with which a browser asks for a link in another page, in a mail or in an image, and what programs without them send.
LINKS = [
    {"Accept": "text/html,application/xhtml+xml"},
    {"Accept": "text/html,*/*;q=0.8", "Sec-Fetch-Site": "none"},
    {"Accept": "text/html", "Sec-Fetch-Site": "cross-site"},
    {"Accept": "text/html", "Sec-Fetch-Site": "same-site"},
    {"Accept": "image/*", "Sec-Fetch-Site": "same-site"},
    {"Accept": "*/*", "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
    {"Accept": "application/json", "Sec-Fetch-Site": "cross-site"},
    {"Accept": "application/json", "Origin": "https://evil.example"},
    {"Accept": "application/json", "Origin": "null"},
]


@pytest.mark.parametrize("headers", LINKS)
@pytest.mark.parametrize("path", ["/minions", "/minions/web1"])
def test_a_link_publishes_nothing(server: Server, path: str, headers: dict[str, str]) -> None:
    """Finding 38.21: GET /minions publishes a job."""
    answer = server.ask("GET", path, headers={**headers, "Cookie": f"session_id={TOKEN}"})
    assert answer.status_code in (403, 406)
    assert server.link.done == []


@pytest.mark.ordinary
@pytest.mark.parametrize(
    "headers",
    [
        {"X-Auth-Token": TOKEN, "Sec-Fetch-Site": "none"},
        {"X-Auth-Token": TOKEN, "Sec-Fetch-Site": "cross-site", "Origin": "https://gui.example"},
        {"Cookie": f"session_id={TOKEN}", "Sec-Fetch-Site": "same-origin"},
        {"Cookie": f"session_id={TOKEN}", "Origin": "http://api"},
        {"Cookie": f"session_id={TOKEN}"},
        {"Cookie": f"session_id={TOKEN}", "Accept": "application/x-yaml"},
    ],
)
def test_minions_are_shown_to_who_asks_for_them(server: Server, headers: dict[str, str]) -> None:
    assert server.ask("GET", "/minions", headers=headers).status_code == 200
    assert server.link.done == ["publish"]


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Forwarded-Proto", "Forwarded", "X-Real-IP"])
@pytest.mark.parametrize("client", ["127.0.0.1", "10.1.2.3", "192.0.2.7", "::1"])
@pytest.mark.parametrize("trusted", [None, ["192.0.2.1"]], ids=["default", "another front"])
def test_an_address_is_not_taken_from_a_stranger(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, header: str, client: str, trusted: list[str] | None
) -> None:
    """Finding 38.21: only a front that trusted_proxies names says which client it serves."""
    server = Server(tmp_path)
    settings = ApiSettings(disable_ssl=True, **({} if trusted is None else {"trusted_proxies": trusted}))
    role = SimpleNamespace(metrics=new_metrics("api"))
    config = _configuration(role, settings, server.app)  # type: ignore[arg-type]
    value = "https" if header.endswith("Proto") else "for=203.0.113.9" if header == "Forwarded" else "203.0.113.9"

    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(config.loaded_app, client=(client, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://api") as http:
            body = {"username": "ann", "password": "pw", "eauth": "file"}
            return await http.post("/login", json=body, headers={header: value})

    with caplog.at_level(logging.INFO):
        answer = asyncio.run(asked())
    assert f"{client} http POST" in caplog.text
    assert [fields["address"] for cmd, fields in server.link.asked if cmd == "login"] == [client]
    assert "secure" not in answer.headers.get("set-cookie", "").lower()


@pytest.mark.ordinary
def test_the_cookie_serves_the_own_page(server: Server) -> None:
    sent = {"Origin": "http://api", "Sec-Fetch-Site": "same-origin", "Cookie": f"session_id={TOKEN}"}
    assert server.ask("POST", "/", json=PUBLISH, headers=sent).status_code == 200
    assert server.link.done == ["publish"]


@pytest.mark.parametrize(
    "token", ["", "x", "zz" * 20, "cd" * 20, "../" * 10, "ab" * 200, "ab" * 20 + "\x00"[:0] + " 1"]
)
@pytest.mark.parametrize("path", ["/", "/minions", "/logout", "/hook/x"])
def test_no_other_token_reaches_the_master(server: Server, token: str, path: str) -> None:
    assert server.ask("POST", path, json=PUBLISH, headers={"X-Auth-Token": token}).status_code == 401
    assert server.link.done == []


def test_guessed_tokens_fill_no_memory(server: Server) -> None:
    """The answer about a token is remembered, so that a guess that is repeated costs the master nothing."""

    async def guess() -> None:
        for number in range(12_000):
            assert await server.sessions.user_of(f"{number:040x}", HERE) is None
        asked = len(server.link.asked)
        for _ in range(100):
            assert await server.sessions.user_of(f"{11_999:040x}", HERE) is None
        assert len(server.link.asked) == asked
        assert (await server.sessions.user_of(TOKEN, HERE)) is not None

    asyncio.run(guess())
    assert server.sessions.size <= 10_000


@pytest.mark.parametrize(
    "more",
    [
        {"user": "root"},
        {"token": "cd" * 20},
        {"key": "x"},
        {"within": ["web1"]},
        {"cmd": "wheel"},
        {"once": True, "eauth": "pam", "username": "root", "password": "x"},
        {"kwargs": {"user": "root"}},
    ],
    ids=str,
)
def test_a_chunk_changes_nothing_but_its_job(server: Server, more: dict[str, Any]) -> None:
    answer = server.ask("POST", "/", json={**PUBLISH, **more}, headers={"X-Auth-Token": TOKEN})
    assert answer.status_code == 200
    ((cmd, fields),) = [asked for asked in server.link.asked if asked[0] != "token_info"]
    assert cmd == "publish"
    assert fields["token"] == TOKEN
    assert set(fields) == {"token", "tgt", "tgt_type", "fun", "arg", "kwargs", "request_id"}
    assert fields["kwargs"] == {}


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/json", b"[" * 500_000, 400),
        ("application/x-yaml", b"a: &a [x,x]\n" + b"".join(b"a%d: &a%d [*a,*a]\n" % (n, n) for n in range(30)), 400),
        ("application/x-yaml", b"{" * 100_000, 400),
        ("application/x-yaml", b"!!python/object/apply:os.system ['id']", 400),
        ("application/json", b" " * 2_000_000, 413),
        ("application/x-www-form-urlencoded", b"a=1&" * 100_000, 400),
    ],
    ids=["deep JSON", "YAML aliases", "deep YAML", "YAML objects", "a large body", "many fields"],
)
def test_a_body_costs_little(server: Server, kind: str, body: bytes, status: int) -> None:
    answer = server.ask("POST", "/", content=body, headers={"X-Auth-Token": TOKEN, "Content-Type": kind})
    assert answer.status_code == status
    assert server.link.done == []


@pytest.mark.parametrize(
    "path",
    [
        "/static/../secret",
        "/static/%2e%2e/secret",
        "/static/..%2fsecret",
        "/static//../secret",
        "/static/link",
        "/static/",
    ],
)
def test_no_file_outside_of_the_directory_is_served(server: Server, path: str) -> None:
    answer = server.ask("GET", path)
    assert answer.status_code in (401, 404)
    assert "s3cret" not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/%00",
        "/static/%00",
        "/static/a%00.js",
        "/console/../../etc/passwd",
        "/console/%2e%2e/%2e%2e/main.py",
        "/console/..%5cmain.py",
        "/jobs/..%2f..%2fkeys",
        "/" + "a/" * 4000,
        "/hook/" + "%0d%0aSet-Cookie:x=1",
        "/%ff%fe",
    ],
    ids=lambda path: path[:40],
)
def test_a_strange_path_is_answered(server: Server, path: str) -> None:
    answer = server.ask("GET", path)
    assert answer.status_code in (401, 404, 405)
    assert "set-cookie" not in answer.headers
    assert server.link.done == []


@pytest.mark.parametrize("path", [f"/events?token={TOKEN}", f"/nothing?token={TOKEN}", f"/ws/{TOKEN}", "/login"])
def test_no_log_line_holds_what_logs_in(server: Server, caplog: pytest.LogCaptureFixture, path: str) -> None:
    caplog.set_level("DEBUG")
    creds = {"username": "ann", "password": "hunter2", "eauth": "file"}
    if path.startswith("/events"):
        # The stream itself would not end.
        path += "&other=1"
    server.ask("POST" if path == "/login" else "GET", path, json=creds, headers={"X-Auth-Token": "cd" * 20})
    assert "saltern.api" in {record.name for record in caplog.records}
    own = [record.getMessage() for record in caplog.records if record.name.startswith("saltern")]
    assert not any(secret in line for line in own for secret in (TOKEN, "hunter2", "cd" * 20))
