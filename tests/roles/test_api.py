"""The API beside a whole master: what salt-pepper and SaltGUI ask, answered by two replicas."""

from __future__ import annotations

import contextlib
import json
import socket
import tarfile
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pepper
import pytest
import yaml
from pepper.retcode import PepperRetcode
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as connect_socket

from tests.roles.api_lab import ALL, PASSWORDS, ApiLab, api_options
from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, Lab, until

pytestmark = [pytest.mark.roles, pytest.mark.redis]


@pytest.fixture(scope="module")
def lab(module_labs: NewLab, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    home = tmp_path_factory.mktemp("users")
    (home / "app.html").write_text("<html>an app</html>")
    (home / "static").mkdir()
    (home / "static" / "a.js").write_text("1")
    made = module_labs(
        ApiLab,
        options={
            **api_options(home, ann=ALL, bob=["test.*"]),
            "eauth_failures_per_minute": 200,
            "timeout": 10,
            "rest_cherrypy": {
                "host": "127.0.0.1",
                "disable_ssl": True,
                "body_seconds": 2,
                "event_write_seconds": 2,
                "max_connections_of_address": 60,
                "app": str(home / "app.html"),
                "static": str(home / "static"),
            },
        },
    )
    made.start_all()
    made.run("salt", "*", "test.ping", "-t", "30")
    return made


@pytest.fixture
def http(lab: ApiLab) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=lab.url(), timeout=60) as client:
        yield client


@pytest.fixture
def ann(lab: ApiLab, http: httpx.Client) -> httpx.Client:
    signed_in = _signed_in(http, "ann")
    lab.secrets.add(signed_in.headers["X-Auth-Token"])
    return signed_in


def _signed_in(http: httpx.Client, user: str) -> httpx.Client:
    answer = http.post("/login", json={"username": user, "password": PASSWORDS[user], "eauth": "file"})
    assert answer.status_code == 200, answer.text
    http.cookies.clear()
    http.headers["X-Auth-Token"] = answer.headers["X-Auth-Token"]
    return http


def _run(http: httpx.Client, **chunk: Any) -> Any:
    answer = http.post("/", json=[chunk])
    assert answer.status_code == 200, answer.text
    (value,) = answer.json()["return"]
    return value


# ------------------------------------------------------------------------------------------------------------- sessions


def test_welcome(http: httpx.Client) -> None:
    answer = http.get("/").json()
    assert answer["return"] == "Welcome"
    assert "local_async" in answer["clients"]
    page = http.get("/login")
    assert (page.status_code, page.json()) == (200, {"status": None, "return": "Please log in"})
    assert page.headers["WWW-Authenticate"] == "Session"


