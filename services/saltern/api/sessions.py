"""Signs users in, and finds the user of a token: asks the master, and caches the answer for a few seconds. The cache
gives no rights: the master checks the token of each command itself.

The master decides whether a user may come from an address (setting ``api_acl``), because it knows the name that
``external_auth`` has for the user. All ways in ask it: a login, a new token, credentials in a chunk, and each use of a token.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from saltern.api.clients import Chunk
from saltern.api.event_views import EventView, view_of
from saltern.kit.links.control import ControlError
from saltern.kit.links.master_link import MasterLink

#: Seconds for which an answer about a token is reused; a revoked token may still see events, files and statistics for so long.
BELIEVED = 5.0

#: Most tokens that are remembered.
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class User:
    """A signed-in user: the name, whether the user has any right, the time at which the token expires (seconds
    since 1970), and which events the user may see.
    """

    name: str
    has_rights: bool
    expire: float
    view: EventView


class Logins:
    """Signs users in at the master, from the addresses that ``api_acl`` allows."""

    def __init__(self, link: MasterLink, api_acl: Callable[[], object]) -> None:
        """Sign in by ``link``. ``api_acl`` returns the API's setting of this name, as it is now."""
        self._link = link
        self._api_acl = api_acl

    async def token(self, address: str, **credentials: object) -> Mapping[str, Any]:
        """Return the master's answer to a login from an address: {token, start, expire, name, eauth, groups, perms}. Raises
        ControlError for wrong credentials and for an address from which this user may not come.
        """
        # A directory may take its time; the worker's child process ends by itself.
        answer: Mapping[str, Any] = await self._link.call(
            "login", timeout=60.0, once=True, address=address, api_acl=self._api_acl(), **credentials
        )
        return answer

    async def info(self, token: str, address: str) -> Mapping[str, Any]:
        """Return what the master knows of a token that came from an address. Raises ControlError as ``token`` does."""
        answer: Mapping[str, Any] = await self._link.call(
            "token_info", of=token, address=address, api_acl=self._api_acl(), events=True
        )
        return answer

    async def end(self, token: str) -> None:
        """Revoke a token."""
        await self._link.call("logout", of=token)


class Sessions:
    """Cache of the users of recently seen tokens, by the digest of the token and the address that it came from."""

    def __init__(self, logins: Logins) -> None:
        self._logins = logins
        self._known: dict[tuple[bytes, str], tuple[float, User | None]] = {}

    @property
    def size(self) -> int:
        """Return the number of tokens that are remembered."""
        return len(self._known)

    async def user_of(self, token: str, address: str) -> User | None:
        """Return the user of a token that came from an address; None if the token is malformed, unknown or has expired, or
        if its user may not come from there. Raises ControlTimeout.
        """
        if not is_token(token):
            return None
        digest = (hashlib.sha256(token.encode()).digest(), address)
        now = time.monotonic()
        known = self._known.get(digest)
        if known is None or now - known[0] > BELIEVED:
            if len(self._known) >= _MOST:
                self._known = {key: each for key, each in self._known.items() if now - each[0] <= BELIEVED}
                if len(self._known) >= _MOST:
                    self._known.clear()
            known = self._known[digest] = (now, await self._ask(token, address))
        user = known[1]
        return user if user is not None and user.expire > time.time() else None

    def forget(self, token: str) -> None:
        """Remove a token from the cache, so that the master is asked about it the next time."""
        digest = hashlib.sha256(token.encode()).digest()
        self._known = {key: each for key, each in self._known.items() if key[0] != digest}

    async def _ask(self, token: str, address: str) -> User | None:
        try:
            answer = await self._logins.info(token, address)
        except ControlError as error:
            if error.name != "TokenAuthenticationError":
                raise
            return None
        return User(str(answer["name"]), bool(answer["perms"]), float(answer["expire"]), view_of(answer))


async def with_credentials(logins: Logins, sessions: Sessions, chunk: Chunk, address: str) -> tuple[str, bool]:
    """Return (token, True if it was made for this chunk) for a chunk of ``POST /run``: the token in the chunk, or a
    new one for the chunk's user name and password.

    Raises ControlError for wrong or missing credentials.
    """
    if "token" in chunk:
        token = chunk["token"]
        if not isinstance(token, str) or await sessions.user_of(token, address) is None:
            raise ControlError("TokenAuthenticationError", "Invalid token")
        return token, False
    if "eauth" not in chunk:
        raise ControlError("EauthAuthenticationError", "No authentication credentials given")
    answer = await logins.token(address, **{name: chunk.get(name) for name in ("username", "password", "eauth")})
    return str(answer["token"]), True


def is_token(text: str) -> bool:
    """Return whether a text has the form of a token: hexadecimal digits, as Salt wants them."""
    return 0 < len(text) <= 128 and all(digit in "0123456789abcdefABCDEF" for digit in text)
