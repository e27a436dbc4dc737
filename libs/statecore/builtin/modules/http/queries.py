"""``http.query``: send one HTTP request and return the parts of its response that the caller wants.

As in Salt, a refusal or a missing response of the server is returned as ``error``. Wrong arguments raise
InvocationError. Salt: salt/utils/http.py.
"""

from __future__ import annotations

import email.message
import json
import time
import urllib.parse
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from statecore.builtin.modules.http.bodies import Body, body, headers_of
from statecore.builtin.modules.http.cookies import cookie_file
from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model import yaml
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.sources import http
from statecore.sources.http import Answer, Exchange

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

AGENT = "Saltern http.query()"

#: Replacement for secret values in errors.
HIDDEN = "XXXXXXXXXX"

#: Default seconds between two requests of ``wait_for_successful_query``.
INTERVAL = 1.0

_FORMS = ("json", "xml", "yaml", "plain")

#: Arguments of Salt's function that need Python objects of the caller. A job cannot carry them, so they are refused.
_OBJECTS = ("stream", "streaming_callback", "header_callback", "handle")


def query(
    ctx: Context,
    url: str,
    method: str = "GET",
    params: Mapping[str, object] | None = None,
    data: object = None,
    data_file: str | None = None,
    header_dict: Mapping[str, object] | None = None,
    header_list: Sequence[str] | None = None,
    header_file: str | None = None,
    username: str | None = None,
    password: str | None = None,
    auth: Sequence[str] | None = None,
    decode: bool = False,
    decode_type: str = "auto",
    status: bool = False,
    headers: bool = False,
    text: bool = False,
    cookies: object = None,
    cookie_jar: str | None = None,
    cookie_format: str = "lwp",
    persist_session: bool = False,
    session_cookie_jar: str | None = None,
    data_render: bool = False,
    data_renderer: str | None = None,
    header_render: bool = False,
    header_renderer: str | None = None,
    template_dict: Mapping[str, object] | None = None,
    test: bool = False,
    test_url: str | None = None,
    node: str = "minion",
    port: int | None = None,
    opts: Mapping[str, object] | None = None,
    backend: str | None = None,
    ca_bundle: str | None = None,
    verify_ssl: bool | None = None,
    cert: object = None,
    text_out: str | None = None,
    headers_out: str | None = None,
    decode_out: str | None = None,
    stream: bool = False,
    streaming_callback: object = None,
    header_callback: object = None,
    handle: bool = False,
    agent: str = AGENT,
    hide_fields: Sequence[str] | None = None,
    raise_error: bool = True,
    formdata: bool = False,
    formdata_fieldname: str | None = None,
    formdata_filename: str | None = None,
    decode_body: bool = True,
    **kwargs: object,
) -> dict[str, object]:
    """Send an HTTP request. Return a map with ``body``, the parts of the response that the arguments name, and
    ``error`` if the request failed.

    params
        map of query parameters to append to the URL
    data, data_file
        body of the request: text or a map of form fields; or a file (a path or ``salt://``) that holds the body
    header_dict, header_list, header_file
        headers: a map, a list of ``Name: value``, or a file with either
    data_render, header_render
        True: render ``data_file`` or ``header_file`` as a template
    data_renderer, header_renderer, template_dict
        the template's render pipe (default: the option ``renderer``), and the map of its variables
    username, password, auth
        login; ``auth`` is a list of name and password
    status, headers, text
        True: return the status code, the headers, or the body also as ``text``
    decode, decode_type
        True: return the body parsed as ``dict``; the type is auto, json, yaml, xml or plain
    cookies, cookie_jar, cookie_format
        if ``cookies`` is given, keep cookies in the file ``cookie_jar`` (format lwp or mozilla)
    persist_session, session_cookie_jar
        True: keep session cookies too, in the file ``session_cookie_jar``
    text_out, headers_out, decode_out
        files of the host that the body, the headers or the decoded body is written to
    ca_bundle, verify_ssl, cert
        file of trusted authorities; False: do not verify the server; client certificate, or [certificate, key]
    formdata, formdata_fieldname, formdata_filename
        True: send the body as a file of a multipart form, with this field and file name
    raise_error
        False: treat an error response like any other response
    hide_fields
        names of fields whose values are hidden in errors
    port
        port of the server, if the URL has none
    test, test_url
        with ``test``, send nothing, or request ``test_url`` instead of ``url``
    opts
        map of minion options that replace the configured ones: http_connect_timeout and http_request_timeout (seconds),
        http_max_body (bytes), proxy_host, ...
    decode_body
        False: return the body as bytes

    CLI Example:

        salt '*' http.query https://example.com/ status=True
        salt '*' http.query https://example.com/hook method=POST data='{"ready": true}'
    """
    _known(kwargs, ("request_interval",))
    _supported(
        node=node != "minion",
        backend=backend not in (None, "tornado", "requests", "urllib2"),
        **dict(zip(_OBJECTS, map(bool, (stream, streaming_callback, header_callback, handle)), strict=True)),
    )
    if decode and decode_type not in ("auto", *_FORMS):
        return {"error": f"Invalid decode_type specified. Valid decode types are: {_FORMS!r}"}
    if formdata and not formdata_fieldname:
        return {"error": "formdata_fieldname is required when formdata=True"}
    if test and test_url is None:
        return {}
    options = {**ctx.opts, **(opts or {})}
    address = _address(test_url if test and test_url else url, params, port)
    made = body(
        ctx,
        Body(data, data_file, data_render, data_renderer, template_dict),
        form=(str(formdata_fieldname), formdata_filename) if formdata else None,
    )
    given = headers_of(
        ctx, header_dict, header_list, Body(None, header_file, header_render, header_renderer, template_dict)
    )
    jar = cookie_file(
        ctx,
        kept=(cookie_jar, cookie_format) if cookies is not None else None,
        session=session_cookie_jar or "" if persist_session else None,
    )
    asked = Exchange(
        url=address,
        method=str(method),
        headers={"User-agent": str(agent), **made.headers, **given},
        body=made.data,
        login=_login(username, password, auth),
        **_trust(ctx, options, ca_bundle, verify_ssl, cert),
        **_limits(options),
        proxy=_proxy(options, address),
        cookies=jar.jar if jar else None,
    )
    try:
        answer = http.exchange(asked)
    except http.TimedOut as error:
        return {"status": http.TIMED_OUT, "error": f"HTTP {http.TIMED_OUT}: {error}"}
    except CommandError as error:
        return ({"status": 0} if status else {}) | {"error": _hidden(str(error), params, data, hide_fields)}
    if jar:
        jar.save()
    wanted = _Wanted(status, headers, text, decode_type if decode else None, decode_body, raise_error)
    files = _Files(text_out, headers_out, decode_out)
    return ({"test": True} if test else {}) | _parts(ctx, wanted, files, answer, address)


