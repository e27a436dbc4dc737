"""``http.query``: one request, and of its answer what the caller wants to have. Salt: utils/http.py.

A server that refuses, or does not answer, is told in the return (``error``), as Salt has it; a call that makes no sense raises.
"""

from __future__ import annotations

import email.message
import json
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from statecore.builtin.modules.http.bodies import Body, body, headers_of
from statecore.builtin.modules.http.cookies import cookie_file
from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.sources import http
from statecore.sources.http import Answer, Exchange

AGENT = "Saltern http.query()"

#: What a secret is in logs and errors.
HIDDEN = "XXXXXXXXXX"

#: Seconds between two requests of ``wait_for_successful_query`` when nothing else is said.
INTERVAL = 1.0

_FORMS = ("json", "xml", "yaml", "plain")

#: Objects of Python that the caller would have to hand over or to take: nothing that comes over the wire.
_OBJECTS = ("stream", "streaming_callback", "header_callback", "handle")


def query(
    ctx: Context,
    url: str,
    method: str = "GET",
    params: Mapping[str, Any] | None = None,
    data: Any = None,
    data_file: str | None = None,
    header_dict: Mapping[str, Any] | None = None,
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
    cookies: Any = None,
    cookie_jar: str | None = None,
    cookie_format: str = "lwp",
    persist_session: bool = False,
    session_cookie_jar: str | None = None,
    data_render: bool = False,
    data_renderer: str | None = None,
    header_render: bool = False,
    header_renderer: str | None = None,
    template_dict: Mapping[str, Any] | None = None,
    test: bool = False,
    test_url: str | None = None,
    node: str = "minion",
    port: int | None = None,
    opts: Mapping[str, Any] | None = None,
    backend: str | None = None,
    ca_bundle: str | None = None,
    verify_ssl: bool | None = None,
    cert: Any = None,
    text_out: str | None = None,
    headers_out: str | None = None,
    decode_out: str | None = None,
    stream: bool = False,
    streaming_callback: Any = None,
    header_callback: Any = None,
    handle: bool = False,
    agent: str = AGENT,
    hide_fields: Sequence[str] | None = None,
    raise_error: bool = True,
    formdata: bool = False,
    formdata_fieldname: str | None = None,
    formdata_filename: str | None = None,
    decode_body: bool = True,
    **kwargs: Any,
) -> dict[str, Any]:
    """Asks a server. ``body`` and what is wanted of ``status``, ``headers``, ``text``, ``dict``; ``error`` where it refuses.

    params, data, data_file
        what is put behind the URL; the body as text, or as a map of fields; a file (or salt://) that holds it
    header_dict, header_list, header_file
        headers as a map, as ``Name: value``, or a file of either
    data_render, data_renderer, header_render, header_renderer, template_dict
        the file is a template, rendered by this pipe with these values
    username, password, auth
        a login; ``auth`` is both
    decode, decode_type, decode_out
        ``dict`` is the body as data: auto, json, yaml, xml or plain; a file of the host to keep the text in
    cookies, cookie_jar, cookie_format, persist_session, session_cookie_jar
        cookies are kept in this file (lwp or mozilla); those of a session, too, in another
    text_out, headers_out
        files of the host that get the text, or the headers
    ca_bundle, verify_ssl, cert
        authorities that are believed; whether they are asked; our own certificate, or [certificate, key]
    formdata, formdata_fieldname, formdata_filename
        the body is sent as a file of a form
    raise_error
        False: an answer that is an error is returned as any other
    hide_fields
        fields whose values are nobody's business: not in errors, not in logs
    test, test_url
        asks nothing, or this in place of ``url``
    opts
        values for options of the minion: http_connect_timeout, http_request_timeout, http_max_body, proxy_host, ...

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
        verify_ssl=bool(options.get("verify_ssl", True) if verify_ssl is None else verify_ssl),
        ca_bundle=_host_file(ctx, "ca_bundle", ca_bundle or options.get("ca_bundle")),
        cert=[path for each in _pair(cert or options.get("cert")) if (path := _host_file(ctx, "cert", each))],
        proxy=_proxy(options, address),
        connect_timeout=float(options.get("http_connect_timeout") or 20),
        timeout=float(options.get("http_request_timeout") or 3600),
        limit=int(options.get("http_max_body") or 100 * 1024**3),
        cookies=jar.jar if jar else None,
    )
    told: dict[str, Any] = {"test": True} if test else {}
    try:
        answer = http.exchange(asked)
    except http.TimedOut as error:
        return {"status": http.TIMED_OUT, "error": f"HTTP {http.TIMED_OUT}: {error}"}
    except CommandError as error:
        return ({"status": 0} if status else {}) | {"error": _hidden(str(error), params, data, hide_fields)}
    if jar:
        jar.save()
    plain = _text(answer) if decode_body else answer.body
    if raise_error and not 200 <= answer.status < 300:
        return told | {"status": answer.status, "error": f"HTTP {answer.status}: {answer.reason}", "body": plain}
    told["body"] = plain
    _put(ctx, text_out, answer.body)
    _put(ctx, headers_out, "".join(f"{key}: {value}\n" for key, value in answer.headers.items()).encode())
    if status:
        told["status"] = answer.status
    if headers:
        told["headers"] = dict(answer.headers)
    if decode:
        form = _form(answer) if decode_type == "auto" else decode_type
        if form != "plain":
            told["dict"] = _decoded(form, _text(answer), address)
        text = text or form == "plain"
        _put(ctx, decode_out, answer.body)
    return told | ({"text": plain} if text else {})


def wait_for_successful_query(
    ctx: Context, url: str, wait_for: float = 300, request_interval: float = INTERVAL, **kwargs: Any
) -> dict[str, Any]:
    """Asks until the server answers without an error, for so many seconds; the last answer.

    CLI Example:

        salt '*' http.wait_for_successful_query https://example.com/ wait_for=160 request_interval=1
    """
    end = time.monotonic() + _seconds("wait_for", wait_for)
    pause = _seconds("request_interval", request_interval)
    while True:
        told = query(ctx, url, **kwargs)
        if "error" not in told or time.monotonic() + pause > end:
            return told
        time.sleep(pause)


def _seconds(name: str, value: Any) -> float:
    """A length of time. Raises InvocationError."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if isinstance(value, bool) or not 0 <= number < float("inf"):
        raise InvocationError(f"{name} is a number of seconds, not {value!r}")
    return number


