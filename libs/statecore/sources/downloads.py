"""Downloads over http:// and https:// into the minion's cache. A download has a size limit and a time limit, and is
atomic.
"""

from __future__ import annotations

import base64
import errno
import logging
import time
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from statecore.host.content import private_files
from statecore.model.errors import CommandError

if TYPE_CHECKING:
    import http.client
    import ssl
    import urllib.request

log = logging.getLogger(__name__)

SCHEMES = ("http://", "https://")

#: Seconds without data from the server.
TIMEOUT = 60.0

#: Seconds for a whole download.
DEADLINE = 3600.0

#: Largest size of a download in bytes.
LIMIT = 4 * 1024**3

_BLOCK = 1024 * 1024

#: Error numbers that come from the minion's disk and not from the connection.
_OF_THE_DISK = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR}
)


def shown(url: str) -> str:
    """Return the URL with user and password replaced by ``<redacted>``, for messages and logs."""
    parts = urllib.parse.urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return urllib.parse.urlunsplit(parts._replace(netloc=f"<redacted>@{parts.netloc.rpartition('@')[2]}"))


def cached_at(url: str, cachedir: Path, saltenv: str) -> Path:
    """Return the path at which the minion's cache directory keeps the downloaded file of a URL for a saltenv. Raises
    CommandError for a URL without a file name, and for a host or a saltenv whose name leads out of the directory.
    """
    parts = urllib.parse.urlsplit(url)
    path = [part for part in urllib.parse.unquote(parts.path).split("/") if part not in ("", ".", "..")]
    if not (parts.hostname and path) or "\0" in parts.path:
        raise CommandError(f"{shown(url)} names no file of a server")
    if parts.hostname in (".", "..") or saltenv in (".", ".."):
        raise CommandError(
            f"{shown(url)} in the saltenv {saltenv!r} has no place in the cache: '..' names no directory there"
        )
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
    """Download the file at a URL to the path ``place``. Raises CommandError with the URL and the reason; an existing
    file at ``place`` then stays.

    use_etag
        send the ETag of the existing file; the file stays when the server reports that it has not changed
    timeout
        seconds without data from the server
    deadline
        seconds for the whole download
    limit
        largest size in bytes
    """
    # Imported here: the import takes a third of the time of loading the file states, and few states have such sources.
    import http.client
    import urllib.error
    import urllib.request

    name = shown(url)
    log.debug("Fetching %s to %s", name, place)
    mark = _etag_file(place)
    try:
        request = _request(url)
        if use_etag and place.is_file() and mark.is_file():
            request.add_header("If-None-Match", mark.read_text("utf-8").strip())
        with private_files.writer(place) as new:
            with urllib.request.urlopen(request, timeout=timeout, context=tls(verify_ssl)) as answer:
                _stream(answer, new, name, limit, time.monotonic() + deadline)
                given = answer.headers.get("ETag")
            # Remove the old ETag before the file changes and store the new one after it: an ETag never belongs to another file.
            mark.unlink(missing_ok=True)
        if use_etag and given:
            private_files.write(mark, given)
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


def remove(place: Path) -> None:
    """Remove a downloaded file at the path ``place``, and the file that stores its ETag. Missing files are ignored."""
    _etag_file(place).unlink(missing_ok=True)
    place.unlink(missing_ok=True)


def _etag_file(place: Path) -> Path:
    """Return the path of the file that stores the ETag of the downloaded file ``place``."""
    return place.with_name(f".{place.name[:200]}.etag")


def _request(url: str) -> urllib.request.Request:
    """Return the HTTP request for a URL. The user and password in the URL become the header ``Authorization``."""
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
    """Return the value of the HTTP header ``Authorization`` (Basic) for a user and a password."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def tls(verify_ssl: bool, ca_bundle: Path | None = None, cert: Sequence[Path] = ()) -> ssl.SSLContext:
    """Return the TLS context for HTTPS requests. ``cert`` lists the file of the client certificate and, if it is
    separate, the file of its key. Raises OSError if a file cannot be read.
    """
    import ssl

    context = ssl.create_default_context(cafile=None if ca_bundle is None else str(ca_bundle))
    if not verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if cert:
        context.load_cert_chain(*map(str, cert))
    return context


def _stream(answer: http.client.HTTPResponse, file: BinaryIO, name: str, limit: int, until: float) -> None:
    if answer.headers.defects:
        raise CommandError(f"{name}: the server's answer ends, or breaks, in its headers")
    length = answer.headers.get("Content-Length")
    got = 0
    # read1 returns after one read of the socket, so that the deadline also applies to a server that sends slowly.
    while block := answer.read1(_BLOCK):
        got += len(block)
        if time.monotonic() > until:
            raise CommandError(f"{name} takes too long: {got} bytes came before the time was over")
        if got > limit:
            raise CommandError(f"{name} is larger than {limit} bytes")
        file.write(block)
    if length is not None and length.isdecimal() and got != int(length):
        raise CommandError(f"{name} ended after {got} of {length} bytes")
