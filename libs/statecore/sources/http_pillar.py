"""Pillar data from a web server, for the external pillars ``http_json`` and ``http_yaml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.values import traverse

_GRAIN = re.compile(r"<(.*?)>")


class Login(NamedTuple):
    """What a request sends beside its URL: headers, and a user with a password or (user, password) in ``auth``."""

    header_dict: Mapping[str, object] | None = None
    auth: object = None
    username: str | None = None
    password: str | None = None


def document(ctx: Context, minion_id: str, url: str, decode_type: str, with_grains: bool, login: Login) -> object:
    """Return the data at a URL, in which ``%s`` is the minion's id and, with ``with_grains``, ``<grain>`` its grain.

    ``decode_type``: json or yaml. Raise CommandError if the minion lacks a grain, or if the server does not send data.
    """
    place = url.replace("%s", quote(minion_id, safe=""))
    if with_grains:
        place = _GRAIN.sub(lambda found: _grain(ctx, found[1]), place)
    try:
        answer = ctx.call("http.query", place, decode=True, decode_type=decode_type, status=True, **login._asdict())
    except CommandError as error:
        raise CommandError(f"{_shown(place)}: {error}") from error
    if "dict" not in answer:
        reason = answer.get("error") or f"the answer is no {decode_type.upper()}"
        raise CommandError(f"{_shown(place)}: {reason}")
    return answer["dict"]


def _shown(url: str) -> str:
    """Return a URL without its user, password and query, which may be secrets: the minion sees errors of its pillar."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _grain(ctx: Context, name: str) -> str:
    value = traverse(ctx.grains, name)
    if not value:
        raise CommandError(f"the minion has no grain '{name}', which the URL names")
    # Grains are the minion's own words: a slash would lead to another minion's path.
    return quote(str(value), safe="")
