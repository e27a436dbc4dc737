"""Files behind http:// and https://, brought to the minion's own cache: streamed, bounded, whole or not at all."""

from __future__ import annotations

import base64
import errno
import time
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from statecore.host.content import atomic_file
from statecore.model.errors import CommandError

if TYPE_CHECKING:
    import http.client
    import ssl
    import urllib.request

SCHEMES = ("http://", "https://")

#: Seconds that a server may say nothing.
TIMEOUT = 60.0

#: Seconds for a whole file.
DEADLINE = 3600.0

#: Bytes of a file beyond which it is not taken.
LIMIT = 4 * 1024**3

_BLOCK = 1024 * 1024

#: What the minion's own disk says, and no server.
_OF_THE_DISK = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR}
)


def shown(url: str) -> str:
    """A URL as people may read it: without the password in it."""
    parts = urllib.parse.urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return urllib.parse.urlunsplit(parts._replace(netloc=f"<redacted>@{parts.netloc.rpartition('@')[2]}"))


def cached_at(url: str, cachedir: Path, saltenv: str) -> Path:
    """Where a file is kept. Raises CommandError for a URL that names none."""
    parts = urllib.parse.urlsplit(url)
    path = [part for part in urllib.parse.unquote(parts.path).split("/") if part not in ("", ".", "..")]
    if not (parts.hostname and path) or "\0" in parts.path:
        raise CommandError(f"{shown(url)} names no file of a server")
    if parts.query:
        path[-1] += f"?{parts.query.replace('/', '_')}"
    return cachedir.joinpath("extrn_files", saltenv.replace("/", "_"), f"{parts.hostname}{parts.port or ''}", *path)


def fetch(
    url: str,
    place: Path,
    *,
    verify_ssl: bool = True,
    use_etag: bool = False,
    timeout: float = TIMEOUT,
    deadline: float = DEADLINE,
    limit: int = LIMIT,
) -> None:
    """Brings a file to ``place``. Raises CommandError that names the URL and why not; what was there stays then.

    use_etag
        what is there stays where the server says, by the mark that it gave with it, that it has no other
    """
    # Late: a third of the time that loading the file states takes, for sources that few of them have.
    import http.client
    import urllib.error
    import urllib.request

    name = shown(url)
    mark = _mark_of(place)
    try:
        request = _request(url)
        if use_etag and place.is_file() and mark.is_file():
            request.add_header("If-None-Match", mark.read_text("utf-8").strip())
        place.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file.replacement(place) as new:
            with urllib.request.urlopen(request, timeout=timeout, context=tls(verify_ssl)) as answer:
                _stream(answer, new, name, limit, time.monotonic() + deadline)
                given = answer.headers.get("ETag")
            # Remove the old ETag before the file changes and store the new one after it: an ETag never belongs to another file.
            mark.unlink(missing_ok=True)
        if use_etag and given:
            mark.write_text(given, "utf-8")
    except urllib.error.HTTPError as error:
        if error.code != http.client.NOT_MODIFIED:
            raise CommandError(f"{name}: HTTP {error.code}: {error.reason}") from error
    except urllib.error.URLError as error:
        raise CommandError(f"{name}: {error.reason}") from error
    except TimeoutError as error:
        raise CommandError(f"{name}: no answer within {timeout:g} seconds") from error
    except http.client.IncompleteRead as error:
        raise CommandError(f"{name} ended before it was whole") from error
    except OSError as error:
        where = f"{place.parent}: " if error.errno in _OF_THE_DISK else ""
        raise CommandError(f"{name}: {where}{error.strerror or error}") from error
    except (ValueError, http.client.HTTPException) as error:
        raise CommandError(f"{name}: {error or type(error).__name__}") from error


def forget(place: Path) -> None:
    """Removes a file that was fetched, and its mark."""
    _mark_of(place).unlink(missing_ok=True)
    place.unlink(missing_ok=True)


def _mark_of(place: Path) -> Path:
    """Where the mark (ETag) that a server gave with a file is kept."""
    return place.with_name(f".{place.name[:200]}.etag")


def _request(url: str) -> urllib.request.Request:
    """A request; name and password of the URL go into a header, as servers expect them."""
    import urllib.request

    parts = urllib.parse.urlsplit(url)
    if parts.username is None:
        return urllib.request.Request(url)
    plain = urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    request = urllib.request.Request(plain)
    login = basic(urllib.parse.unquote(parts.username), urllib.parse.unquote(parts.password or ""))
    request.add_unredirected_header("Authorization", login)
    return request


def basic(user: str, password: str) -> str:
    """The header ``Authorization`` of a name and a password."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def tls(verify_ssl: bool, ca_bundle: Path | None = None, cert: Sequence[Path] = ()) -> ssl.SSLContext:
    """What HTTPS is spoken with. ``cert``: files of our own certificate and, if it is another, of its key. Raises OSError."""
    import ssl

    context = ssl.create_default_context(cafile=None if ca_bundle is None else str(ca_bundle))
    if not verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if cert:
        context.load_cert_chain(*map(str, cert))
    return context


def _stream(answer: http.client.HTTPResponse, temporary: Path, name: str, limit: int, until: float) -> None:
    if answer.headers.defects:
        raise CommandError(f"{name}: the server's answer ends, or breaks, in its headers")
    length = answer.headers.get("Content-Length")
    got = 0
    with temporary.open("xb") as file:
        # One read of the socket at a time, so that a server that drips is noticed.
        while block := answer.read1(_BLOCK):
            got += len(block)
            if time.monotonic() > until:
                raise CommandError(f"{name} takes too long: {got} bytes came before the time was over")
            if got > limit:
                raise CommandError(f"{name} is larger than {limit} bytes")
            file.write(block)
    if length is not None and length.isdecimal() and got != int(length):
        raise CommandError(f"{name} ended after {got} of {length} bytes")
