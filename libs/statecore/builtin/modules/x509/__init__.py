"""Keys, certificates, requests and revocation lists (Salt's ``x509`` module, of its second make).

What a function takes as key, certificate, request or list is a path of the host, or the thing itself: PEM, hexadecimal, base64.
"""

from __future__ import annotations

from statecore.builtin.modules.x509 import creation, encoding, inspection, pem, signing, verification

#: The modules whose functions make up this one.
PARTS = (creation, encoding, signing, inspection, verification, pem)
