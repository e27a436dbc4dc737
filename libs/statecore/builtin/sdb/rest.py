"""SDB driver ``rest``: values that HTTP servers return.

A profile maps names to requests: ``url`` and further arguments of ``http.query``. ``sdb://PROFILE/NAME?user=ann`` sends
the request NAME; its URL is rendered (``renderer``) with the variable ``user``.
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError

ALIASES = {"set": "set_"}


def get(ctx: Context, key: str, profile: Mapping[str, object] | None = None) -> object:
    """Send the HTTP request that the profile has under the key's name. Return the decoded body of the response.

    Raise CommandError for an unknown name, and if the server does not answer.
    """
    name, _, query = key.partition("?")
    request = (profile or {}).get(name)
    if not isinstance(request, Mapping) or "url" not in request:
        raise CommandError(f"the profile of the SDB driver rest has no request {name} with a url")
    variables = dict(pair.partition("=")[::2] for pair in query.split("&") if pair)
    url = ctx.templates.data(
        str(request["url"]), str(ctx.opts.get("renderer") or "jinja|yaml"), variables, saltenv=ctx.saltenv
    )
    more = {str(item): value for item, value in request.items() if item not in ("backend", "url")}
    answer = ctx.call("http.query", str(url), decode=True, **more)
    if "dict" not in answer:
        raise CommandError(f"{name}: {answer.get('error') or answer.get('text') or 'the answer is empty'}")
    return answer["dict"]


def set_(ctx: Context, key: str, value: object, profile: Mapping[str, object] | None = None) -> object:
    """Send the HTTP request that the profile has under the key's name, as ``get`` does; ``value`` is not sent. Return
    the decoded body of the response. Raise CommandError for an unknown name, and if the server does not answer.
    """
    return get(ctx, key, profile)
