"""Serves Saltern's own page at ``/console``: the files of the folder ``page``, under a strict Content-Security-Policy.

Source: docs/console.md
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

_FOLDER = Path(__file__).parent / "page"

#: Ending -> content type of the files that are served.
_KINDS: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

#: Scripts and styles come from this server alone. Trusted Types: no script of the page can put text in as HTML.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-cache",
}


@cache
def _files() -> Mapping[str, tuple[bytes, str, str]]:
    """Return {path below the folder: (content, content type, ETag)} of the files that are served."""
    found = {}
    for path in sorted(_FOLDER.rglob("*")):
        if path.suffix in _KINDS:
            data = path.read_bytes()
            tag = f'"{hashlib.sha256(data).hexdigest()[:20]}"'
            found[path.relative_to(_FOLDER).as_posix()] = (data, _KINDS[path.suffix], tag)
    return found


async def _file(request: Request) -> Response:
    found = _files().get(request.path_params.get("path") or "index.html")
    if found is None:
        raise HTTPException(404, "the console has no such file")
    data, kind, tag = found
    headers = {**_HEADERS, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(data, 200, headers, kind)


async def _with_slash(request: Request) -> Response:
    # The page names its files relative to itself, so that it works below any prefix.
    return RedirectResponse(f"{request.url.path}/", 308)


def routes() -> list[BaseRoute]:
    """Return the routes of the page and its files."""
    return [
        Route("/console", _with_slash, methods=["GET"]),
        Route("/console/{path:path}", _file, methods=["GET"]),
    ]
