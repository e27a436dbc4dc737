"""The seal on pillar in Redis: what lies there tells nothing without the master's secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saltwire.crypticle import Crypticle
from saltwire.errors import AuthenticationError, PeerFault
from saltwire.keys import derive_key_string


def pillar_seal(secret: bytes) -> Crypticle:
    """What seals and opens. It does not change, so that pillar of yesterday can be read."""
    return Crypticle(derive_key_string(secret, purpose="pillar", epoch=0))


def unsealed(secret: bytes, sealed: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """What was sealed under this secret, opened; what was sealed under another is left out."""
    seal, found = pillar_seal(secret), {}
    for name, data in sealed.items():
        try:
            found[name] = dict(seal.loads(data))
        except (PeerFault, AuthenticationError):
            continue
    return found
