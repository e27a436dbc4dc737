"""The sender of a request as the worker has proved it: an operator's key, a user of ``external_auth``, or a minion.

A runner works with the key of the role mworker, and on behalf of whoever started it. Its requests name that sender
(field ``on_behalf``), so that what the runner resolves and publishes again is decided by the sender's rules. The field
counts in requests of the key mworker alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypedDict

from masterstore.tokens import Token
from saltern.kit.config.access_rows import AccessRows
from saltern.kit.links.control import ControlError
from saltern.kit.links.rights import Rights, rights_of_minion, rights_of_operator, rights_of_user
from saltern.kit.links.sockets import ROLES

#: The key with which runners send requests.
_RUNNERS_KEY = "mworker"


class Way(Enum):
    """How a sender proved who it is."""

    #: A CurveZMQ key on port 4507.
    KEY = "key"
    #: The token of a user of external_auth.
    USER = "user"
    #: The session of a minion on port 4506.
    MINION = "minion"


class Behalf(TypedDict):
    """The field ``on_behalf`` of a runner's request: the sender for whom the runner works."""

    way: str
    name: str
    eauth: str
    groups: list[str]


@dataclass(frozen=True)
class Sender:
    """Who sends a request, and the access rules that count for it."""

    #: Name of the CurveZMQ key that carried the request; the id of a minion.
    client: str
    way: Way
    #: Name of the key, of the user, or id of the minion.
    name: str
    rights: Rights
    #: Of a user: the backend of external_auth that authenticated the user, and the user's groups.
    eauth: str = ""
    groups: tuple[str, ...] = ()

    @property
    def owner(self) -> str:
        """Return the text that a job of this sender carries (``owner_of``)."""
        return owner_of(self.behalf)

    @property
    def behalf(self) -> Behalf:
        """Return the field ``on_behalf`` for requests of a runner that this sender starts."""
        return {"way": self.way.value, "name": self.name, "eauth": self.eauth, "groups": list(self.groups)}


def owner_of(behalf: Behalf) -> str:
    """Return the text by which the jobs of a sender are found to be its own; no two senders have the same one.

    The name of a job's user is no such text: two backends of external_auth, and a key, can have users of one name.
    """
    name = f"{behalf['eauth']}/{behalf['name']}" if behalf["way"] == Way.USER.value else behalf["name"]
    return f"{behalf['way']} {name}"


def is_role(sender: Sender) -> bool:
    """Return whether the sender is a process of the master, such as the reactor: what it does is in the master's rows."""
    return sender.way is Way.KEY and sender.name in ROLES


def sender_by_key(rows: AccessRows, client: str) -> Sender:
    """Return the sender of a request that a CurveZMQ key carried, without a user's token."""
    return Sender(client, Way.KEY, client, rights_of_operator(rows.control_acl, rows.publisher_acl, client))


def sender_by_token(rows: AccessRows, client: str, token: Token) -> Sender:
    """Return the sender of a request with the token of a user, which the key ``client`` carried."""
    return _user(rows, client, token.eauth, token.user, token.groups)


def sender_minion(rows: AccessRows, minion_id: str) -> Sender:
    """Return a minion as the sender of a request; its rules are those of the option ``peer``."""
    return Sender(minion_id, Way.MINION, minion_id, rights_of_minion(rows.peer, minion_id))


def on_behalf(rows: AccessRows, carrier: Sender, given: object) -> Sender | None:
    """Return the sender that the field ``on_behalf`` of a request names; None if it has none, or comes with another key
    than that of runners. Raises ControlError for a malformed field.
    """
    if given is None or carrier.way is not Way.KEY or carrier.client != _RUNNERS_KEY:
        return None
    if not isinstance(given, Mapping):
        raise ControlError("InvocationError", "on_behalf must be a map")
    way, name, groups = given.get("way"), str(given.get("name")), given.get("groups")
    if way == Way.USER.value:
        names = tuple(map(str, groups)) if isinstance(groups, list) else ()
        return _user(rows, carrier.client, str(given.get("eauth")), name, names)
    if way == Way.MINION.value:
        return replace(sender_minion(rows, name), client=carrier.client)
    if way == Way.KEY.value:
        return replace(sender_by_key(rows, name), client=carrier.client)
    raise ControlError("InvocationError", f"on_behalf: there is no sender of the kind {way!r}")


def _user(rows: AccessRows, client: str, eauth: str, user: str, groups: tuple[str, ...]) -> Sender:
    rights = rights_of_user(rows.external_auth, eauth, user, groups, permissive=rows.permissive_acl)
    return Sender(client, Way.USER, user, rights, eauth, groups)