class _Wanted(NamedTuple):
    """The parts of a response that the caller of ``http.query`` wants, beside ``body``."""

    status: bool
    headers: bool
    text: bool
    #: The type of the body that is returned parsed: auto, json, yaml, xml or plain; None: it is not parsed.
    decode_type: str | None
    #: False: the body is returned as bytes.
    decode_body: bool
    #: True: of an error response, only status, error and body are returned.
    raise_error: bool


class _Files(NamedTuple):
    """Paths of the host to which parts of a response are written; None: not written."""

    text: str | None
    headers: str | None
    decoded: str | None


def _parts(ctx: Context, wanted: _Wanted, files: _Files, answer: Answer, address: str) -> dict[str, object]:
    """Return the wanted parts of a response as the map of ``http.query``, and write its files. ``address`` is the URL of
    the request, for errors.
    """
    plain = _text(answer) if wanted.decode_body else answer.body
    if wanted.raise_error and not 200 <= answer.status < 300:
        return {"status": answer.status, "error": f"HTTP {answer.status}: {answer.reason}", "body": plain}
    result: dict[str, object] = {"body": plain}
    _put(ctx, files.text, answer.body)
    _put(ctx, files.headers, "".join(f"{key}: {value}\n" for key, value in answer.headers.items()).encode())
    if wanted.status:
        result["status"] = answer.status
    if wanted.headers:
        result["headers"] = dict(answer.headers)
    text = wanted.text
    if wanted.decode_type is not None:
        form = _form(answer) if wanted.decode_type == "auto" else wanted.decode_type
        if form != "plain":
            result["dict"] = _decoded(form, _text(answer), address)
        text = text or form == "plain"
        _put(ctx, files.decoded, answer.body)
    return result | ({"text": plain} if text else {})


