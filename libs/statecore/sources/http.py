"""HTTP client: ``exchange`` sends one request, an ``Exchange``, to a web server and returns the response, an ``Answer`` (status,
headers, body as bytes).

It follows redirects, uses the proxy and the cookies of the request, decompresses the body, and gives up after the request's time
limits (seconds) and size limit (bytes). A status such as 404 is a normal response; CommandError means that there is none. The
execution module ``http`` is built on it. The HTTP libraries are imported at the first request, because few jobs need them.
"""

from __future__ import annotations

import contextlib
import time
import urllib.parse
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

from statecore.model.errors import CommandError
from statecore.sources import downloads

if TYPE_CHECKING:
    import http.client
    import http.cookiejar
    import urllib.request

_BLOCK = 1024 * 1024

#: Status that the client itself reports when the server does not respond in time, as Salt's HTTP client does.
TIMED_OUT = 599


@dataclass(frozen=True, slots=True)
class Exchange:
    """An HTTP request: URL, method, headers, body, and settings such as certificate, proxy and timeouts."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    #: (user, password) for this server only: a redirect to another server does not send them.
    login: tuple[str, str] | None = None
    verify_ssl: bool = True
    ca_bundle: Path | None = None
    #: Files of the client certificate and, if separate, of its key.
    cert: Sequence[Path] = ()
    #: URL of a proxy; None: from the environment variables; "": no proxy.
    proxy: str | None = None
    #: Seconds for the connection to the server.
    connect_timeout: float = 20.0
    #: Seconds for the whole request.
    timeout: float = 3600.0
    #: Largest size of the response in bytes.
    limit: int = 100 * 1024**3
    #: Cookies to send; the response's cookies are added.
    cookies: http.cookiejar.CookieJar | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP response: status, headers and body. Header names are as the server wrote them."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes

    def header(self, name: str, default: str = "") -> str:
        """Return the value of a header of the HTTP response, whose name may be in upper or lower case; ``default`` if
        the response does not have it.
        """
        return next((value for key, value in self.headers.items() if key.lower() == name.lower()), default)


class TimedOut(CommandError):
    """Error: the HTTP server did not respond in time."""


def exchange(asked: Exchange) -> Answer:
    """Send an HTTP request and return the response, also one with an error status. Raise TimedOut if the server does
    not respond in time, CommandError if there is no response for another reason.
    """
    # Imported here: the import takes longer than most states take to run.
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
    # read1 returns after one read of the socket, so that the deadline also applies to a server that sends slowly.
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
    # 32: detect gzip or zlib by the header. "deflate" may also come without a header.
    for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        with contextlib.suppress(zlib.error):
            unpacker = zlib.decompressobj(window)
            plain = unpacker.decompress(body, limit)
            if unpacker.unconsumed_tail:
                raise CommandError(f"the answer is larger than {limit} bytes")
            return plain
    raise CommandError(f"the answer is not in the form that it says ({coding})")


def _handlers(asked: Exchange, connected: list[bool]) -> list[urllib.request.BaseHandler]:
    import http.client
    import urllib.request

    class Redirects(urllib.request.HTTPRedirectHandler):
        """Handle redirects: 307 and 308 repeat the request with its method; credentials are sent to the original
        server only.

        The base class allows redirects to http, https and ftp, and the handler for ftp here refuses.
        """

        def redirect_request(
            self,
            req: urllib.request.Request,
            fp: IO[bytes],
            code: int,
            msg: str,
            headers: http.client.HTTPMessage,
            newurl: str,
        ) -> urllib.request.Request | None:
            if code in (307, 308):
                new: urllib.request.Request | None = urllib.request.Request(
                    newurl, data=req.data, headers=req.headers, method=req.get_method()
                )
            else:
                new = super().redirect_request(req, fp, code, msg, headers, newurl)
            login = req.unredirected_hdrs.get("Authorization")
            if new is not None and login and _server(newurl) == _server(req.full_url):
                new.add_unredirected_header("Authorization", login)
            elif new is not None and _server(newurl) != _server(req.full_url):
                for secret in ("Authorization", "Cookie", "Proxy-authorization"):
                    new.headers.pop(secret, None)
            return new

    def begin(connection: http.client.HTTPConnection) -> None:
        connected.append(True)
        connection.sock.settimeout(asked.timeout)

    class PlainConnection(http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            begin(self)

    class SecureConnection(http.client.HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            begin(self)

    class Plain(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(PlainConnection, request)

    class Secure(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
            context = downloads.tls(asked.verify_ssl, asked.ca_bundle, asked.cert)
            return self.do_open(SecureConnection, request, context=context)

    class Refusing(urllib.request.FTPHandler):
        def ftp_open(self, request: urllib.request.Request) -> NoReturn:
            raise CommandError(
                f"the server sends us to {downloads.shown(request.full_url)}, which is no URL of http or https"
            )

    found: list[urllib.request.BaseHandler] = [Redirects(), Plain(), Secure(), Refusing()]
    if asked.proxy is not None:
        found.append(urllib.request.ProxyHandler({"http": asked.proxy, "https": asked.proxy} if asked.proxy else {}))
    if asked.cookies is not None:
        found.append(urllib.request.HTTPCookieProcessor(asked.cookies))
    return found


def _server(url: str) -> tuple[str, str | None, int | None]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port