@pytest.mark.parametrize("form", ["json", "list", "form", "yaml"])
def test_a_login(http: httpx.Client, form: str) -> None:
    creds = {"username": "ann", "password": "pw-ann", "eauth": "file"}
    bodies: dict[str, dict[str, Any]] = {
        "json": {"json": creds},
        "list": {"json": [creds]},
        "form": {"data": creds},
        "yaml": {"content": yaml.safe_dump(creds), "headers": {"Content-Type": "application/x-yaml"}},
    }
    answer = http.post("/login", **bodies[form])
    (session,) = answer.json()["return"]
    assert session["token"] == answer.headers["X-Auth-Token"] == answer.cookies["session_id"]
    assert len(session["token"]) == 40
    assert (session["user"], session["eauth"], session["perms"]) == ("ann", "file", sorted(ALL))
    cookie = answer.headers["Set-Cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert answer.headers["Cache-Control"] == "no-store"


def test_an_unlisted_user_has_no_permissions(http: httpx.Client) -> None:
    answer = http.post("/login", json={"username": "unlisted", "password": "pw-unlisted", "eauth": "file"})
    assert answer.json()["return"][0]["perms"] == {}
    headers = {"X-Auth-Token": answer.headers["X-Auth-Token"]}
    http.cookies.clear()
    body = {"client": "local", "tgt": "*", "fun": "test.ping"}
    assert http.post("/", json=body, headers=headers).status_code == 401
    assert http.get("/events", headers=headers).status_code == 401


@pytest.mark.parametrize(
    "creds",
    [{"password": "x"}, {"username": "eve"}, {"eauth": "pam"}, {"password": ["a"]}, {"username": {"a": 1}}],
    ids=str,
)
def test_a_wrong_login(http: httpx.Client, creds: dict[str, Any]) -> None:
    answer = http.post("/login", json={"username": "ann", "password": "pw-ann", "eauth": "file"} | creds)
    assert answer.status_code in (400, 401)
    assert "X-Auth-Token" not in answer.headers
    assert "Set-Cookie" not in answer.headers


def test_a_session_holds_at_every_replica_until_the_logout(lab: ApiLab, ann: httpx.Client) -> None:
    token = ann.headers["X-Auth-Token"]
    with httpx.Client(base_url=lab.url(2), headers={"X-Auth-Token": token}, timeout=60) as other:
        assert _run(other, client="local", tgt="web1", fun="test.ping") == {"web1": True}
        answer = other.post("/logout", json={})
        assert answer.json() == {"return": "Your token has been cleared"}
    assert ann.post("/", json={"client": "local", "tgt": "*", "fun": "test.ping"}).status_code == 401


def test_a_cookie_serves_as_well(http: httpx.Client, lab: ApiLab) -> None:
    http.post("/login", json={"username": "ann", "password": "pw-ann", "eauth": "file"})
    assert http.get("/stats").status_code == 200
    for headers, status in (
        ({"Origin": "https://evil.example.com"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": lab.url()}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
    ):
        answer = http.post("/", json={"client": "local", "tgt": "web1", "fun": "test.ping"}, headers=headers)
        assert answer.status_code == status, headers


@pytest.mark.parametrize("token", ["", "x", "zz" * 20, "ab" * 20, "../../etc/passwd", "a" * 4000])
def test_no_other_token_serves(http: httpx.Client, token: str) -> None:
    headers = {"X-Auth-Token": token}
    body = {"client": "local", "tgt": "*", "fun": "test.ping"}
    assert http.post("/", json=body, headers=headers).status_code == 401
    assert http.post("/run", json={**body, "token": token}).status_code == 401
    for path in ("/minions", "/jobs", "/keys", "/stats", "/events"):
        assert http.get(path, headers=headers).status_code == 401


# -------------------------------------------------------------------------------------------------------------- clients


def test_local(ann: httpx.Client) -> None:
    assert _run(ann, client="local", tgt="*", fun="test.ping") == {"web1": True, "web2": True}
    full = _run(ann, client="local", tgt="web1", fun="test.ping", full_return=True)["web1"]
    assert (full["ret"], full["retcode"], len(full["jid"])) == (True, 0, 20)
    assert _run(ann, client="local", tgt="nosuch", fun="test.ping") == {}
    silent = _run(ann, client="local", tgt="web1,nosuch", tgt_type="list", fun="test.ping", timeout=3)
    assert silent["web1"] is True
    assert silent["nosuch"].startswith("Minion did not return.")
    full = _run(ann, client="local", tgt="web1,nosuch", tgt_type="list", fun="test.ping", timeout=3, full_return=True)
    assert (full["nosuch"]["out"], full["nosuch"]["retcode"]) == ("no_return", 1)
    assert _run(ann, client="local", tgt="nosuch", tgt_type="list", fun="test.ping") == {}
    assert _run(ann, client="local", tgt="id:web2", expr_form="grain", fun="test.ping") == {"web2": True}
    called = _run(ann, client="local", tgt="web1", fun="test.arg", arg=["a", 1], kwarg={"b": [2]})["web1"]
    assert called["args"] == ["a", 1]
    assert called["kwargs"]["b"] == [2]


def test_local_async_and_its_job(ann: httpx.Client) -> None:
    started = _run(ann, client="local_async", tgt="web1,nosuch", tgt_type="list", fun="test.ping")
    assert started["minions"] == ["web1"]
    assert _run(ann, client="local_async", tgt="nosuch", fun="test.ping") == {}

    def job() -> Any:
        answer = ann.get(f"/jobs/{started['jid']}").json()
        return answer if answer["return"][0] else None

    found = until(job, SOON, "the job's return")
    assert found["return"] == [{"web1": True}]
    info = found["info"][0]
    assert (info["jid"], info["Function"], info["User"], info["Minions"]) == (
        started["jid"],
        "test.ping",
        "ann",
        ["web1"],
    )
    assert info["Result"]["web1"]["success"] is True
    assert started["jid"] in ann.get("/jobs").json()["return"][0]
    unknown = ann.get("/jobs/20200101000000000000").json()["info"][0]
    assert unknown["Error"] == "Cannot contact returner or no job with this jid"
    assert unknown["Result"] == {}


def test_batch_and_subset(ann: httpx.Client) -> None:
    for batch in ("1", "50%"):
        answer = ann.post("/", json={"client": "local_batch", "tgt": "*", "fun": "test.ping", "batch": batch})
        # A value for each minion, as in Salt.
        assert answer.json() == {"return": [{"web1": True}, {"web2": True}]}
    assert ann.post("/", json={"client": "local_batch", "tgt": "nosuch", "fun": "test.ping"}).json() == {"return": []}
    assert len(_run(ann, client="local_subset", tgt="*", fun="test.ping", subset=1)) == 1
    assert (
        ann.post("/", json={"client": "local_batch", "tgt": "*", "fun": "test.ping", "batch": "x"}).status_code == 400
    )


def test_runners(ann: httpx.Client) -> None:
    assert sorted(_run(ann, client="runner", fun="manage.present")) == ["web1", "web2"]
    assert _run(ann, client="runner", fun="test.arg", arg=["a"], kwarg={"b": 1}, c=2)
    # As SaltGUI asks: the target is an argument of the runner.
    assert list(_run(ann, client="runner", fun="cache.grains", tgt="web1")) == ["web1"]
    full = _run(ann, client="runner", fun="manage.present", full_return=True)
    assert full["tag"] == f"salt/run/{full['data']['jid']}/ret"
    assert (full["data"]["fun"], full["data"]["user"], full["data"]["success"]) == (
        "runner.manage.present",
        "ann",
        True,
    )
    started = _run(ann, client="runner_async", fun="manage.present")
    assert started["tag"] == f"salt/run/{started['jid']}"
    assert ann.post("/", json={"client": "runner", "fun": "no.such"}).status_code == 404


def test_wheels_and_keys(ann: httpx.Client) -> None:
    answer = _run(ann, client="wheel", fun="key.list_all")
    assert answer["data"]["return"]["minions"] == ["web1", "web2"]
    assert answer["tag"] == f"salt/wheel/{answer['data']['jid']}"
    started = _run(ann, client="wheel_async", fun="key.list_all")
    assert started["tag"] == f"salt/wheel/{started['jid']}"
    lists = ann.get("/keys").json()["return"]
    assert {"minions", "minions_pre", "minions_rejected", "minions_denied", "local"} <= set(lists)
    assert list(ann.get("/keys/web1").json()["return"]["minions"]) == ["web1"]
    creds = {"username": "ann", "password": "pw-ann", "eauth": "file"}
    made = ann.post("/keys", data={"mid": "new1", **creds})
    assert made.headers["Content-Type"] == "application/x-tar"
    with tarfile.open(fileobj=BytesIO(made.content)) as archive:
        assert sorted(archive.getnames()) == ["minion.pem", "minion.pub"]
    assert "new1" in ann.get("/keys").json()["return"]["minions"]
    _run(ann, client="wheel", fun="key.delete", match="new1")


def test_minions(ann: httpx.Client) -> None:
    assert sorted(ann.get("/minions").json()["return"][0]) == ["web1", "web2"]
    assert ann.get("/minions/web1").json()["return"][0]["web1"]["id"] == "web1"
    assert ann.get("/minions/nosuch").json() == {"return": [{}]}
    started = ann.post("/minions", json={"tgt": "*", "fun": "test.ping"})
    assert started.status_code == 202
    jid = started.json()["return"][0]["jid"]
    assert started.json()["_links"] == {"jobs": [{"href": f"/jobs/{jid}"}]}


def test_run_and_token(http: httpx.Client) -> None:
    creds = {"username": "ann", "password": "pw-ann", "eauth": "file"}
    (token,) = http.post("/token", json=[creds]).json()
    assert set(token) == {"start", "expire", "name", "eauth", "token"}
    assert len(token["token"]) == 64
    chunk = {"client": "local", "tgt": "web1", "fun": "test.ping"}
    for more in ({"token": token["token"]}, creds):
        assert http.post("/run", json=[{**chunk, **more}]).json() == {"return": [{"web1": True}]}
    assert http.post("/run", json=[chunk]).status_code == 401
    assert http.post("/token", json=[{"username": "ann"}]).status_code == 400


def test_a_user_has_his_rights_and_no_others(http: httpx.Client) -> None:
    bob = _signed_in(http, "bob")
    assert _run(bob, client="local", tgt="web1", fun="test.ping") == {"web1": True}
    for chunk in (
        {"client": "local", "tgt": "*", "fun": "cmd.run", "arg": ["id"]},
        {"client": "local", "tgt": "*", "fun": ["test.ping", "cmd.run"], "arg": [[], ["id"]]},
        {"client": "runner", "fun": "manage.present"},
        {"client": "wheel", "fun": "key.list_all"},
        {"client": "local", "tgt": "*", "fun": "cmd.run", "arg": ["id"], "user": "root", "token": "ab" * 20},
    ):
        assert bob.post("/", json=chunk).status_code == 401


# -------------------------------------------------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {"Content-Type": "application/json"}, 400),
        (b"a: [", {"Content-Type": "application/x-yaml"}, 400),
        (b"a: &a [1]\nb: *a", {"Content-Type": "application/x-yaml"}, 400),
        (b"[" * 100_000, {"Content-Type": "application/json"}, 400),
        (b"[" * 100_000, {"Content-Type": "application/x-yaml"}, 400),
        (b"\xff", {"Content-Type": "application/json"}, 400),
        (b"3", {"Content-Type": "application/json"}, 400),
        (b"[3]", {"Content-Type": "application/json"}, 400),
        (b"", {}, 400),
        (b"x", {"Content-Type": "application/octet-stream"}, 406),
        (b"{}", {"Content-Type": "application/json", "Accept": "image/png"}, 406),
        (b"{}", {"Content-Type": "application/json"}, 400),
        (b'{"client": "ssh", "fun": "x"}', {"Content-Type": "application/json"}, 400),
        (b'{"client": ["local"], "fun": "x"}', {"Content-Type": "application/json"}, 400),
        (b'{"client": "local", "tgt": "*"}', {"Content-Type": "application/json"}, 400),
        (b'{"client": "local", "fun": "test.ping"}', {"Content-Type": "application/json"}, 400),
        (b'{"client": "local", "tgt": "*", "fun": {"a": 1}}', {"Content-Type": "application/json"}, 400),
        (b'{"client": "local", "tgt": "N@n", "tgt_type": "compound", "fun": "test.ping"}', {"Content-Type": "text/plain"}, 400),
        (b'{"client": "local", "tgt": "*", "fun": "test.ping", "timeout": "x"}', {"Content-Type": "application/json"}, 400),
        (b" " * 1_100_000, {"Content-Type": "application/json"}, 413),
    ],
)  # fmt: skip
def test_a_wrong_request_is_answered(ann: httpx.Client, body: bytes, headers: dict[str, str], status: int) -> None:
    answer = ann.post("/", content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.json()["return"]


def test_paths_and_methods(http: httpx.Client) -> None:
    assert http.get("/nothing/here").status_code == 404
    assert http.put("/login").status_code == 405
    for path in ("/static/../app.html", "/static/..%2f..%2fusers", "/static/%2e%2e/users", "//etc/passwd"):
        assert http.get(path).status_code in (404, 405), path
    assert http.get("/static/a.js").text == "1"
    assert http.get("/app/some/page").text == "<html>an app</html>"
    assert http.get("/jobs", headers={"Accept": "text/html,application/xhtml+xml"}).text == "<html>an app</html>"
    assert http.get("/", headers={"Accept": "application/x-yaml"}).text.startswith("clients:\n- local\n")


def test_other_origins(http: httpx.Client) -> None:
    answer = http.options("/", headers={"Origin": "https://x.example", "Access-Control-Request-Method": "POST"})
    assert answer.status_code == 200
    assert "X-Auth-Token" in answer.headers["Access-Control-Allow-Headers"]
    shown = http.get("/", headers={"Origin": "https://x.example"})
    assert shown.headers["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in shown.headers


def test_its_own_description(http: httpx.Client) -> None:
    found = http.get("/openapi.json").json()
    assert found["openapi"].startswith("3.1")
    assert "post" in found["paths"]["/login"]
    assert "POST /login" in http.get("/openapi", headers={"Accept": "text/html"}).text


def test_slow_and_large_requests_end(lab: ApiLab) -> None:
    address = ("127.0.0.1", lab.port["http1"])

    def answer_to(data: bytes, more: bytes = b"") -> bytes:
        with socket.create_connection(address, timeout=20) as connection:
            connection.sendall(data)
            answered = b""
            with contextlib.suppress(ConnectionError):
                if more:
                    connection.sendall(more)
                while part := connection.recv(65536):
                    answered += part
            return answered

    started = time.monotonic()
    assert answer_to(b"POST /login HTTP/1.1\r\nHost: x\r\n") == b""
    assert answer_to(b"") == b""
    slow = b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    assert b" 408 " in answer_to(slow).splitlines()[0]
    assert time.monotonic() - started < 15
    bomb = b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"y" * 1000) for n in range(200))
    assert b" 200 " not in answer_to(bomb, b"\r\n").partition(b"\r\n")[0]


@pytest.mark.parametrize(
    "length", [f"Content-Length: {100 << 20}", "Transfer-Encoding: chunked"], ids=["told", "chunked"]
)
@pytest.mark.parametrize("path", ["/", "/login", "/hook/x", "/nothing"])
def test_a_body_of_100_megabytes_fills_no_memory(lab: ApiLab, ann: httpx.Client, path: str, length: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {ann.headers['X-Auth-Token']}\r\n"
    head += f"Content-Type: application/json\r\n{length}\r\n\r\n"
    piece = b"[" * (1 << 20)
    framed = piece if "Content" in length else b"%x\r\n%s\r\n" % (len(piece), piece)
    before = lab.memory("api")
    with socket.create_connection(("127.0.0.1", lab.port["http1"]), timeout=30) as connection:
        connection.sendall(head.encode())
        with contextlib.suppress(ConnectionError):
            for _ in range(100):
                connection.sendall(framed)
        with contextlib.suppress(ConnectionError):
            first = connection.recv(65536).partition(b"\r\n")[0]
            assert any(status in first for status in (b" 413 ", b" 404 ")) or not first
    assert lab.memory("api") - before < 40 << 20
    assert ann.get("/v1/session").status_code == 200


def test_connections_of_one_address_are_bounded(lab: ApiLab, http: httpx.Client) -> None:
    address = ("127.0.0.1", lab.port["http2"])
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.create_connection(address, timeout=10)) for _ in range(70)]

        def refused() -> bool:
            return lab.metric("api2", "salt_api_connections_refused_total") >= 10

        until(refused, 10, "connections above the limit were refused")
        assert len(held) == 70
    until(lambda: httpx.get(lab.url(2)).status_code == 200, 20, "the limit is free again")


