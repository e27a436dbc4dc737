"""Private keys, certificates, certificate requests and revocation lists: Salt's ``x509_v2`` execution module, under the
name ``x509``.

An argument that is a key, certificate, request or list is either a path of the host, or the content in PEM, hexadecimal
or base64.
"""

from __future__ import annotations

from statecore.builtin.modules.x509 import creation, encoding, inspection, pem, signing, verification

#: The modules that define the functions of ``x509``.
PARTS = (creation, encoding, signing, inspection, verification, pem)
