"""One HTTP request and its answer: redirects, proxies, cookies, deadlines. What it means is the ``http`` module's to say.

Loaded with the module that asks; what speaks HTTP is loaded with the first request.
"""

from __future__ import annotations

import contextlib
import time
import urllib.parse
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from statecore.model.errors import CommandError
from statecore.sources import downloads

if TYPE_CHECKING:
    import http.client
    import http.cookiejar
    import urllib.request

_BLOCK = 1024 * 1024

#: What a client says itself where a server says nothing in time (Salt's HTTP client does, too).
TIMED_OUT = 599


@dataclass(frozen=True, slots=True)
class Exchange:
    """What is asked, and of whom."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    #: (name, password) for this server alone: a redirect to another one goes without.
    login: tuple[str, str] | None = None
    verify_ssl: bool = True
    ca_bundle: Path | None = None
    #: Files of our own certificate and, if it is another, of its key.
    cert: Sequence[Path] = ()
    #: URL of a proxy; None: as the environment says; "": none.
    proxy: str | None = None
    #: Seconds in which the server has to take the connection.
    connect_timeout: float = 20.0
    #: Seconds for the whole of it.
    timeout: float = 3600.0
    #: Bytes of an answer beyond which it is not taken.
    limit: int = 100 * 1024**3
    #: Takes and keeps the cookies of the exchange.
    cookies: http.cookiejar.CookieJar | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said. Header names are as it wrote them."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes

    def header(self, name: str, default: str = "") -> str:
        """A header by its name in any case."""
        return next((value for key, value in self.headers.items() if key.lower() == name.lower()), default)


class TimedOut(CommandError):
    """The server said nothing in time."""


def exchange(asked: Exchange) -> Answer:
    """Sends the request; an answer of any status. Raises CommandError when there is none, TimedOut when it came too late."""
    # Late: it takes longer to load than most states take to run.
    import http.client
    import urllib.error
    import urllib.request

    parts = urllib.parse.urlsplit(asked.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CommandError(f"{downloads.shown(asked.url)} is no URL of http or https")
    deadline = time.monotonic() + asked.timeout
    connected: list[bool] = []
    try:
        request = urllib.request.Request(
            asked.url, data=asked.body, headers=dict(asked.headers), method=asked.method.upper()
        )
        if asked.login is not None:
            request.add_unredirected_header("Authorization", downloads.basic(*asked.login))
        opener = urllib.request.build_opener(*_handlers(asked, connected))
        try:
            answer = opener.open(request, timeout=asked.connect_timeout)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            headers = dict(answer.headers.items())
            body = _read(answer, deadline, asked.limit)
            return Answer(answer.status, answer.reason, headers, _unpacked(headers, body, asked.limit))
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise _late(connected) from error
        raise CommandError(str(error.reason)) from error
    except TimeoutError as error:
        raise _late(connected) from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise CommandError(str(error) or type(error).__name__) from error


def _late(connected: Sequence[bool]) -> TimedOut:
    return TimedOut("Timeout during request" if connected else "Timeout while connecting")


def _read(answer: http.client.HTTPResponse, deadline: float, limit: int) -> bytes:
    blocks = []
    got = 0
    # One read of the socket at a time, so that a server that drips is noticed.
    while block := answer.read1(_BLOCK):
        got += len(block)
        if got > limit:
            raise CommandError(f"the answer is larger than {limit} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError
        blocks.append(block)
    length = answer.headers.get("Content-Length") if answer.length else None
    if length is not None:
        raise CommandError(f"the answer ended after {got} of {length} bytes")
    return b"".join(blocks)


def _unpacked(headers: Mapping[str, str], body: bytes, limit: int) -> bytes:
    coding = next((value for name, value in headers.items() if name.lower() == "content-encoding"), "").lower()
    if coding not in ("gzip", "deflate") or not body:
        return body
    # 32: the header tells gzip from zlib. deflate may come without any header.
    for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        with contextlib.suppress(zlib.error):
            unpacker = zlib.decompressobj(window)
            plain = unpacker.decompress(body, limit)
            if unpacker.unconsumed_tail:
                raise CommandError(f"the answer is larger than {limit} bytes")
            return plain
    raise CommandError(f"the answer is not in the form that it says ({coding})")


def _handlers(asked: Exchange, connected: list[bool]) -> list[Any]:
    import http.client
    import urllib.request

    class Redirects(urllib.request.HTTPRedirectHandler):
        """307 and 308 repeat the request, whatever its method; a login goes to the server that it was meant for.

        That a redirect leads to http, https or ftp alone is the base's to see to; nobody here opens ftp.
        """

        def redirect_request(self, request: Any, *rest: Any) -> urllib.request.Request | None:
            code, new_url = rest[1], rest[4]
            if code in (307, 308):
                new: urllib.request.Request | None = urllib.request.Request(
                    new_url, data=request.data, headers=request.headers, method=request.get_method()
                )
            else:
                new = super().redirect_request(request, *rest)
            login = request.unredirected_hdrs.get("Authorization")
            if new is not None and login and _server(new_url) == _server(request.full_url):
                new.add_unredirected_header("Authorization", login)
            elif new is not None and _server(new_url) != _server(request.full_url):
                for secret in ("Authorization", "Cookie", "Proxy-authorization"):
                    new.headers.pop(secret, None)
            return new

    def timed(kind: Any) -> Callable[..., http.client.HTTPConnection]:
        class Connection(kind):  # type: ignore[misc]
            def connect(self) -> None:
                super().connect()
                connected.append(True)
                self.sock.settimeout(asked.timeout)

        return Connection

    class Plain(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(timed(http.client.HTTPConnection), request)

    class Secure(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
            context = downloads.tls(asked.verify_ssl, asked.ca_bundle, asked.cert)
            return self.do_open(timed(http.client.HTTPSConnection), request, context=context)

    class Refusing(urllib.request.FTPHandler):
        def ftp_open(self, request: urllib.request.Request) -> NoReturn:
            raise CommandError(
                f"the server sends us to {downloads.shown(request.full_url)}, which is no URL of http or https"
            )

    found: list[Any] = [Redirects, Plain, Secure, Refusing]
    if asked.proxy is not None:
        found.append(urllib.request.ProxyHandler({"http": asked.proxy, "https": asked.proxy} if asked.proxy else {}))
    if asked.cookies is not None:
        found.append(urllib.request.HTTPCookieProcessor(asked.cookies))
    return found


def _server(url: str) -> tuple[str, str | None, int | None]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port
