"""Keys, certificates, requests and revocation lists as states (Salt's ``x509`` states, of their second make)."""

from __future__ import annotations

from statecore.builtin.states.x509 import certificate, key, requested, revoked

#: The modules whose functions make up this one.
PARTS = (key, requested, certificate, revoked)