def _hidden(text: str, params: Any, data: Any, fields: Sequence[str] | None) -> str:
    """A text without the values of these fields."""
    for field in fields or ():
        for given in (params, data):
            value = str(given.get(field) or "") if isinstance(given, Mapping) else ""
            for form in (value, urllib.parse.quote(value), urllib.parse.quote_plus(value)) if value else ():
                text = text.replace(form, HIDDEN)
    return text


def _known(kwargs: Mapping[str, Any], more: Sequence[str]) -> None:
    # Publications bring their own (__pub_jid, ...).
    if unknown := [name for name in kwargs if name not in more and not name.startswith("__")]:
        raise InvocationError(f"http.query takes no argument {', '.join(sorted(unknown))}")


def _supported(**given: bool) -> None:
    if refused := [name for name, is_given in given.items() if is_given]:
        raise InvocationError(f"not supported: {', '.join(refused)}")


def _address(url: Any, params: Any, port: Any) -> str:
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


def _login(username: Any, password: Any, auth: Any) -> tuple[str, str] | None:
    if auth is not None:
        if not (isinstance(auth, Sequence) and len(auth) == 2 and not isinstance(auth, str)):
            raise InvocationError("auth is a name and a password: [name, password]")
        return str(auth[0]), str(auth[1])
    return (str(username), str(password or "")) if username else None


def _pair(cert: Any) -> list[str]:
    if cert is None:
        return []
    names = [cert] if isinstance(cert, str) else list(cert) if isinstance(cert, list | tuple) else []
    if len(names) not in (1, 2) or not all(isinstance(each, str) for each in names):
        raise InvocationError(f"cert is a path, or [certificate, key], not {cert!r}")
    return names


def _host_file(ctx: Context, argument: str, name: Any) -> Any:
    if name is None:
        return None
    path = ctx.host.path(str(name))
    if not path.is_file():
        raise InvocationError(f"{argument}: there is no file {name}")
    return path


def _proxy(options: Mapping[str, Any], address: str) -> str | None:
    """URL of the proxy, "" for none, None for what the environment says."""
    host, port = options.get("proxy_host"), options.get("proxy_port")
    if not (host and port):
        return None
    if urllib.parse.urlsplit(address).hostname in (options.get("no_proxy") or ()):
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
        raise CommandError(f"the answer is no text ({error}); decode_body=False returns it as it is") from error


def _form(answer: Answer) -> str:
    kind = answer.header("Content-Type", "application/json")
    return next((form for form in ("xml", "json", "yaml") if form in kind), "plain")


def _decoded(form: str, text: str, address: str) -> Any:
    # Late: few requests want XML.
    from xml.etree import ElementTree

    try:
        if form == "json":
            return json.loads(text)
        if form == "yaml":
            return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return [_element(item) for item in ElementTree.fromstring(text)]
    except (ValueError, yaml.YAMLError, ElementTree.ParseError) as error:
        server = urllib.parse.urlsplit(address).hostname
        raise CommandError(f"the answer of {server} is not {form}: {error}") from error


def _element(tree: Any) -> dict[str, Any]:
    """An element as Salt shows it: its children by their names, its text where it has none; a name that comes twice has a list."""
    name = tree.tag.rpartition("}")[2]
    if not len(tree):
        return {name: tree.text}
    found: dict[str, Any] = {}
    for item in tree:
        key = item.tag.rpartition("}")[2]
        if key not in found:
            found[key] = _element(item) if len(item) else item.text
            continue
        if not isinstance(found[key], list):
            found[key] = [found[key]]
        found[key].append(_element(item))
    return found


def _put(ctx: Context, name: str | None, data: bytes) -> None:
    if name is not None:
        managed_file.replace(ctx.host, ctx.host.path(name), data, Attributes())