def wait_for_successful_query(
    ctx: Context, url: str, wait_for: float = 300, request_interval: float = INTERVAL, **kwargs: Any
) -> dict[str, object]:
    """Repeat an HTTP request until it succeeds. Return the map of the last request, as ``http.query`` does; it has the
    key ``error`` if the time was over first.

    wait_for
        seconds after which no further request is sent
    request_interval
        seconds between two requests

    CLI Example:

        salt '*' http.wait_for_successful_query https://example.com/ wait_for=160 request_interval=1
    """
    end = time.monotonic() + _seconds("wait_for", wait_for)
    pause = _seconds("request_interval", request_interval)
    while True:
        result = query(ctx, url, **kwargs)
        if "error" not in result or time.monotonic() + pause > end:
            return result
        time.sleep(pause)


def _seconds(name: str, value: object) -> float:
    """Convert a number of seconds to float. Raise InvocationError for anything that is not a finite number of at least
    0.
    """
    try:
        number = float(str(value))
    except (TypeError, ValueError):
        number = -1.0
    if isinstance(value, bool) or not 0 <= number < float("inf"):
        raise InvocationError(f"{name} is a number of seconds, not {value!r}")
    return number


def _hidden(text: str, params: object, data: object, fields: Sequence[str] | None) -> str:
    """Return a text in which the values of the given request fields are replaced by ``HIDDEN``."""
    for field in fields or ():
        for given in (params, data):
            value = str(given.get(field) or "") if isinstance(given, Mapping) else ""
            for form in (value, urllib.parse.quote(value), urllib.parse.quote_plus(value)) if value else ():
                text = text.replace(form, HIDDEN)
    return text


def _known(kwargs: Mapping[str, object], more: Sequence[str]) -> None:
    # Publications add arguments such as __pub_jid, which are ignored.
    if unknown := [name for name in kwargs if name not in more and not name.startswith("__")]:
        raise InvocationError(f"http.query takes no argument {', '.join(sorted(unknown))}")


def _supported(**given: bool) -> None:
    if refused := [name for name, is_given in given.items() if is_given]:
        raise InvocationError(f"not supported: {', '.join(refused)}")


def _address(url: object, params: object, port: int | str | None) -> str:
    if not isinstance(url, str):
        raise InvocationError(f"url is a text, not {url!r}")
    if params is not None and not isinstance(params, Mapping):
        raise InvocationError(f"params is a map, not {params!r}")
    parts = urllib.parse.urlsplit(url)
    try:
        if port and parts.port is None:
            parts = parts._replace(netloc=f"{parts.netloc}:{int(port)}")
    except (TypeError, ValueError) as error:
        raise InvocationError(f"port: {error}") from error
    added = urllib.parse.urlencode(dict(params or {}), doseq=True)
    joined = "&".join(part for part in (parts.query, added) if part)
    return urllib.parse.urlunsplit(parts._replace(query=joined)) if added or port else url


def _login(username: object, password: object, auth: object) -> tuple[str, str] | None:
    if auth is not None:
        if not (isinstance(auth, Sequence) and len(auth) == 2 and not isinstance(auth, str)):
            raise InvocationError("auth is a name and a password: [name, password]")
        return str(auth[0]), str(auth[1])
    return (str(username), str(password or "")) if username else None


class _Trust(TypedDict):
    """Fields of Exchange: how the server is verified, and the client's certificate."""

    verify_ssl: bool
    ca_bundle: Path | None
    cert: list[Path]


