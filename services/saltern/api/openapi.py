"""The description of the API: as an OpenAPI 3.1 document, and as an HTML page without scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from saltern.api.settings import ApiSettings

#: (method, path, whether a session is needed, summary, statuses).
_ROWS: tuple[tuple[str, str, bool, str, tuple[int, ...]], ...] = (
    ("get", "/", False, "Names of the clients", (200, 406)),
    (
        "post",
        "/",
        True,
        "Run chunks of low data one after the other; the answer's list has one value for each",
        (200, 400, 401),
    ),
    (
        "post",
        "/login",
        False,
        "Start a session: username, password, eauth; or the header Authorization: Bearer",
        (200, 401, 429),
    ),
    ("get", "/login", False, "Says that one has to log in", (200,)),
    ("post", "/logout", True, "Revoke the session", (200, 401)),
    ("post", "/token", False, "A token for /run: username, password, eauth", (200, 400, 401, 429)),
    ("post", "/run", False, "Run chunks that carry a token or credentials themselves", (200, 400, 401)),
    ("get", "/minions", True, "Grains of all minions", (200, 401)),
    ("get", "/minions/{id}", True, "Grains of the minions that a glob matches", (200, 401)),
    ("post", "/minions", True, "Start jobs; do not wait for their returns", (202, 400, 401)),
    ("get", "/jobs", True, "All jobs", (200, 401)),
    ("get", "/jobs/{jid}", True, "One job and its returns", (200, 401)),
    ("get", "/keys", True, "Lists of minion keys", (200, 401)),
    ("get", "/keys/{id}", True, "Fingerprint of a minion's key", (200, 401)),
    (
        "post",
        "/keys",
        False,
        "An accepted key pair for a minion, as a tar archive: mid, and credentials",
        (200, 400, 401),
    ),
    ("post", "/hook/{path}", True, "Fire the event salt/netapi/hook/<path>", (200, 401)),
    ("get", "/stats", True, "Figures of this server", (200, 401)),
    ("get", "/events", True, "Events as they happen (text/event-stream); Last-Event-ID continues", (200, 401)),
    ("get", "/ws", True, "Events over a websocket; send: websocket client ready", (101, 403)),
    ("get", "/v1/session", True, "The user of the session, and its end", (200, 401)),
    ("get", "/v1/fleet", True, "Minions that a target matches: tgt, tgt_type, ids", (200, 400, 401)),
    ("get", "/v1/topology", True, "The parts of the master: Redis, queues, publishers", (200, 401)),
    ("get", "/v1/jobs", True, "Jobs that filters match, newest first, with counters", (200, 400, 401)),
    ("get", "/v1/jobs/{jid}", True, "One job, and its state on each minion", (200, 401, 404)),
    ("get", "/v1/jobs/{jid}/matrix", True, "One job as a table of minions and states", (200, 400, 401)),
    ("get", "/v1/jobs/{jid}/returns/{id}", True, "The return of one minion", (200, 401, 404)),
    ("get", "/console", False, "Saltern's own page", (200,)),
    ("get", "/openapi.json", False, "This description", (200,)),
)

_MEANING: Mapping[int, str] = {
    101: "events follow",
    200: "done",
    202: "started",
    400: "the request is wrong; `return` says what",
    401: "not signed in, or not allowed",
    403: "refused",
    404: "unknown",
    406: "no such type: JSON or YAML",
    429: "too many failed sign-ins; wait a minute",
}


def document(settings: ApiSettings) -> dict[str, Any]:
    """Return the description of the API as an OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for verb, path, session, summary, statuses in _ROWS:
        operation: dict[str, Any] = {
            "summary": summary,
            "responses": {str(status): {"description": _MEANING[status]} for status in statuses},
            "security": [{"token": []}, {"cookie": []}] if session else [],
        }
        if "{" in path:
            operation["parameters"] = [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in re.findall(r"{(\w+)}", path)
            ]
        if verb == "post":
            operation["requestBody"] = {
                "content": {
                    kind: {"schema": {"type": ["object", "array"]}}
                    for kind in ("application/json", "application/x-yaml", "application/x-www-form-urlencoded")
                }
            }
        paths.setdefault(path, {})[verb] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Saltern", "version": "1", "description": "Salt's REST API (rest_cherrypy)"},
        "servers": [{"url": settings.root_prefix or "/"}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "session_id"},
            }
        },
    }


def page(settings: ApiSettings) -> str:
    """Return the description of the API as an HTML page."""
    rows = "".join(
        f"<tr><td><code>{verb.upper()} {escape(settings.root_prefix + path)}</code></td><td>{escape(summary)}</td>"
        f"<td>{'yes' if session else ''}</td><td>{', '.join(map(str, statuses))}</td></tr>"
        for verb, path, session, summary, statuses in _ROWS
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Saltern's API</title>"
        "<style>body{font:16px/1.5 system-ui;margin:2em auto;max-width:70em;padding:0 1em}td,th{text-align:left;"
        "padding:.2em 1em .2em 0;vertical-align:top}:root{color-scheme:light dark}</style>"
        "<h1>Saltern's API</h1><p>Salt's <code>rest_cherrypy</code>. For programs: "
        f'<a href="{escape(settings.root_prefix)}/openapi.json">openapi.json</a></p>'
        f"<table><tr><th>Request</th><th></th><th>Session</th><th>Status</th></tr>{rows}</table>"
    )
