"""A stock salt-api 3008.3 and ours get the same requests; the answers are the same, but where api_requests.yaml says why not.

Compared are the status, the headers on which clients rely, and the body without what differs in each run: JIDs, times, tokens.
Bodies of errors are not compared: stock's are HTML pages, and clients look at the status.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.interop.stock import PATIENCE, StockMaster, venv_of
from tests.roles.api_lab import ALL, PASSWORDS, ApiLab, api_options
from tests.roles.conftest import NewLab
from tests.roles.lab import Lab, free_ports, until

pytestmark = [pytest.mark.interop, pytest.mark.roles]

#: Where the answers of a run are written, for a look at them.
WRITTEN = "answers.yaml"

#: Headers whose values clients read, and headers of which the presence counts. Stock also sends Allow and
#: Access-Control-Allow-Origin with each answer, and a cookie to whoever asks; ours where they mean something.
READ = ("content-type", "www-authenticate")
PRESENT = ("x-auth-token",)

#: What differs in each run -> what is compared instead.
VOLATILE = (
    (re.compile(r"\b20[2-9]\d[01]\d[0-3]\d[0-2]\d[0-5]\d[0-5]\d\d{6}\b"), "JID"),
    (re.compile(r"\b20[2-9]\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d+(\+00:00)?"), "TIME"),
    (re.compile(r"\b\d\d:\d\d:\d\d\.\d+"), "TIME"),
    (re.compile(r"\b20\d\d, \w{3} \d\d \d\d:\d\d:\d\d\.\d+"), "TIME"),
    (re.compile(r"\b[0-9a-f]{2}(:[0-9a-f]{2}){31}\b"), "FINGERPRINT"),
    (re.compile(r"\b([0-9a-f]{64}|[0-9a-f]{40})\b"), "TOKEN"),
    (re.compile(r"/tmp/[^ '\"]*/lab\d+/"), "ROOT/"),
)

#: Fields whose values differ in each run.
FIELDS = frozenset({"duration", "start", "expire", "pid"})

#: Fields of a wheel's answer that stock leaves out, or has only where the function failed.
ADDED = frozenset({"fun_args", "_stamp"})


#: The minions of both masters, and the keys of a map that has the return of one of them.
MINIONS = ("web1", "web2")
ONE_MINION = (("web1",), ("web2",))

#: How often both are asked the same: on a busy machine minions are late, and a stock salt-api answers 500 at times.
TRIES = 3


@dataclass(frozen=True)
class Request:
    """One request of the table."""

    name: str
    user: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    differs: Mapping[str, Any]


def requests() -> list[Request]:
    """Return the requests of api_requests.yaml, in their order."""
    found = []
    for group in yaml.safe_load(Path(__file__).with_name("api_requests.yaml").read_text()):
        for case in group["cases"]:
            body: dict[str, Any] = {}
            if "json" in case:
                fields = {**group.get("json", {}), **case["json"]}
                body["json"] = {name: value for name, value in fields.items() if value != "left out"}
            elif "form" in case:
                body["data"] = case["form"]
            elif "raw" in case:
                body["content"] = case["raw"]
            path, method = case.get("path", group.get("path")), case.get("method", group["method"])
            headers = {**(group.get("headers", {}) if "form" not in case else {}), **case.get("headers", {})}
            shown = json.dumps(next(iter(body.values()))) if body else ""
            extra = f" {case['headers']}" if case.get("headers") else ""
            name = f"{group['group']}: {method} {path} {shown}{extra}"
            user = case.get("as", group.get("as", "ann"))
            found.append(Request(name, user, method, path, headers, body, case.get("differs", {})))
    return found


class Api:
    """One of the two APIs, and the sessions there."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=120)

    @cache  # noqa: B019 - lives as long as the module's fixture
    def session(self, user: str) -> str:
        """Return the session's token of a user."""
        creds = {"username": user, "password": PASSWORDS[user], "eauth": "file"}
        answer = self.http.post("/login", json=creds)
        self.http.cookies.clear()
        assert answer.status_code == 200, answer.text
        return answer.headers["X-Auth-Token"]

    @cache  # noqa: B019
    def token(self, user: str) -> str:
        """Return a token for /run."""
        creds = {"username": user, "password": PASSWORDS[user], "eauth": "file"}
        for _ in range(TRIES):
            answer = self.http.post("/token", json=creds)
            if answer.status_code == 200:
                break
        assert answer.status_code == 200, answer.text
        token: str = answer.json()[0]["token"]
        return token

    def ask(self, request: Request) -> dict[str, Any]:
        """Send a request, and return what is compared of the answer: status, headers, body."""
        headers = {"Accept": "application/json"} | dict(request.headers)
        if request.user != "nobody":
            # A logout ends a session.
            token = self.session(request.user)
            headers["X-Auth-Token"] = token
        body = json.loads(re.sub(r"\$(ann)\b", lambda found: self.token(found[1]), json.dumps(dict(request.body))))
        with self.http.stream(request.method, request.path, headers=headers, **body) as answer:
            events = answer.headers.get("content-type", "").startswith("text/event-stream")
            content = b"" if events else answer.read()
        self.http.cookies.clear()
        return {"status": answer.status_code, "headers": _headers(answer), "body": _body(answer, content)}


