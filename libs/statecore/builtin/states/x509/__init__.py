"""Salt's ``x509`` states, version 2: private keys, certificate signing requests, certificates and revocation lists."""

from __future__ import annotations

from statecore.builtin.states.x509 import certificate, key, request, revocation

#: Modules whose public functions are this package's state functions.
PARTS = (key, request, certificate, revocation)