def test_nothing_that_logs_in_is_logged(lab: ApiLab, ann: httpx.Client) -> None:
    token = ann.headers["X-Auth-Token"]
    with ann.stream("GET", f"/events?token={token}") as answer:
        assert answer.status_code == 200
    httpx.get(f"{lab.url()}/ws/{token}")
    ann.post("/run", json={"client": "local", "tgt": "*", "fun": "test.ping", "token": token})
    ann.post("/hook/x", json={"a": 1})
    logs = "".join(path.read_text(errors="replace") for path in (lab.root / "log").iterdir())
    assert "user='ann'" in logs
    for secret in (token, "pw-ann"):
        assert secret not in logs


# --------------------------------------------------------------------------------------------------------------- events


def _events(answer: httpx.Response) -> Iterator[dict[str, str]]:
    """The events of a stream: {tag, data, id}."""
    event: dict[str, str] = {}
    for line in answer.iter_lines():
        if not line and "tag" in event:
            yield event
            event = {}
        name, colon, text = line.partition(": ")
        if colon:
            event[name] = text


def _until_tag(answer: httpx.Response, tag: str) -> dict[str, str]:
    return next(event for event in _events(answer) if event["tag"] == tag)


def test_events_in_salts_form(ann: httpx.Client, http: httpx.Client) -> None:
    with ann.stream("GET", "/events") as answer:
        assert answer.headers["Content-Type"] == "text/event-stream;charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-cache"
        raw = answer.iter_raw()
        assert next(raw) == b"retry: 400\n"
        jid = _run(http, client="local_async", tgt="web1", fun="test.ping")["jid"]
        text = b""
        while f"tag: salt/job/{jid}/ret/web1\n".encode() not in text or not text.endswith(b"\n\n"):
            text += next(raw)
    block = next(block for block in text.decode().split("\n\n") if f"/{jid}/ret/web1" in block)
    tag, data, number = block.split("\n")
    assert tag == f"tag: salt/job/{jid}/ret/web1"
    event = json.loads(data.removeprefix("data: "))
    assert event["tag"] == f"salt/job/{jid}/ret/web1"
    assert event["data"]["return"] is True
    assert event["data"]["_stamp"]
    assert number.startswith("id: ")


