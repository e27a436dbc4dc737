"""The control commands by which users sign in (eauth), and by which the API reads stored events and forwards webhooks.

A user who has signed in sends the token with each command (field ``token``). The user's rights are those of
``external_auth``; the rights of the CurveZMQ key that carries the request do not count (``RequestHandler``).

Source: docs/api.md#how-a-request-is-decided
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping
from typing import Any

from masterstore.tokens import Token
from saltern.kit.config.master import as_opts
from saltern.kit.links.control import ControlError
from saltern.kit.links.peer_network import network_of
from saltern.kit.links.rights import Call, Kind, may_come_from, rights_of_user
from saltern.kit.links.sockets import NAMES
from saltern.mworker import eauth
from saltern.mworker.authorise import covered, decided
from saltern.mworker.deferred_reply import DeferredReply
from saltern.mworker.eauth.identity import EauthFault, Identity
from saltern.mworker.processes import LOGIN
from saltern.mworker.senders import Sender, sender_by_token
from saltern.mworker.worker_context import WorkerContext

#: Said of every sign-in that fails, whatever the reason: who tries passwords learns nothing more.
FAILED = "Authentication failure"

#: Bytes of a token by its kind: a session's is as long as that of Salt's API, any other's as long as Salt's eauth tokens.
_BYTES: Mapping[str, int] = {"session": 20, "token": 32}

#: Key of the API, which says from which address its users come.
_API = "api"

#: Seconds for which failed sign-ins count.
_WINDOW = 60

#: Failed sign-ins of one user, from all addresses together, for each that one address may have.
_OF_USER = 5

#: Longest life of a token, seconds.
_LONGEST = 10 * 365 * 86400

#: Most kept events in one answer, and about how many bytes.
_EVENTS, _EVENT_BYTES = 500, 4 * 1024 * 1024

#: One part of a webhook's tag.
_PART = re.compile(r"[^\x00-\x20\x7f/]{1,128}")


def login(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> DeferredReply:
    """Check ``username`` and ``password`` with the eauth backend ``eauth``, and make a token. The deferred reply is
    {token, start, expire, name, eauth, groups, perms}.

    ``kind``: "session" for a token of 40 hexadecimal digits, else 64. ``address``: the user's address, as the API saw
    it; ``api_acl``: the API's setting of this name. Raises ControlError with the name EauthAuthenticationError, or
    TooManyLogins after ``eauth_failures_per_minute``.
    """
    user, password, backend = (_text(fields, name) for name in ("username", "password", "eauth"))
    address, kind = _text(fields, "address"), "session" if fields.get("kind") == "session" else "token"
    # A user of IPv6 chooses among 2**64 addresses.
    network = network_of(address)
    subjects = [*([f"address {network}"] if network else []), f"user {backend} {user}"]
    _check_rate(context, subjects)
    seconds = _seconds(fields.get("token_expire"))

    def work() -> dict[str, object]:
        identity = _checked(context, backend, user, password, address)
        if identity is None or not _may_come(context, sender, identity.user, fields):
            context.store.tokens.record_failure(subjects, window=_WINDOW)
            raise ControlError("EauthAuthenticationError", FAILED)
        return _new_token(context, identity, backend, kind, _allowed_seconds(context, identity, backend, seconds))

    return DeferredReply(work, refused=None, requester=f"{LOGIN}{network or sender.client}")


def _checked(context: WorkerContext, backend: str, user: str, password: str, address: str) -> Identity | None:
    settings: dict[str, Any] = as_opts(context.options, external_auth=context.rows.external_auth)
    where = f" from {address}" if address else ""
    try:
        identity = eauth.check(settings, backend, user, password)
    except EauthFault as fault:
        context.log.error("eauth: nobody can sign in by this backend: %s", fault)
        raise ControlError("EauthAuthenticationError", FAILED) from fault
    if identity is None:
        context.log.warning("eauth %s: user %r%s did not sign in: wrong password or token", backend, user, where)
    else:
        context.log.info("eauth %s: user %r%s signed in", backend, identity.user, where)
    return identity


def _new_token(
    context: WorkerContext, identity: Identity, backend: str, kind: str, seconds: float
) -> dict[str, object]:
    now = time.time()
    token = Token(identity.user, backend, identity.groups, now, now + seconds)
    text = secrets.token_hex(_BYTES[kind])
    context.store.tokens.add(text, token, most=context.options.eauth_tokens_per_user)
    return {"token": text, **_described(context, token)}


def _described(context: WorkerContext, token: Token) -> dict[str, object]:
    rights = rights_of_user(
        context.rows.external_auth,
        token.eauth,
        token.user,
        token.groups,
        permissive=context.rows.permissive_acl,
    )
    return {
        "start": token.start,
        "expire": token.expire,
        "name": token.user,
        "eauth": token.eauth,
        "groups": list(token.groups),
        "perms": list(rights.rules),
    }


def _may_come(context: WorkerContext, sender: Sender, user: str, fields: Mapping[str, object]) -> bool:
    """Return whether a user of the API may come from the field ``address``: by ``api_acl`` in the worker's options, and by
    the API's own, which it sends. Whoever does not come by the API may come from anywhere.
    """
    if sender.client != _API:
        return True
    address = _text(fields, "address")
    sent, own = fields.get("api_acl") or {}, context.rows.api_acl
    if all(isinstance(acl, Mapping) and may_come_from(acl, user, address) for acl in (sent, own)):
        return True
    context.log.warning("user %r of the API may not come from %s (rest_cherrypy: api_acl)", user, address)
    return False


def token_info(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> dict[str, object]:
    """Return {start, expire, name, eauth, groups, perms} of the eauth token in the field ``of``. Raises ControlError
    if it is unknown or has expired, or if its user may not come from the field ``address``.

    With the field ``events`` also ``events``: which events its user may see, {everything, minions (None: of all), owner}.
    """
    found = context.store.tokens.find(_text(fields, "of"), time.time())
    if found is None or not _may_come(context, sender, found.user, fields):
        raise ControlError("TokenAuthenticationError", "the token is unknown or has expired")
    described = _described(context, found)
    if fields.get("events"):
        described["events"] = _events_of(context, sender_by_token(context.rows, sender.client, found))
    return described


def _events_of(context: WorkerContext, sender: Sender) -> dict[str, object]:
    everything = not decided(sender.rights, Kind.EVENTS, [Call("")]).refused
    minions = None if everything else covered(context, sender.rights)
    return {
        "everything": everything,
        "minions": None if minions is None else sorted(minions),
        "owner": sender.owner,
    }


def logout(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> bool:
    """Revoke the eauth token in the field ``of``, or with ``everywhere`` all tokens of its user. Return True if the
    token existed.
    """
    text = _text(fields, "of")
    found = context.store.tokens.find(text, time.time())
    if found is not None and fields.get("everywhere"):
        context.store.tokens.revoke_all(found.eauth, found.user)
    return context.store.tokens.revoke(text) or found is not None


def kept_events(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> list[tuple[int, bytes]]:
    """Return at most 500 events of the stream ``salt:events`` that were stored at ``after`` (milliseconds since 1970) or
    later, oldest first, each as (milliseconds since 1970, packed event). Raises ControlError for a wrong ``after``.

    With the field ``keep``, workers also store all events of the next day in the stream; the API repeats the request
    to extend this.
    """
    after = fields.get("after")
    if not isinstance(after, int) or after < 0:
        raise ControlError("InvocationError", f"after must be milliseconds since 1970, not {after!r}")
    if fields.get("keep"):
        context.store.events.want("api", ["*"])
    # Events of the same millisecond count too: the position is before the first one.
    found, _ = context.store.events.read(f"{max(after - 1, 0)}-{2**63}/0", 1, _EVENTS)
    frames: list[tuple[int, bytes]] = []
    size = 0
    for event in found:
        size += len(event.frame)
        if frames and size > _EVENT_BYTES:
            break
        frames.append((int(event.id.partition("-")[0]), event.frame))
    return frames


def hook(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> bool:
    """Fire the event ``salt/netapi/hook/<path>`` of a webhook with its ``data``. Return True if the event bus accepted
    it.

    Raises ControlError for malformed fields, and unless the request comes with a key of the master's roles: the API
    decides which webhooks need a signed-in user.
    """
    if sender.client not in NAMES:
        raise ControlError("AuthorizationError", f"{sender.client} may not pass on webhooks")
    path, data = fields.get("path"), fields.get("data")
    if not isinstance(path, list) or not all(isinstance(part, str) and _PART.fullmatch(part) for part in path):
        raise ControlError("InvocationError", "a webhook's path has parts of 1 to 128 characters without spaces")
    if not isinstance(data, Mapping):
        raise ControlError("InvocationError", "a webhook's data must be a map")
    return context.fire("/".join(("salt", "netapi", "hook", *path)), data)


def _check_rate(context: WorkerContext, subjects: list[str]) -> None:
    most = context.options.eauth_failures_per_minute
    if not most:
        return
    limits = [most if subject.startswith("address ") else most * _OF_USER for subject in subjects]
    counts = context.store.tokens.failures(subjects)
    if any(count >= limit for count, limit in zip(counts, limits, strict=True)):
        raise ControlError("TooManyLogins", "too many failed sign-ins; try again in a minute")


def _seconds(wanted: object) -> float:
    """Return the field ``token_expire`` (the token's wanted lifetime) as a number of seconds; 0 if it is missing.
    Raises ControlError for any other value than 1 to ten years.
    """
    if wanted in (None, ""):
        return 0.0
    try:
        seconds = float(str(wanted))
    except ValueError as error:
        raise ControlError("InvocationError", f"token_expire must be a number of seconds, not {wanted!r}") from error
    if not 1 <= seconds <= _LONGEST:
        raise ControlError("InvocationError", f"token_expire: {wanted} s is no time that a token can live")
    return seconds


def _allowed_seconds(context: WorkerContext, identity: Identity, backend: str, wanted: float) -> float:
    """Return the lifetime of a new token in seconds: the option ``token_expire``, or the wanted lifetime if it is
    shorter.

    For users in the option ``token_expire_user_override`` the wanted lifetime may also be longer.
    """
    most, override = float(context.options.token_expire), context.options.token_expire_user_override
    more = identity.user in override.get(backend, ()) if isinstance(override, dict) else override
    return (wanted if more else min(wanted, most)) if wanted else most


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if value is not None and not isinstance(value, str | int | float):
        raise ControlError("InvocationError", f"{name} must be text")
    return "" if value is None else str(value)
