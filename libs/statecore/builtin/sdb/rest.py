"""SDB driver ``rest``: values that HTTP servers return.

A profile maps names to requests: ``url`` and further arguments of ``http.query``. ``sdb://PROFILE/NAME?user=ann`` sends
the request NAME; its URL is rendered (``renderer``) with the variable ``user``, percent-encoded: a value is one part of the URL.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.substitution import UnsafeValue, plain_text

ALIASES = {"set": "set_"}


def get(ctx: Context, key: str, profile: Mapping[str, object] | None = None) -> object:
    """Send the HTTP request that the profile has under the key's name. Return the decoded body of the response.

    Raise CommandError for an unknown name, and if the server does not answer.
    """
    name, _, query = key.partition("?")
    request = (profile or {}).get(name)
    if not isinstance(request, Mapping) or "url" not in request:
        raise CommandError(f"the profile of the SDB driver rest has no request {name} with a url")
    variables = {
        name: _encoded(name, value) for name, _, value in (pair.partition("=") for pair in query.split("&") if pair)
    }
    url = ctx.templates.data(
        str(request["url"]), str(ctx.opts.get("renderer") or "jinja|yaml"), variables, saltenv=ctx.saltenv
    )
    more = {str(item): value for item, value in request.items() if item not in ("backend", "url")}
    answer = ctx.call("http.query", str(url), decode=True, **more)
    if "dict" not in answer:
        raise CommandError(f"{name}: {answer.get('error') or answer.get('text') or 'the answer is empty'}")
    return answer["dict"]


def _encoded(name: str, value: str) -> str:
    text = urllib.parse.unquote(value)
    if not {".", ".."}.isdisjoint(text.split("/")):
        raise UnsafeValue(f"the variable {name} of an sdb:// URI must not lead to another path: {ascii(text)[:80]}")
    return urllib.parse.quote(plain_text(text, f"the variable {name} of an sdb:// URI"), safe="") if text else ""


def set_(ctx: Context, key: str, value: object, profile: Mapping[str, object] | None = None) -> object:
    """Send the HTTP request that the profile has under the key's name, as ``get`` does; ``value`` is not sent. Return
    the decoded body of the response. Raise CommandError for an unknown name, and if the server does not answer.
    """
    return get(ctx, key, profile)