def test_a_stream_continues_at_another_replica(lab: ApiLab, ann: httpx.Client) -> None:
    token = ann.headers["X-Auth-Token"]
    with ann.stream("GET", "/events") as answer:
        # From now on workers keep events; they notice within a second.
        time.sleep(1.5)
        jid = _run(
            httpx.Client(base_url=lab.url(2), headers={"X-Auth-Token": token}, timeout=60),
            client="local_async",
            tgt="web1",
            fun="test.ping",
        )["jid"]
        last = _until_tag(answer, f"salt/job/{jid}/ret/web1")["id"]
    missed = [_run(ann, client="local", tgt="web1", fun="test.ping", full_return=True)["web1"]["jid"] for _ in range(3)]
    headers = {"X-Auth-Token": token, "Last-Event-ID": last}
    with httpx.stream("GET", f"{lab.url(2)}/events", headers=headers, timeout=30) as again:
        tags = []
        for event in _events(again):
            assert event["id"] != last
            tags.append(event["tag"])
            if event["tag"] == f"salt/job/{missed[-1]}/ret/web1":
                break
    assert [tag for tag in tags if tag.endswith("/ret/web1")] == [f"salt/job/{each}/ret/web1" for each in missed]


def test_a_stream_ends_with_its_token(ann: httpx.Client) -> None:
    with ann.stream("GET", "/events", timeout=60) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "retry: 400"
        ann.post("/logout", json={})
        started = time.monotonic()
        for _ in lines:
            assert time.monotonic() - started < 45


