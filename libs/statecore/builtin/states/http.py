"""Salt's ``http`` states: check the response of an HTTP server. They change nothing on the host."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step

_TYPES: Mapping[str, Sequence[str]] = {"match_type": ("string", "pcre"), "status_type": ("string", "pcre", "list")}

#: Default number of seconds between two requests.
_INTERVAL = 1.0

#: Arguments that the states pass to ``http.query``.
_QUERY = (
    "method params data data_file header_dict header_list header_file username password auth decode decode_type "
    "status headers text cookies cookie_jar cookie_format persist_session session_cookie_jar data_render "
    "data_renderer header_render header_renderer template_dict test test_url node port opts backend ca_bundle "
    "verify_ssl cert text_out headers_out decode_out stream streaming_callback header_callback handle agent "
    "hide_fields raise_error formdata formdata_fieldname formdata_filename decode_body"
)

#: Function -> arguments that its ``**kwargs`` takes.
OPTIONS: Mapping[str, frozenset[str]] = {
    "query": frozenset({*_QUERY.split(), "request_interval"}),
    "wait_for_successful_query": frozenset({*_QUERY.split(), "match", "match_type", "status_type"}),
}


def query(
    ctx: Context,
    name: str,
    match: object = None,
    match_type: str = "string",
    status: object = None,
    status_type: str = "string",
    wait_for: float | None = None,
    **kwargs: object,
) -> Plan:
    """Send an HTTP request and check its response. The response is in ``data`` of the return.

    match, match_type
        text that the body must contain (``string``), or a regular expression (``pcre``)
    status, status_type
        expected status code (``string``), regular expression (``pcre``), or list of status codes (``list``)
    wait_for
        seconds to repeat the request while the server returns an error

    All other arguments are passed to ``http.query``.
    """
    if wrong := _wrong(match, match_type, status, status_type):
        return Plan.failed(wrong)
    asked = {"decode": False, **kwargs, "text": True, "status": True}

    def send(**more: object) -> Outcome:
        if wait_for:
            data = ctx.call("http.wait_for_successful_query", name, wait_for=wait_for, **asked, **more)
        else:
            data = ctx.call("http.query", name, **asked, **more)
        ok, comment = _verdict(data, match, match_type, status, status_type)
        return Outcome(comment, ok=ok, data=data)

    trial = "The query would be made (TEST MODE)"
    if ctx.test and kwargs.get("test_url"):
        trial = f"{send(test=True).comment} (TEST MODE, TEST URL WAS: {kwargs['test_url']})"
    return Plan.change(trial, [Step(f"query {name}", send)])


def wait_for_successful_query(
    ctx: Context, name: str, wait_for: float = 300, request_interval: float = _INTERVAL, **kwargs: Any
) -> Plan:
    """Repeat ``http.query`` until the response passes the checks, for at most ``wait_for`` seconds. The state succeeds
    if the last response passes them, and fails otherwise.

    request_interval
        seconds between two requests

    All other arguments are as in ``http.query``.
    """
    times = {"wait_for": wait_for, "request_interval": request_interval}
    for argument, value in times.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            return Plan.failed(f"{argument} is a number of seconds, not {value!r}")
    plan = query(ctx, name, **kwargs)
    if not plan.steps:
        return plan
    step = plan.steps[0]

    def until() -> Outcome:
        end = time.monotonic() + wait_for
        while True:
            outcome = step.run()
            if outcome.ok or time.monotonic() + request_interval > end:
                return outcome
            time.sleep(request_interval)

    return Plan.change(plan.comment, [Step(step.what, until)])


def _wrong(match: object, match_type: object, status: object, status_type: object) -> str | None:
    if match is None and status is None:
        return "Either match text (match) or a status code (status) is required."
    for argument, value in (("match_type", match_type), ("status_type", status_type)):
        if value not in _TYPES[argument]:
            return f"{argument} is one of {', '.join(_TYPES[argument])}, not {value!r}"
    if status_type == "list" and status is not None and not isinstance(status, list):
        return f"status is a list where status_type is list, not {status!r}"
    for argument, kind, pattern in (("match", match_type, match), ("status", status_type, status)):
        try:
            re.compile(str(pattern) if kind == "pcre" else "")
        except re.error as error:
            return f"{argument}: '{pattern}' is not a valid regular expression: {error}"
    return None


def _verdict(
    data: Mapping[str, object], match: object, match_type: str, status: object, status_type: str
) -> tuple[bool, str]:
    """Return (True if the HTTP response passes all checks, Salt's comment about each check)."""
    ok = True
    lines: list[str] = []
    if match is not None:
        text = str(data.get("text", ""))
        found = str(match) in text if match_type == "string" else bool(re.search(str(match), text))
        kind = "text" if match_type == "string" else "pattern"
        lines.append(f'Match {kind} "{match}" was {"" if found else "not "}found.')
        ok = found
    if status is not None:
        answered = str(data.get("status", ""))
        if status_type == "list":
            hits = [each for each in (status if isinstance(status, Iterable) else ()) if str(each) == answered]
            lines += [f"Status {each} was found." for each in hits] or [f"Statuses {status} were not found."]
            ok = ok and bool(hits)
        elif status_type == "pcre":
            found = bool(re.search(str(status), answered))
            lines.append(f'Status pattern "{status}" was {"" if found else "not "}found.')
            ok = ok and found
        else:
            found = str(status) == answered
            lines.append(f"Status {status} was {'' if found else 'not '}found.")
            ok = ok and found
    if not ok and "error" in data:
        lines.append(f"The server's answer: {data['error']}")
    return ok, " ".join(lines)
