"""The settings of the API: the map ``rest_cherrypy`` of the master's options, with Salt's names and defaults."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saltern.kit.config import value_types
from saltern.kit.config.master import ConfigError
from saltern.kit.config.option_fields import Values, option
from statecore.model.nearest import close_matches

#: Settings of CherryPy and of Salt's server that have no effect here.
_WITHOUT_EFFECT = frozenset(
    {
        *("thread_pool", "queue_size", "socket_queue_size", "expire_responses", "collect_stats", "log_access_file"),
        *("log_error_file", "log.access_file", "log.error_file", "enable_sessions", "ssl_keylog"),
    }
)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ApiSettings(Values):
    """The settings of one API server, each with its documentation."""

    host: str = option("0.0.0.0", "address on which the API listens")
    port: int = option(8000, "port on which the API listens")
    ssl_crt: str = option("", "file of the TLS certificate, PEM")
    ssl_key: str = option("", "file of the certificate's private key, PEM")
    ssl_chain: str = option("", "file of further certificates of the chain; they may also follow in ssl_crt")
    disable_ssl: bool = option(False, "serve plain HTTP: behind a front that speaks TLS, or in a lab")
    debug: bool = option(False, "answers with status 500 say what failed")
    static: str = option("", "directory whose files are served below static_path, without a login")
    static_path: str = option("/static", "path of these files")
    app: str = option("", "HTML file that is served at app_path and for requests that ask for text/html")
    app_path: str = option("/app", "path of that file; whatever follows in the path is ignored")
    console: bool = option(True, "serve Saltern's own page at /console")
    favicon: str = option("", "file that is served at /favicon.ico")
    root_prefix: str = option("", "path before all others, as in /salt; empty: none")
    webhook_url: str = option("/hook", "path of webhooks")
    webhook_disable_auth: bool = option(False, "webhooks need no login: whoever reaches the API can fire these events")
    stats_disable_auth: bool = option(False, "/stats needs no login")
    max_request_body_size: int = option(1048576, "largest body of a request in bytes")
    max_header_bytes: int = option(32768, "largest line of request and headers in bytes")
    body_seconds: int = option(30, "seconds in which a request's headers, and then its body, must arrive")
    max_connections: int = option(2000, "largest number of open connections; further ones are closed at once")
    max_connections_of_address: int = option(
        200, "largest number of open connections of one address; further ones are closed at once; 0: unlimited"
    )
    event_queue: int = option(
        1000, "events that wait for one listener; the stream of a slower listener ends, and it resumes by Last-Event-ID"
    )
    event_write_seconds: int = option(
        30, "seconds for which a client may read nothing, while data waits for it, before its connection ends"
    )
    cors_origin: list[str] = option(
        [],
        "origins (https://host) whose pages may use a user's cookie; pages of all others may use the API with a token, and "
        "no cookie",
    )
    trusted_proxies: list[str] = option(
        [],
        "addresses or networks of the fronts (proxies) before the API: it takes a client's address and scheme from their"
        " X-Forwarded-For and X-Forwarded-Proto. Name the fronts alone: whoever has one of these addresses may send as any client",
    )
    authorized_ips: list[str] = option([], "addresses that may use the API; empty: all")
    api_acl: dict[str, Any] = option({}, "users: user, or * -> addresses, or *: from where users may log in")


def read_settings(given: Mapping[str, object]) -> tuple[ApiSettings, list[str]]:
    """Read the option ``rest_cherrypy``. Return (ApiSettings, sentences about settings that have no effect). Raises
    ConfigError with all errors.
    """
    hints = typing.get_type_hints(ApiSettings)
    names = {field.name for field in dataclasses.fields(ApiSettings)}
    values: dict[str, Any] = {}
    notes: list[str] = []
    errors: list[str] = []
    for name, value in given.items():
        if name in _WITHOUT_EFFECT:
            notes.append(f"rest_cherrypy: {name} has no effect here")
        elif name not in names:
            near = close_matches(name, sorted(names), n=1)
            notes.append(
                f"rest_cherrypy: there is no setting '{name}'" + (f"; the nearest is '{near[0]}'" if near else "")
            )
        elif isinstance(value, str) and typing.get_origin(hints[name]) is list:
            values[name] = [value]
        else:
            try:
                values[name] = (
                    value if value_types.fits(value, hints[name]) else value_types.coerced(value, hints[name])
                )
            except ValueError:
                errors.append(f"rest_cherrypy: {name} must be {value_types.named(hints[name])}, not {value!r}")
    settings = ApiSettings(**values)
    errors += _faults(settings)
    if errors:
        raise ConfigError("\n".join(errors))
    return settings, notes


def _faults(settings: ApiSettings) -> list[str]:
    faults = []
    if not settings.disable_ssl and not (settings.ssl_crt and settings.ssl_key):
        faults.append("rest_cherrypy: name ssl_crt and ssl_key, or set disable_ssl behind a front that speaks TLS")
    files = ("ssl_crt", "ssl_key", "ssl_chain", "app", "favicon")
    for name in files if not settings.disable_ssl else files[3:]:
        path = getattr(settings, name)
        if path and not Path(path).is_file():
            faults.append(f"rest_cherrypy: {name}: {path}: no such file")
    if settings.static and not Path(settings.static).is_dir():
        faults.append(f"rest_cherrypy: static: {settings.static}: no such directory")
    for name in ("app_path", "static_path", "webhook_url", "root_prefix"):
        path = getattr(settings, name)
        if path and not path.startswith("/"):
            object.__setattr__(settings, name, f"/{path}")
    if settings.root_prefix.endswith("/"):
        object.__setattr__(settings, "root_prefix", settings.root_prefix.rstrip("/"))
    return faults