def test_a_websocket(lab: ApiLab, ann: httpx.Client) -> None:
    url, token = lab.url().replace("http", "ws"), ann.headers["X-Auth-Token"]
    with connect_socket(f"{url}/ws/{token}", additional_headers={}) as client:
        client.send("websocket client ready")
        time.sleep(0.5)
        jid = _run(ann, client="local_async", tgt="web1", fun="test.ping")["jid"]
        while True:
            message = str(client.recv(30))
            assert message.startswith("data: ")
            assert message.endswith("\n\n")
            if json.loads(message[6:])["tag"] == f"salt/job/{jid}/ret/web1":
                break
    for path in ("/ws", f"/ws/{'ab' * 20}"):
        with pytest.raises(InvalidStatus):
            connect_socket(url + path)
    with connect_socket(f"{url}/ws", additional_headers={"X-Auth-Token": token}) as flood:
        with contextlib.suppress(ConnectionClosed):
            for _ in range(300):
                flood.send("x" * 100)
        until(lambda: _is_closed(flood), 20, "the websocket was closed")
        assert httpx.get(lab.url()).status_code == 200


def _is_closed(client: ClientConnection) -> bool:
    try:
        client.recv(1)
    except ConnectionClosed:
        return True
    except TimeoutError:
        return False
    return False