def _trust(
    ctx: Context, options: Mapping[str, Any], ca_bundle: str | None, verify_ssl: bool | None, cert: object
) -> _Trust:
    """Return how a server is verified: by the arguments of ``http.query``, else by the minion's options."""
    return {
        "verify_ssl": bool(options.get("verify_ssl", True) if verify_ssl is None else verify_ssl),
        "ca_bundle": _host_file(ctx, "ca_bundle", ca_bundle or options.get("ca_bundle")),
        "cert": [path for each in _pair(cert or options.get("cert")) if (path := _host_file(ctx, "cert", each))],
    }


class _Limits(TypedDict):
    """Fields of Exchange: seconds and bytes after which a request is given up."""

    connect_timeout: float
    timeout: float
    limit: int


def _limits(options: Mapping[str, Any]) -> _Limits:
    return {
        "connect_timeout": float(options.get("http_connect_timeout") or 20),
        "timeout": float(options.get("http_request_timeout") or 3600),
        "limit": int(options.get("http_max_body") or 100 * 1024**3),
    }


def _pair(cert: object) -> list[str]:
    if cert is None:
        return []
    names = [cert] if isinstance(cert, str) else list(cert) if isinstance(cert, list | tuple) else []
    if len(names) not in (1, 2) or not all(isinstance(each, str) for each in names):
        raise InvocationError(f"cert is a path, or [certificate, key], not {cert!r}")
    return names


def _host_file(ctx: Context, argument: str, name: object) -> Path | None:
    if name is None:
        return None
    path = ctx.host.path(str(name))
    if not path.is_file():
        raise InvocationError(f"{argument}: there is no file {name}")
    return path


def _proxy(options: Mapping[str, object], address: str) -> str | None:
    """Return the URL of the proxy for a request to ``address``: "" for no proxy, None to use the environment
    variables.
    """
    host, port = options.get("proxy_host"), options.get("proxy_port")
    if not (host and port):
        return None
    bypassed = options.get("no_proxy")
    if isinstance(bypassed, Container) and urllib.parse.urlsplit(address).hostname in bypassed:
        return ""
    user, password = options.get("proxy_username"), options.get("proxy_password")
    quoted = [urllib.parse.quote(str(each), safe="") for each in (user, password)] if user and password else []
    return f"http://{':'.join(quoted)}{'@' if quoted else ''}{host}:{port}"


def _text(answer: Answer) -> str:
    message = email.message.Message()
    message["Content-Type"] = answer.header("Content-Type")
    named = message.get_content_charset() if message.get_content_maintype() == "text" else None
    try:
        return answer.body.decode(named or "utf-8")
    except (LookupError, UnicodeDecodeError) as error:
        raise CommandError(f"the response is not text ({error}); decode_body=False returns its bytes") from error


def _form(answer: Answer) -> str:
    kind = answer.header("Content-Type", "application/json")
    return next((form for form in ("xml", "json", "yaml") if form in kind), "plain")


def _decoded(form: str, text: str, address: str) -> object:
    # Imported here because few requests need XML.
    from xml.etree import ElementTree

    try:
        if form == "json":
            return json.loads(text)
        if form == "yaml":
            return yaml.load(text)
        return [_element(item) for item in ElementTree.fromstring(text)]
    except (ValueError, yaml.YamlFault, ElementTree.ParseError) as error:
        server = urllib.parse.urlsplit(address).hostname
        raise CommandError(f"the answer of {server} is not {form}: {error}") from error


def _element(tree: Element) -> dict[str, object]:
    """Convert an XML element to a map as Salt does: {tag: text}, or {tag: children}. A tag that occurs several times
    has a list.
    """
    name = tree.tag.rpartition("}")[2]
    if not len(tree):
        return {name: tree.text}
    found: dict[str, object] = {}
    for item in tree:
        key = item.tag.rpartition("}")[2]
        if key not in found:
            found[key] = _element(item) if len(item) else item.text
            continue
        known = found[key]
        found[key] = [*(known if isinstance(known, list) else [known]), _element(item)]
    return found


def _put(ctx: Context, name: str | None, data: bytes) -> None:
    if name is not None:
        managed_file.replace(ctx.host, ctx.host.path(name), data, Attributes())
