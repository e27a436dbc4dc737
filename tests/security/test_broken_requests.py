"""Findings 38.15 and 38.17: requests at the API that are broken, ambiguous, or slow to read before their sender is known.

None of them may leave a stack trace in the log, be read as two requests, or be parsed for long.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from saltern.api import bodies, main
from saltern.api.application import application
from saltern.api.event_feed import EventFeed
from saltern.api.server import Api
from saltern.api.settings import ApiSettings
from saltern.kit.config.master import MasterOptions
from saltern.kit.jobs.batch import batch_size
from saltern.kit.links.control import ControlError
from saltern.kit.process.metrics import new_metrics
from tests.ports import free_port
from tests.security.test_api import TOKEN, FakeLink

#: Seconds for what happens on a busy machine.
_PATIENCE = 60.0

JSON, YAML, FORM = "application/json", "application/x-yaml", "application/x-www-form-urlencoded"
_CLIENTS = ["local", "local_async", "local_batch", "local_subset", "runner", "runner_async", "wheel", "wheel_async"]


class Served:
    """An API on a socket, and what it logs."""

    def __init__(self, directory: Path) -> None:
        settings = ApiSettings(disable_ssl=True, host="127.0.0.1", port=free_port(), webhook_disable_auth=True)
        self.link = _Link()
        log = logging.getLogger("saltern.api")
        metrics = new_metrics("api")
        options = MasterOptions(netapi_enable_clients=_CLIENTS)
        api = Api(options, settings, self.link, EventFeed(10, lambda: None), metrics, log)  # type: ignore[arg-type]
        role: Any = SimpleNamespace(metrics=metrics, log=log)
        self.settings = settings
        self.server = main._Server(main._configuration(role, settings, application(api)))

    def send(self, *parts: bytes, end: bool = False) -> bytes:
        """Send the parts of a request; return all that comes until the server closes, or falls silent for a second.

        ``end``: the client closes its side behind the last part.
        """

        async def run() -> bytes:
            listening = self.server.listen(self.settings)
            listening.listen()
            serving = asyncio.create_task(self.server.serve(sockets=[listening]))
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.settings.port)
                for part in parts:
                    writer.write(part)
                    await writer.drain()
                if end:
                    writer.write_eof()
                return await _all_of(reader)
            finally:
                self.server.should_exit = True
                await asyncio.wait_for(serving, _PATIENCE)

        return asyncio.run(run())


class _Link(FakeLink):
    async def call(self, cmd: str, **fields: Any) -> Any:
        answer = await super().call(cmd, **fields)
        if cmd == "login":
            raise ControlError("EauthAuthenticationError", "no")
        return answer


async def _all_of(reader: asyncio.StreamReader) -> bytes:
    found = b""
    while True:
        try:
            part = await asyncio.wait_for(reader.read(65536), 1.0 if found else _PATIENCE)
        except TimeoutError:
            return found + b"<open>"
        except ConnectionError:
            return found
        if not part:
            return found
        found += part


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path)


def _request(path: str, *headers: str, method: str = "POST", version: str = "1.1") -> bytes:
    lines = [f"{method} {path} HTTP/{version}", "Host: api", f"X-Auth-Token: {TOKEN}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1")


_HIDDEN = b"GET /stats HTTP/1.1\r\nHost: api\r\n\r\n"
_CHUNKED = b"2\r\n{}\r\n0\r\n\r\n"

#: Name -> request whose end a proxy may see elsewhere. A second request hides behind the end.
AMBIGUOUS: dict[str, bytes] = {
    "both, chunked first": _request("/", "Transfer-Encoding: chunked", "Content-Length: 6") + _CHUNKED,
    "both, length first": _request("/", "Content-Length: 6", "Transfer-Encoding: chunked") + _CHUNKED,
    "both, a length of nothing": _request("/", "Content-Length: 0", "Transfer-Encoding: chunked") + _CHUNKED,
    "both in a GET": _request("/", "Content-Length: 6", "Transfer-Encoding: chunked", method="GET") + _CHUNKED,
    "both at the login": _request("/login", "Content-Length: 6", "Transfer-Encoding: chunked") + _CHUNKED,
    "both at an unknown path": _request("/nowhere", "Content-Length: 6", "Transfer-Encoding: chunked") + _CHUNKED,
    "both, in capitals": _request("/", "CONTENT-LENGTH: 6", "TRANSFER-ENCODING: CHUNKED") + _CHUNKED,
    "chunked in HTTP/1.0": _request("/", "Transfer-Encoding: chunked", version="1.0") + _CHUNKED,
    "two lengths": _request("/", "Content-Length: 2", "Content-Length: 6") + b"{}",
    "two lengths in one line": _request("/", "Content-Length: 2, 6") + b"{}",
    "a length with a sign": _request("/", "Content-Length: +2") + b"{}",
    "a negative length": _request("/", "Content-Length: -2") + b"{}",
    "a length in hexadecimal": _request("/", "Content-Length: 0x2") + b"{}",
    "a length with a fraction": _request("/", "Content-Length: 2.0") + b"{}",
    "a length of 5000 digits": _request("/", "Content-Length: " + "9" * 5000) + b"{}",
    "a length that is no number": _request("/", "Content-Length: NaN") + b"{}",
    "two encodings": _request("/", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + _CHUNKED,
    "an unknown encoding": _request("/", "Transfer-Encoding: xchunked") + _CHUNKED,
    "an encoding behind another": _request("/", "Transfer-Encoding: gzip, chunked") + _CHUNKED,
    "identity and chunked": _request("/", "Transfer-Encoding: identity, chunked") + _CHUNKED,
    "a space before the colon": _request("/", "Transfer-Encoding : chunked") + _CHUNKED,
    "a vertical tab": _request("/", "Transfer-Encoding: \x0bchunked") + _CHUNKED,
    "a folded header": _request("/", "X: y\r\n Transfer-Encoding: chunked", "Content-Length: nine") + b"{}",
    "a chunk size with a sign": _request("/", "Transfer-Encoding: chunked") + b"+2\r\n{}\r\n0\r\n\r\n",
    "a negative chunk size": _request("/", "Transfer-Encoding: chunked") + b"-2\r\n{}\r\n0\r\n\r\n",
    "a chunk size with 0x": _request("/", "Transfer-Encoding: chunked") + b"0x2\r\n{}\r\n0\r\n\r\n",
    "a chunk size of 5000 digits": _request("/", "Transfer-Encoding: chunked") + b"f" * 5000 + b"\r\n{}\r\n0\r\n\r\n",
    "a chunk size that is no number": _request("/", "Transfer-Encoding: chunked") + b"zz\r\n{}\r\n0\r\n\r\n",
    "a chunk that is too long": _request("/", "Transfer-Encoding: chunked") + b"2\r\n{}}}}\r\n0\r\n\r\n",
    "a line end of the chunk that is none": _request("/", "Transfer-Encoding: chunked") + b"2\r\n{}XX0\r\n\r\n",
    "a null byte in a header": _request("/", "X: a\x00b") + b"{}",
}


def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    assert [record for record in caplog.records if record.exc_info] == []
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_an_ambiguous_request_closes_the_connection(
    served: Served, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    caplog.set_level(logging.DEBUG)
    answer = served.send(AMBIGUOUS[name], _HIDDEN)
    assert answer.partition(b" ")[2][:3] in (b"400", b"501", b"413"), answer[:200]
    assert answer.count(b"HTTP/1.1 ") == 1, "what hides behind the request was answered, too"
    assert not answer.endswith(b"<open>")
    assert served.link.done == []
    _quiet(caplog)


#: Name -> (parts of a request, whether the client closes behind them).
BROKEN: dict[str, tuple[tuple[bytes, ...], bool]] = {
    "the body ends early": ((_request("/", f"Content-Type: {JSON}", "Content-Length: 100"), b"{"), True),
    "the body of a login ends early": (
        (_request("/login", f"Content-Type: {JSON}", "Content-Length: 100"), b"{"),
        True,
    ),
    "the body of a hook ends early": (
        (_request("/hook/x", f"Content-Type: {JSON}", "Content-Length: 100"), b"{"),
        True,
    ),
    "the body of a run ends early": ((_request("/run", f"Content-Type: {JSON}", "Content-Length: 100"), b"{"), True),
    "the chunks end early": ((_request("/", "Transfer-Encoding: chunked"), b"5\r\n{"), True),
    "a broken chunk behind a good one": (
        (_request("/", "Transfer-Encoding: chunked"), b"2\r\n{}\r\n", b"zz\r\n"),
        False,
    ),
    "a broken chunk at the login": (
        (_request("/login", "Transfer-Encoding: chunked"), b"2\r\n{}\r\n", b"zz\r\n"),
        False,
    ),
    "no headers": ((b"\r\n\r\n\r\n",), True),
    "half a request": ((b"POST / HTTP/1.1\r\nHost",), True),
    "no HTTP": ((b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20,), True),
    "an unknown version": ((b"GET / HTTP/9.9\r\nHost: api\r\n\r\n",), True),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_request_leaves_no_stack_trace(served: Served, caplog: pytest.LogCaptureFixture, name: str) -> None:
    caplog.set_level(logging.INFO)
    parts, end = BROKEN[name]
    answer = served.send(*parts, end=end)
    assert not answer.startswith(b"HTTP/1.1 500")
    assert served.link.done == []
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) <= 1
    _quiet(caplog)


_CHUNK = '{"client": "%s", "tgt": "*", "fun": "test.ping", %s}'

#: Name -> (Content-Type, body) that a route answers with 400.
ODD: dict[str, tuple[str, bytes]] = {
    "NaN": (JSON, b"NaN"),
    "Infinity": (JSON, b"[Infinity]"),
    "-Infinity": (JSON, b'{"a": -Infinity}'),
    "a number that is too large": (JSON, b'{"a": 1e999}'),
    "a negative number that is too large": (JSON, b"[-1e999]"),
    "NaN as timeout": (JSON, (_CHUNK % ("local", '"timeout": NaN')).encode()),
    "NaN as an argument": (JSON, (_CHUNK % ("local_async", '"arg": [NaN]')).encode()),
    "a text NaN as timeout": (JSON, (_CHUNK % ("local", '"timeout": "nan"')).encode()),
    "a text infinity as timeout": (JSON, (_CHUNK % ("local", '"timeout": "infinity"')).encode()),
    "a text 1e999 as timeout": (JSON, (_CHUNK % ("local", '"timeout": "1e999"')).encode()),
    "5000 digits": (JSON, b'{"a": ' + b"7" * 5000 + b"}"),
    "a subset of infinity": (JSON, (_CHUNK % ("local_subset", '"subset": "inf"')).encode()),
    "a YAML infinity as timeout": (YAML, b"{client: local, tgt: '*', fun: test.ping, timeout: .inf}"),
    "a YAML NaN as timeout": (YAML, b"{client: local, tgt: '*', fun: test.ping, timeout: .nan}"),
    "a wait of NaN between batches": (JSON, (_CHUNK % ("local_batch", '"batch": 1, "batch_wait": "nan"')).encode()),
    "lists inside each other": (JSON, b"[" * 100_000),
    "maps inside each other": (JSON, b'{"a":' * 100_000),
    "half a document": (JSON, b'{"a": '),
    "no UTF-8": (JSON, b'{"a": "\xff"}'),
    "a byte order mark": (JSON, b"\xef\xbb\xbf{}"),
    "a lone surrogate in a list": (JSON, b'["\\ud800"]'),
    "YAML that is none": (YAML, b"{"),
    "a null byte in YAML": (YAML, b"a: \x00"),
    "a list as a key": (YAML, b"? [1]\n: 2"),
    "a tag of Python": (YAML, b"!!python/object/apply:os.system [id]"),
    "a YAML number that is too long": (YAML, b"a: 0x" + b"f" * 6000),
    "a date that is none": (YAML, b"{client: local, tgt: '*', fun: test.ping, timeout: 2024-13-45}"),
    "a form with too many fields": (FORM, b"a=1&" * 5000),
}


@pytest.mark.parametrize("path", ["/", "/run"])
@pytest.mark.parametrize("name", ODD)
def test_an_odd_body_is_answered_with_400(
    served: Served, caplog: pytest.LogCaptureFixture, name: str, path: str
) -> None:
    caplog.set_level(logging.INFO)
    kind, body = ODD[name]
    head = _request(path, f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close")
    answer = served.send(head, body)
    # /run asks for the credentials that each chunk of it has to hold.
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 401" if path == "/run" else b"HTTP/1.1 400")), answer[:300]
    assert served.link.done == []
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) <= 1
    _quiet(caplog)


@pytest.mark.parametrize("text", ["1e999%", "inf%", "-inf%", "nan%", "nan", "inf", "1e999", "9" * 5000, "0%", "-1%"])
def test_an_odd_batch_is_no_size(text: str) -> None:
    with pytest.raises(ValueError):  # every text of a size gets the same error of Python
        batch_size(text, 10)


# ------------------------------------------------------------------------------------------- before the session is known


@pytest.mark.parametrize("path", ["/login", "/token"])
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (JSON, b'{"username": "' + b"x" * 20_000 + b'"}'),
        (JSON, b"[" + b"1," * 10_000 + b"1]"),
        (YAML, b"a: 1" + b":59" * 8_000),
        (FORM, b"username=" + b"x" * 20_000),
        (FORM, b"arg=[" + b"1," * 10_000 + b"1]"),
    ],
    ids=["a long name", "a long list", "YAML", "a form", "an argument"],
)
def test_a_login_is_short(served: Served, monkeypatch: pytest.MonkeyPatch, path: str, kind: str, body: bytes) -> None:
    parsed: list[str] = []
    monkeypatch.setattr(bodies, "_READERS", dict.fromkeys((JSON, YAML, FORM), parsed.append))
    head = _request(path, f"Content-Type: {kind}", f"Content-Length: {len(body)}")
    assert b" 413 " in served.send(head, body).partition(b"\r\n")[0]
    assert parsed == []


@pytest.mark.parametrize("path", ["/run", "/keys", "/hook/x"])
@pytest.mark.parametrize(
    "body",
    [b"a: 1" + b":59" * 100_000, b"- x\n" * 100_000, b"[" + b"1," * 50_000 + b"1]"],
    ids=["base 60", "lines", "a list"],
)
def test_long_yaml_is_parsed_for_sessions_alone(
    served: Served, monkeypatch: pytest.MonkeyPatch, path: str, body: bytes
) -> None:
    parsed: list[object] = []
    monkeypatch.setattr(bodies.yaml, "load", lambda *given: parsed.append(given))
    head = _request(path, f"Content-Type: {YAML}", f"Content-Length: {len(body)}")
    assert b" 413 " in served.send(head, body).partition(b"\r\n")[0]
    assert parsed == []


@pytest.mark.parametrize("path", ["/", "/minions"])
def test_no_body_is_parsed_without_a_session(served: Served, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    parsed: list[str] = []
    monkeypatch.setattr(bodies, "_READERS", dict.fromkeys((JSON, YAML, FORM), parsed.append))
    body = b"a: 1" + b":59" * 1000
    head = _request(path, f"Content-Type: {YAML}", f"Content-Length: {len(body)}").replace(TOKEN.encode(), b"0" * 40)
    assert b" 401 " in served.send(head, body).partition(b"\r\n")[0]
    assert parsed == []


@pytest.mark.ordinary
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (JSON, b'{"client": "local_async", "tgt": "*", "fun": "test.ping", "arg": [1.5, -2e10, 3]}'),
        (YAML, b"client: local_async\ntgt: '*'\nfun: test.ping\narg: [1.5, 1:30, 0644, 2024-01-01]\n"),
        (FORM, b"client=local_async&tgt=*&fun=test.ping&arg=1:30&arg=%5B1,2%5D&arg=0644"),
        (JSON, b'{"client": "local_async", "tgt": "*", "fun": "state.apply", "kwarg": {"pillar": {"a": "'
         + b"x" * 300_000 + b'"}}}'),
    ],
    ids=["JSON", "YAML", "form", "a large pillar"],
)  # fmt: skip
def test_usual_bodies_are_read(served: Served, kind: str, body: bytes) -> None:
    head = _request("/", f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close")
    assert served.send(head, body).startswith(b"HTTP/1.1 200")
    (asked,) = [fields for cmd, fields in served.link.asked if cmd == "publish"]
    expected = {JSON: [1.5, -2e10, 3], YAML: [1.5, "1:30", 644, "2024-01-01"], FORM: ["1:30", [1, 2], 644]}[kind]
    assert asked["fun"] == "state.apply" or asked["arg"] == expected


@pytest.mark.ordinary
def test_a_chunked_body_is_read(served: Served) -> None:
    body = b'{"client": "local_async", "tgt": "*", "fun": "test.ping"}'
    head = _request("/", f"Content-Type: {JSON}", "Transfer-Encoding: chunked", "Connection: close")
    answer = served.send(head, f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")