def test_a_listener_that_reads_nothing_is_left(lab: ApiLab, ann: httpx.Client) -> None:
    token = ann.headers["X-Auth-Token"]
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", lab.port["http1"]))
        deaf.sendall(f"GET /events HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {token}\r\n\r\n".encode())
        until(lambda: lab.metric("api", "salt_api_listeners") >= 1, SOON, "the stream is open")
        large = "x" * 200_000

        def left() -> bool:
            ann.post("/hook/large", json={"text": large})
            return lab.metric("api", "salt_api_listeners") == 0

        until(left, SOON, "the stream of a deaf listener ended")
    assert lab.memory("api") < 200 * 1024 * 1024


def test_a_websocket_that_reads_nothing_is_left(lab: ApiLab, ann: httpx.Client) -> None:
    headers = {"X-Auth-Token": ann.headers["X-Auth-Token"]}
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", lab.port["http1"]))
        # max_queue: the client's thread stops reading, too.
        url, further = (
            f"ws://127.0.0.1:{lab.port['http1']}/ws",
            {"max_queue": 1, "compression": None, "close_timeout": 1},
        )
        with connect_socket(url, sock=deaf, additional_headers=headers, **further) as client:
            client.send("websocket client ready")
            until(lambda: lab.metric("api", "salt_api_listeners") >= 1, SOON, "the websocket listens")
            large = "x" * 200_000

            def left() -> bool:
                ann.post("/hook/large", json={"text": large})
                return lab.metric("api", "salt_api_listeners") == 0

            until(left, SOON, "the websocket of a deaf listener ended")
    assert lab.memory("api") < 200 * 1024 * 1024


