"""Pillar data from a web server, for the external pillars ``http_json`` and ``http_yaml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.substitution import UnsafeValue, plain_text, segment
from statecore.model.values import traverse

#: ``%s``, the minion's id, or ``<grain>``.
_FIELD = re.compile(r"%s|<(.*?)>")

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


@dataclass(frozen=True)
class HttpPillar:
    """An external pillar whose data a web server sends in the format ``decode_type``: json or yaml."""

    decode_type: str

    def ext_pillar(
        self,
        ctx: Context,
        minion_id: str,
        pillar: dict[str, object],
        url: str,
        with_grains: bool = False,
        header_dict: Mapping[str, object] | None = None,
        auth: object = None,
        username: str | None = None,
        password: str | None = None,
        namespace: str | None = None,
    ) -> object:
        """Return the data that the server sends.

        url
            address; ``%s`` is the minion's id
        with_grains
            replace ``<grain>`` in the address by the minion's grain
        header_dict
            headers of the request
        auth
            list of user and password
        username, password
            the same, one by one
        namespace
            key of pillar for the data; without it the data stands at the top

        Raises CommandError if a grain is missing or the server does not send data of the pillar's format.
        """
        place = _address(ctx, url, minion_id, with_grains=with_grains)
        login = {"header_dict": header_dict, "auth": auth, "username": username, "password": password}
        try:
            answer = ctx.call("http.query", place, decode=True, decode_type=self.decode_type, status=True, **login)
        except CommandError as error:
            raise CommandError(f"{_shown(place)}: {error}") from error
        if "dict" not in answer:
            reason = answer.get("error") or f"the answer is no {self.decode_type.upper()}"
            raise CommandError(f"{_shown(place)}: {reason}")
        data = answer["dict"]
        return {namespace: data} if namespace else data


def _shown(url: str) -> str:
    """Return a URL without its user, password and query, which may be secrets: the minion sees errors of its pillar."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _address(ctx: Context, url: str, minion_id: str, *, with_grains: bool) -> str:
    """Return a URL with the minion's id and grains in their places. Raises CommandError if a grain is missing, or would change
    what the URL means.
    """
    scheme = url.find("://") + 3 if "://" in url else 0
    host_ends = min((at for at in (url.find(mark, scheme) for mark in "/?#") if at >= 0), default=len(url))
    query_begins = min((at for at in (url.find(mark, scheme) for mark in "?#") if at >= 0), default=len(url))

    def text(found: re.Match[str]) -> str:
        if found[1] is not None and not with_grains:
            return found[0]
        value = minion_id if found[1] is None else _grain(ctx, found[1])
        what = "the minion's id" if found[1] is None else f"the grain '{found[1]}'"
        if found.start() < host_ends:
            if not _HOST.fullmatch(plain_text(value, what)):
                raise UnsafeValue(f"{what} must be a part of a host's name, not {ascii(value)[:80]}")
            return str(value)
        if found.start() < query_begins:
            # Servers resolve ".." and often read %2F as a slash: it would be another minion's path.
            return quote(segment(value, what), safe="")
        return quote(str(value), safe="")

    return _FIELD.sub(text, url)


def _grain(ctx: Context, name: str) -> object:
    value = traverse(ctx.grains, name)
    if not value:
        raise CommandError(f"the minion has no grain '{name}', which the URL names")
    return value
