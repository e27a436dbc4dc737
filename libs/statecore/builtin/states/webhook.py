"""Notifications by webhook: tell another service that something changed. Salt 3008 has no such state.

    tell the team:
      webhook.notified:
        - url: {{ pillar['team_hook'] }}
        - message: the web server of {{ grains['id'] }} has a new configuration
        - onchanges:
          - file: /etc/nginx/nginx.conf

The URL of a webhook is a secret. It appears in no log, comment or change, and therefore is not the state's name.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Outcome, Plan, Step
from statecore.model.values import to_int

#: Status codes after which the request is repeated: busy or temporary errors. 0 and 599: no answer.
_AGAIN = frozenset({0, 408, 425, 429, 500, 502, 503, 504, 599})

#: Longest pause between two attempts, in seconds.
_LONGEST_PAUSE = 60.0

#: Key in ``ctx.scratch`` of the digests of notifications sent in this run.
_SENT = "webhook.sent"

_HIDDEN = "***"


def notified(
    ctx: Context,
    name: str,
    url: str | None = None,
    message: str | None = None,
    payload: object = None,
    method: str = "POST",
    headers: Mapping[str, object] | None = None,
    token: str | None = None,
    secret: str | None = None,
    signature_header: str = "X-Hub-Signature-256",
    status: object = None,
    retries: int = 3,
    retry_interval: float = 1,
    timeout: float = 10,
    verify_ssl: bool | None = None,
    ca_bundle: str | None = None,
) -> Plan:
    """Send an HTTP notification to another service, at most once in a state run. Use it with ``onchanges``. It changes
    nothing on the host.

    name
        label for results; not the URL
    message
        text, sent as ``{"text": …}``, which chat services understand
    payload
        data to send in place of ``message``: text unchanged, other data as JSON
    method, headers
        method and additional headers of the request
    token
        sent as Bearer token
    secret, signature_header
        sign the body with this secret (HMAC-SHA256) and send the signature in this header, like GitHub's webhooks
    status
        status code, or list of codes, of a successful answer; default: 200 to 299
    retries
        number of further attempts if the server is busy or does not answer
    retry_interval
        seconds before the second attempt; doubled for each further attempt
    timeout
        seconds for one attempt
    verify_ssl, ca_bundle
        as in ``http.query``
    """
    try:
        call = _call(
            ctx,
            url=url,
            body=_body(name, message, payload),
            method=method,
            headers=headers,
            token=token,
            secret=secret,
            signature_header=signature_header,
            right=_statuses(status),
            retries=_number("retries", retries, whole=True),
            pause=_number("retry_interval", retry_interval),
            timeout=_number("timeout", timeout) or 10,
            more={"verify_ssl": verify_ssl, "ca_bundle": ca_bundle},
        )
    except InvocationError as error:
        return Plan.failed(str(error))
    if call.digest in ctx.scratch.get(_SENT, ()):
        return Plan.unchanged(f"{call.place} was notified in this run already")

    def send() -> Outcome:
        outcome = call.made(ctx)
        if outcome.ok:
            ctx.scratch.setdefault(_SENT, set()).add(call.digest)
        return outcome

    return Plan.change(f"{call.place} would be notified", [Step(f"notify {call.place}", send)])


def mod_watch(ctx: Context, name: str, sfun: str = "notified", **kwargs: Any) -> Plan:
    """Send the notification of ``webhook.notified``, because a watched state changed. It is not sent twice in a run."""
    return notified(ctx, name, **kwargs)


@dataclass(frozen=True, slots=True)
class _Call:
    """One HTTP notification: URL, method, body, headers and number of attempts.

    ``place`` is the part of its URL that may be shown: host and port.
    """

    url: str
    place: str
    body: str
    method: str
    headers: Mapping[str, str]
    right: frozenset[int]
    retries: int
    pause: float
    timeout: float
    more: Mapping[str, object]
    secrets: Sequence[str]

    @property
    def digest(self) -> str:
        """SHA-256 hash of URL, method and body, which identifies the HTTP notification without revealing it."""
        return hashlib.sha256(json.dumps([self.url, self.method, self.body]).encode()).hexdigest()

    def made(self, ctx: Context) -> Outcome:
        """Send the HTTP notification, and return the outcome: failed if the server did not accept it. Attempts are repeated for
        temporary errors.
        """
        pause = self.pause
        for attempt in range(self.retries + 1):
            if attempt:
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            try:
                answer = self._sent(ctx)
            except (CommandError, InvocationError) as error:
                return Outcome(f"{self.place} was not notified: {self._hidden(str(error))}", ok=False)
            found = to_int(answer.get("status") or 0)
            if found in self.right:
                return Outcome(f"{self.place} has been notified")
            if found not in _AGAIN:
                break
        why = self._hidden(str(answer.get("error") or f"it answered with {found}"))
        tries = f" ({attempt + 1} attempts)" if attempt else ""
        return Outcome(f"{self.place} was not notified{tries}: {why}", ok=False)

    def _sent(self, ctx: Context) -> Mapping[str, object]:
        limits = {"http_connect_timeout": self.timeout, "http_request_timeout": self.timeout}
        answer: Mapping[str, object] = ctx.call(
            "http.query",
            self.url,
            method=self.method,
            data=self.body,
            header_dict=dict(self.headers),
            status=True,
            decode_body=False,
            opts=limits,
            agent="Saltern webhook",
            **{key: value for key, value in self.more.items() if value is not None},
        )
        return answer

    def _hidden(self, text: str) -> str:
        for secret in self.secrets:
            for form in (secret, urllib.parse.quote(secret), urllib.parse.unquote(secret)) if secret else ():
                text = text.replace(form, _HIDDEN)
        return text


def _call(
    ctx: Context,
    *,
    url: object,
    body: str,
    method: object,
    headers: object,
    token: object,
    secret: object,
    signature_header: object,
    right: frozenset[int],
    retries: float,
    pause: float,
    timeout: float,
    more: Mapping[str, object],
) -> _Call:
    if not url or not isinstance(url, str):
        raise InvocationError("url is required: the webhook's URL (name is only a label)")
    try:
        parts = urllib.parse.urlsplit(url)
        server, port = parts.hostname, parts.port
    except ValueError:
        server, port, parts = None, None, urllib.parse.SplitResult("", "", "", "", "")
    if parts.scheme not in ("http", "https") or not server:
        # The value is not shown: it may be a secret URL with a typo in its scheme.
        raise InvocationError("url is not an http or https URL")
    if not re.fullmatch(r"[A-Z]+", str(method)):
        raise InvocationError(f"method is POST, PUT, …, not {method!r}")
    if headers is not None and not isinstance(headers, Mapping):
        raise InvocationError("headers is a map")
    sent = {"Content-Type": "application/json" if body[:1] in "{[" else "text/plain; charset=utf-8"}
    sent |= {str(name): str(value) for name, value in (headers or {}).items()}
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    if secret is not None:
        signature = hmac.new(str(secret).encode(), body.encode(), hashlib.sha256).hexdigest()
        sent[str(signature_header)] = f"sha256={signature}"
    hidden = [url, parts.path.strip("/"), parts.query, parts.username, parts.password, token, secret]
    values = [value for name, value in sent.items() if name.lower() in ("authorization", "cookie", "x-api-key")]
    return _Call(
        url=url,
        place=f"{server}{f':{port}' if port else ''}",
        body=body,
        method=str(method),
        headers=sent,
        right=right,
        retries=int(retries),
        pause=pause,
        timeout=timeout,
        more=more,
        secrets=[str(each) for each in (*hidden, *values) if each],
    )


def _body(name: str, message: object, payload: object) -> str:
    if payload is not None and message is not None:
        raise InvocationError("message and payload exclude each other")
    if isinstance(payload, str):
        return payload
    try:
        return json.dumps({"text": str(name if message is None else message)} if payload is None else payload)
    except (TypeError, ValueError) as error:
        raise InvocationError(f"payload cannot be written as JSON: {error}") from error


def _statuses(status: object) -> frozenset[int]:
    if status is None:
        return frozenset(range(200, 300))
    listed = status if isinstance(status, list | tuple) else [status]
    try:
        return frozenset(to_int(each) for each in listed)
    except (TypeError, ValueError):
        raise InvocationError(f"status is a number, or a list of them, not {status!r}") from None


def _number(argument: str, value: object, *, whole: bool = False) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise InvocationError(f"{argument} is a number, not {value!r}")
    if whole and value != int(value):
        raise InvocationError(f"{argument} is a whole number, not {value!r}")
    return float(value)