def test_a_webhook_is_an_event(ann: httpx.Client, http: httpx.Client) -> None:
    with ann.stream("GET", "/events") as answer:
        fired = http.post("/hook/build/done", json={"ok": 1}, headers={"X-My-Secret": "s"})
        assert fired.json() == {"success": True}
        event = json.loads(_until_tag(answer, "salt/netapi/hook/build/done")["data"])
    data = event["data"]
    assert (data["body"], data["post"]) == ('{"ok": 1}', {"ok": 1}) or data["post"] == {"ok": 1}
    assert data["headers"]["X-My-Secret"] == "s"
    assert "X-Auth-Token" not in data["headers"]
    assert httpx.post(str(http.base_url) + "/hook/x", json={}).status_code == 401


def test_a_job_goes_on_when_a_replica_dies(lab: ApiLab, ann: httpx.Client) -> None:
    token = ann.headers["X-Auth-Token"]
    with httpx.Client(base_url=lab.url(2), headers={"X-Auth-Token": token}, timeout=60) as other:
        jid = _run(other, client="local_async", tgt="*", fun="test.sleep", arg=[1])["jid"]
        lab.restart("api2")
    until(lambda: len(ann.get(f"/jobs/{jid}").json()["return"][0]) == 2, SOON, "both minions returned")
    lab.await_ready("api2")


def test_probes_and_metrics(lab: ApiLab) -> None:
    assert lab.probe("api") == (200, "ok")
    assert lab.metric("api", "salt_api_requests_total") > 0


def test_an_outage_of_the_master(lab: ApiLab, ann: httpx.Client) -> None:
    lab.kill("reqserver")
    try:
        assert ann.get("/v1/fleet", timeout=90).status_code == 503
        until(lambda: lab.probe("api")[0] == 503, SOON, "not ready")
    finally:
        lab.start("reqserver")
        lab.await_ready("reqserver", "api")


def test_an_outage_of_redis(lab: ApiLab, ann: httpx.Client) -> None:
    """Requests get a status at once, a stream of events goes on, and a token is valid again when Redis is back."""
    with ann.stream("GET", "/events", timeout=120) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "retry: 400"
        lab.kill("redis")
        try:
            asked = [
                ("POST", "/", {"client": "local", "tgt": "web1", "fun": "test.ping"}),
                ("POST", "/", {"client": "runner", "fun": "jobs.list_jobs"}),
                ("POST", "/login", {"username": "ann", "password": PASSWORDS["ann"], "eauth": "file"}),
                ("GET", "/keys", None),
                ("GET", "/v1/fleet", None),
                ("POST", "/hook/x", {}),
            ]
            for method, path, body in asked:
                refused = ann.request(method, path, json=body)
                assert refused.status_code in (200, 503) if path == "/hook/x" else refused.status_code == 503, (
                    refused.text
                )
                assert "redis" in refused.text.lower() or refused.status_code == 200, refused.text
        finally:
            lab.start_redis()
        lab.await_ready(*lab.roles)
        until(
            lambda: ann.post("/", json={"client": "local", "tgt": "web1", "fun": "test.ping"}).status_code == 200,
            SOON,
            "up",
        )
        jid = _run(ann, client="local_async", tgt="web1", fun="test.ping")["jid"]
        assert any(line == f"tag: salt/job/{jid}/ret/web1" for line in lines)
    assert lab.tracebacks() == []


def test_an_outage_of_the_workers(lab: ApiLab, ann: httpx.Client) -> None:
    lab.kill("mworker")
    try:
        answer = ann.post("/", json={"client": "local", "tgt": "web1", "fun": "test.ping"}, timeout=90)
        assert answer.status_code == 503, answer.text
    finally:
        lab.start("mworker")
        lab.await_ready("mworker", "api")
    assert _run(ann, client="local", tgt="web1", fun="test.ping") == {"web1": True}


# ------------------------------------------------------------------------------------------------------------ salt-pepper


def _pepper(lab: ApiLab, *words: str, user: str = "ann", code: int = 0) -> str:
    """What an unmodified salt-pepper prints."""
    login = ("-u", lab.url(), "-a", "file", "--username", user, "--password", PASSWORDS[user], "--non-interactive")
    answer = lab.run("pepper", *login, *words)
    assert answer.code == code, answer
    return answer.out


_PING = {"web1": True, "web2": True}

