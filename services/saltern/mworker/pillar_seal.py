"""Encryption of pillar in Redis, under a key that is derived from the master's secret."""

from __future__ import annotations

from collections.abc import Mapping

from saltwire.crypticle import Crypticle
from saltwire.errors import AuthenticationError, PeerFault
from saltwire.keys import derive_key_string


def pillar_seal(secret: bytes) -> Crypticle:
    """Return the Crypticle (encrypter) for the pillar in Redis. Its key never rotates, so that stored pillar stays readable."""
    return Crypticle(derive_key_string(secret, purpose="pillar", epoch=0))


def unsealed(secret: bytes, sealed: Mapping[str, bytes]) -> dict[str, dict[str, object]]:
    """Return {minion id: pillar} of the encrypted pillars; those encrypted under another master's secret are left out."""
    seal, found = pillar_seal(secret), {}
    for name, data in sealed.items():
        try:
            found[name] = seal.loads_map(data)
        except (PeerFault, AuthenticationError):
            continue
    return found
