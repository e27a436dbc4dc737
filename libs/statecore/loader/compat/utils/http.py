"""``salt.utils.http`` for users' modules: one HTTP request. Unlike in Salt, proxies are taken from environment
variables only.
"""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping

from statecore.loader.compat.utils import yaml as _yaml
from statecore.model.errors import InvocationError

#: Default time limit of a request, in seconds.
_TIMEOUT = 30.0


def query(
    url: str,
    method: str = "GET",
    params: Mapping[str, object] | None = None,
    data: bytes | str | Mapping[str, object] | None = None,
    header_dict: Mapping[str, str] | None = None,
    header_list: Iterable[str] | None = None,
    username: str | None = None,
    password: str | None = None,
    decode: bool = False,
    decode_type: str = "auto",
    status: bool = False,
    headers: bool = False,
    text: bool = False,
    verify_ssl: bool | None = None,
    ca_bundle: str | None = None,
    raise_error: bool = True,
    decode_body: bool = True,
    opts: Mapping[str, object] | None = None,
    backend: str | None = None,
    timeout: float | None = None,
    **kwargs: object,
) -> dict[str, object]:
    """Send one HTTP request and return {"body": text}; with ``decode`` {"dict": data}, with ``text`` {"text": text}.

    ``status`` and ``headers`` add the keys of the same names. ``timeout`` is in seconds (default 30). A failed request
    returns {"error": reason}, with ``status`` if the server sent one. Raise InvocationError for unsupported arguments.
    """
    if kwargs:
        raise InvocationError(f"salt.utils.http.query: not supported: {', '.join(sorted(kwargs))}")
    if not url.lower().startswith(("http://", "https://")):
        return {"error": f"{url} is not a URL with http:// or https://"}
    if params:
        url += ("&" if "?" in url else "?") + urllib.parse.urlencode(params)
    body = data if isinstance(data, bytes | None) else _body(data)
    request = urllib.request.Request(url, data=body, method=method.upper())
    for name, value in _headers(header_dict, header_list):
        request.add_header(name, value)
    if username is not None:
        secret = base64.b64encode(f"{username}:{password or ''}".encode()).decode()
        request.add_header("Authorization", f"Basic {secret}")
    try:
        with urllib.request.urlopen(
            request, timeout=timeout or _TIMEOUT, context=_trust(url, verify_ssl, ca_bundle)
        ) as answer:
            content, code, given = answer.read(), answer.status, dict(answer.headers)
    except urllib.error.HTTPError as error:
        content, code, given = error.read(), error.code, dict(error.headers)
        if raise_error:
            failed: dict[str, object] = {"error": f"HTTP {code}: {error.reason}", "status": code}
            return failed | ({"body": content.decode("utf-8", "replace")} if content else {})
    except (OSError, ValueError) as error:
        return {"error": str(getattr(error, "reason", None) or error)}
    shown = content.decode("utf-8", "replace") if decode_body else content
    found: dict[str, object] = {}
    if status:
        found["status"] = code
    if headers:
        found["headers"] = given
    if decode:
        found["dict"] = _decoded(content, decode_type, given)
        if text:
            found["text"] = shown
    else:
        found["text" if text else "body"] = shown
    return found


def _body(data: str | Mapping[str, object]) -> bytes:
    return data.encode() if isinstance(data, str) else urllib.parse.urlencode(data).encode()


def _headers(named: Mapping[str, str] | None, lines: Iterable[str] | None) -> Iterable[tuple[str, str]]:
    yield from (named or {}).items()
    for line in lines or ():
        name, _, value = line.partition(":")
        yield name.strip(), value.strip()


def _trust(url: str, verify: bool | None, ca_bundle: str | None) -> ssl.SSLContext | None:
    if not url.lower().startswith("https://"):
        return None
    context = ssl.create_default_context(cafile=ca_bundle)
    if verify is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _decoded(content: bytes, kind: str, headers: Mapping[str, str]) -> object:
    if kind == "auto":
        declared = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
        kind = next((each for each in ("json", "yaml") if each in declared), "plain")
    text = content.decode("utf-8", "replace")
    return json.loads(text) if kind == "json" else _yaml.safe_load(text) if kind == "yaml" else text
