"""Finds the user of a token: asks the master, and caches the answer for a few seconds. The cache gives no rights: the
master checks the token of each command itself.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass

from saltern.api.clients import is_token
from saltern.kit.links.control import ControlError
from saltern.kit.links.master_link import MasterLink

#: Seconds for which an answer about a token is reused; a revoked token may still see events, files and statistics for so long.
BELIEVED = 5.0

#: Most tokens that are remembered.
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class User:
    """A signed-in user: the name, whether the user has any right, and the time at which the token expires (seconds
    since 1970).
    """

    name: str
    has_rights: bool
    expire: float


class Sessions:
    """Cache of the users of recently seen tokens, by the digest of the token."""

    def __init__(self, link: MasterLink) -> None:
        self._link = link
        self._known: dict[bytes, tuple[float, User | None]] = {}

    @property
    def size(self) -> int:
        """Return the number of tokens that are remembered."""
        return len(self._known)

    async def user_of(self, token: str) -> User | None:
        """Return the user of a token; None if the token is malformed, unknown or has expired. Raises ControlTimeout."""
        if not is_token(token):
            return None
        digest = hashlib.sha256(token.encode()).digest()
        now = time.monotonic()
        known = self._known.get(digest)
        if known is None or now - known[0] > BELIEVED:
            if len(self._known) >= _MOST:
                self._known = {key: each for key, each in self._known.items() if now - each[0] <= BELIEVED}
                if len(self._known) >= _MOST:
                    self._known.clear()
            known = self._known[digest] = (now, await self._ask(token))
        user = known[1]
        return user if user is not None and user.expire > time.time() else None

    def forget(self, token: str) -> None:
        """Remove a token from the cache, so that the master is asked about it the next time."""
        self._known.pop(hashlib.sha256(token.encode()).digest(), None)

    async def _ask(self, token: str) -> User | None:
        try:
            answer = await self._link.call("token_info", of=token)
        except ControlError as error:
            if error.name != "TokenAuthenticationError":
                raise
            return None
        return User(str(answer["name"]), bool(answer["perms"]), float(answer["expire"]))
