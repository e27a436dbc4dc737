"""What a certificate may be for."""

from __future__ import annotations

from collections.abc import Mapping

#: Names of purposes -> identifiers, as OpenSSL has them.
PURPOSES: Mapping[str, str] = {
    "serverAuth": "1.3.6.1.5.5.7.3.1",
    "clientAuth": "1.3.6.1.5.5.7.3.2",
    "codeSigning": "1.3.6.1.5.5.7.3.3",
    "emailProtection": "1.3.6.1.5.5.7.3.4",
    "timeStamping": "1.3.6.1.5.5.7.3.8",
    "OCSPSigning": "1.3.6.1.5.5.7.3.9",
    "msSmartcardLogin": "1.3.6.1.4.1.311.20.2.2",
    "pkInitKDC": "1.3.6.1.5.2.3.5",
    "ipsecIKE": "1.3.6.1.5.5.7.3.17",
    "msCodeInd": "1.3.6.1.4.1.311.2.1.21",
    "msCodeCom": "1.3.6.1.4.1.311.2.1.22",
    "msCTLSign": "1.3.6.1.4.1.311.10.3.1",
    "msEFS": "1.3.6.1.4.1.311.10.3.4",
}
