"""Encryption of pillar in Redis, under a key that is derived from the master's secret.

The ciphertext also contains the minion's id, the environments, and the time. Whoever writes to Redis can therefore neither give
one minion the pillar of another one, nor keep an old pillar in ``pillar_cache`` for longer than ``pillar_cache_ttl``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from saltwire.crypticle import Crypticle
from saltwire.errors import AuthenticationError, PeerFault
from saltwire.keys import derive_key_string

#: Seconds by which the clocks of workers may differ.
_CLOCKS = 600


class PillarSeal:
    """Encrypts and decrypts pillar for Redis. Its key never rotates, so that stored pillar stays readable."""

    def __init__(self, secret: bytes, *, accept_unbound: bool = False, clock: Callable[[], float] = time.time) -> None:
        """Create the encryption of stored pillar. ``secret``: the master's secret. ``accept_unbound``: also accept
        pillar of a snapshot before 0.1.0, whose ciphertext does not contain the minion's id (option ``accept_unsigned_records``).
        """
        self._crypticle = Crypticle(derive_key_string(secret, purpose="pillar", epoch=0))
        self._accept_unbound = accept_unbound
        self._clock = clock

    def seal(self, minion: str, pillar: Mapping[str, object], environments: str = "") -> bytes:
        """Return the encrypted bytes of a minion's pillar, which also contain the id, the environments and the time.

        ``environments``: saltenv and pillarenv for ``pillar_cache``; else empty.
        """
        return self._crypticle.dumps([minion, environments, int(self._clock()), pillar])

    def open(self, minion: str, sealed: bytes, environments: str = "", max_age: int = 0) -> dict[str, object] | None:
        """Decrypt a minion's stored pillar for these environments (saltenv and pillarenv; empty outside ``pillar_cache``).

        None if it was encrypted under another master's secret, for another minion or other environments, or more than ``max_age``
        seconds ago (0: any age).
        """
        try:
            found = self._crypticle.loads(sealed)
        except (PeerFault, AuthenticationError):
            return None
        if isinstance(found, dict):
            return found if self._accept_unbound else None
        match found:
            case [str(name), str(place), int(at), dict(pillar)] if (name, place) == (minion, environments):
                return None if max_age and abs(self._clock() - at) > max_age + _CLOCKS else pillar
        return None