def _headers(answer: httpx.Response) -> dict[str, Any]:
    if answer.status_code >= 400:
        return {}
    read = {name: answer.headers[name].partition(";")[0] for name in READ if name in answer.headers}
    return read | {name: True for name in PRESENT if name in answer.headers}


def _body(answer: httpx.Response, content: bytes) -> Any:
    if answer.status_code >= 400:
        return None
    kind = answer.headers.get("content-type", "")
    if kind.startswith("application/x-tar"):
        return "a tar archive"
    text = content.decode()
    try:
        return reduced(yaml.safe_load(text) if "yaml" in kind else json.loads(text))
    except ValueError:
        return reduced(text)


def reduced(value: Any) -> Any:
    """Return a value without what differs in each run."""
    if isinstance(value, dict):
        left_out = ADDED if str(value.get("fun", "")).startswith("wheel.") else frozenset()
        return {
            reduced(name): "..." if name in FIELDS else reduced(each)
            for name, each in value.items()
            if name not in left_out
        }
    if isinstance(value, list):
        found = [reduced(each) for each in value]
        # Batches return in any order, and some lists of ids are sets of Salt's.
        by_minion = all(each in MINIONS or (isinstance(each, dict) and tuple(each) in ONE_MINION) for each in found)
        return sorted(found, key=lambda each: [each] if isinstance(each, str) else list(each)) if by_minion else found
    if isinstance(value, str):
        for pattern, word in VOLATILE:
            value = pattern.sub(word, value)
    return value


@dataclass
class Both:
    """The two APIs, each with a master and the minions web1 and web2."""

    stock: Api
    ours: Api
    #: Where answers are written.
    written: Path


@pytest.fixture(scope="module")
def both(module_labs: NewLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    venv = venv_of("3008.3")
    home = tmp_path_factory.mktemp("users")
    shared = {
        **api_options(home, ann=ALL, bob=["test.*"]),
        "nodegroups": {"front": "web1"},
        "timeout": 10,
        "gather_job_timeout": 5,
    }
    api = {"host": "127.0.0.1", "disable_ssl": True}
    ours = module_labs(
        ApiLab,
        options={
            **shared,
            "eauth_failures_per_minute": 1000,
            "rest_cherrypy": {**api, "max_connections_of_address": 0},
        },
    )
    ours.start_all(*(name for name in ours.roles if name != "api2"), *ours.minions)
    theirs = module_labs(Lab)
    (port,) = free_ports(1)
    trees = {name: {"base": [str(theirs.tree / name.partition("_")[0])]} for name in ("file_roots", "pillar_roots")}
    trees["file_roots"] = {"base": [str(theirs.tree / "salt")]}
    options = {**shared, **trees, "auto_accept": True, "rest_cherrypy": {**api, "port": port}}
    master = StockMaster(theirs.root, venv, options)
    log = (theirs.root / "log" / "salt-api").open("wb")
    server: subprocess.Popen[bytes] | None = None
    try:
        master.start()
        for name in theirs.minions:
            path = theirs.root / "minions" / name / "minion"
            path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"master_port": master.ret_port}))
            theirs.start(name)
        words = [str(venv / "bin" / "salt-api"), "-c", str(master.etc), "-l", "info"]
        server = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        url = f"http://127.0.0.1:{port}"

        def answers() -> bool:
            try:
                return httpx.get(url, timeout=5).status_code == 200
            except httpx.HTTPError:
                return False

        until(answers, PATIENCE, "the stock salt-api answers")
        theirs.await_ready(*theirs.minions, seconds=PATIENCE)
        pair = Both(Api(url), Api(ours.url()), tmp_path_factory.mktemp("answers") / WRITTEN)
        ping = Request("", "ann", "POST", "/", {}, {"json": {"client": "local", "tgt": "*", "fun": "test.ping"}}, {})
        for one in (pair.stock, pair.ours):
            until(lambda one=one: len(one.ask(ping)["body"]["return"][0]) == 2, PATIENCE, "both minions answer")
        yield pair
    finally:
        if server is not None:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        master.end()
        log.close()


@pytest.mark.parametrize("request_", requests(), ids=lambda request: request.name)
def test_answers_are_the_same(both: Both, request_: Request) -> None:
    for _ in range(TRIES):
        stock, ours = both.stock.ask(request_), both.ours.ask(request_)
        if request_.differs or stock == ours:
            break
    with both.written.open("a") as out:
        out.write(json.dumps({"request": request_.name, "stock": stock, "ours": ours}) + "\n")
    differs = request_.differs
    if "status" in differs:
        assert [stock["status"], ours["status"]] == differs["status"]
        return
    assert ours["status"] == stock["status"]
    for part in ("headers", "body"):
        if part in differs:
            assert ours[part] != stock[part], f"no difference any more: {differs['why']}"
        else:
            assert ours[part] == stock[part]