#: Words of a command line of pepper's documentation -> what ``return[0]`` says, full returns reduced to their ``ret``.
PEPPER: dict[tuple[str, ...], Any] = {
    ("*", "test.ping"): _PING,
    ("--run-uri", "*", "test.ping"): _PING,
    ("-L", "web1,web2", "test.ping"): _PING,
    ("-E", "web[12]", "test.ping"): _PING,
    ("-G", "id:web1", "test.ping"): {"web1": True},
    ("-C", "web1 or G@id:web2", "test.ping"): _PING,
    ("--batch=1", "web1", "test.ping"): {"web1": True},
    ("--fail-any", "*", "test.ping"): _PING,
    ("--fail-all", "*", "test.ping"): _PING,
    ("web1", "test.echo", "hello"): {"web1": "hello"},
    ("web1", "test.kwarg", "a=1"): {"web1": {"a": 1}},
    ("--json", '[{"client": "local", "tgt": "web1", "fun": "test.ping"}]'): {"web1": True},
}


@pytest.mark.parametrize("words", PEPPER, ids=" ".join)
def test_pepper(lab: ApiLab, words: tuple[str, ...]) -> None:
    said = json.loads(_pepper(lab, *words))
    found = said["return"][0] if "return" in said else said
    reduced = {
        name: value["ret"] if isinstance(value, dict) and "ret" in value else value for name, value in found.items()
    }
    if words[1:2] == ("test.kwarg",):
        reduced = {name: {"a": value["a"]} for name, value in reduced.items()}
    assert reduced == PEPPER[words]


def test_peppers_runners_and_wheels(lab: ApiLab) -> None:
    said = json.loads(_pepper(lab, "--client", "runner", "manage.present"))
    assert sorted(said["return"][0]["data"]["return"]) == ["web1", "web2"]
    said = json.loads(_pepper(lab, "--client", "wheel", "key.list_all"))
    assert said["return"][0]["data"]["return"]["minions"] == ["web1", "web2"]
    said = json.loads(_pepper(lab, "--client", "wheel", "key.finger", "match=web1"))
    assert list(said["return"][0]["data"]["return"]["minions"]) == ["web1"]
    started = json.loads(_pepper(lab, "--client", "local_async", "*", "test.ping"))
    assert sorted(started["return"][0]["minions"]) == ["web1", "web2"]


def test_pepper_ends_with_an_error(lab: ApiLab) -> None:
    # Its own --fail-any looks into the answer only where Salt is installed beside it.
    said = json.loads(_pepper(lab, "web1", "test.nosuch"))
    assert PepperRetcode().validate_fail_any(said["return"]) != 0
    refused = lab.run("pepper", "-u", lab.url(), "-a", "file", "--username", "ann", "--password", "x", "*", "test.ping")
    assert refused.code != 0
    assert "denied" in refused.out + refused.err


def test_peppers_library(lab: ApiLab) -> None:
    api = pepper.Pepper(lab.url())
    session = api.login("ann", "pw-ann", "file")
    assert session["user"] == "ann"
    assert api.local("os:*", "test.ping", expr_form="grain")["return"] == [_PING]
    assert api.runner("manage.present")["return"]
    assert api.wheel("key.list_all")["return"][0]["data"]["success"] is True
    jid = api.local_async("*", "test.ping")["return"][0]["jid"]
    assert until(lambda: api.lookup_jid(jid)["return"][0], SOON, "the job's returns")
    assert len(api._send_auth("/token", username="ann", password="pw-ann", eauth="file")[0]["token"]) == 64


# --------------------------------------------------------------------------------------------------------------- salt -a


def test_salt_acts_for_a_user(lab: ApiLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    bob = ("-a", "file", "--username", "bob", "--password", "pw-bob")
    assert lab.run("salt", *bob, "web1", "test.ping", "--out=json").data == {"web1": True}
    refused = lab.run("salt", *bob, "web1", "cmd.run", "id")
    assert refused.code == 1
    assert "bob may not run cmd.run" in refused.err
    assert lab.run("salt-run", *bob, "manage.present").code == 1
    wrong = lab.run("salt", *bob[:-1], "x", "web1", "test.ping")
    assert (wrong.code, "Authentication failure" in wrong.err) == (2, True)
    assert lab.run("salt", "-T", "web1", "test.ping").code == 64
    assert not (tmp_path / ".salt_token").exists()
    assert lab.run("salt", "-T", *bob, "web1", "test.ping").code == 0
    assert (tmp_path / ".salt_token").stat().st_mode & 0o777 == 0o600
    # No password is asked for until the token ends; without -a the key counts as always.
    assert lab.run("salt", "-a", "file", "web1", "test.ping", "--out=json").data == {"web1": True}
    assert lab.run("salt", "-a", "file", "web1", "grains.get", "id").code == 1
    assert lab.run("salt", "web1", "grains.get", "id").code == 0
