"""Certificates of OpenSSH as plain data, with the keys of ``ssh_pki.read_certificate``."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime

from cryptography.hazmat.primitives.serialization import SSHCertificate

from statecore.system.certificates import issuing, names
from statecore.system.certificates.descriptions import hexadecimal
from statecore.system.ssh_certificates import desired, keys
from statecore.system.ssh_certificates.keys import PublicKey

#: In place of a date that no calendar has.
FOREVER = "forever"


def certificate(found: SSHCertificate) -> dict[str, object]:
    """Return a certificate as the map of ``ssh_pki.read_certificate``: cert_type, valid_principals, not_after, ..."""
    holder, signer = keys.supported(found.public_key()), keys.supported(found.signature_key())
    return {
        "cert_type": desired.kind_of(found),
        "valid_principals": [_text(each) for each in found.valid_principals] or "all",
        "key_id": _text(found.key_id),
        "key_size": issuing.key_size(holder),
        "key_type": issuing.key_type(holder),
        "serial_number": hexadecimal(found.serial),
        "issuer_public_key": keys.encoded_public(signer),
        "not_before": _date(found.valid_after),
        "not_after": _date(found.valid_before),
        "public_key": keys.encoded_public(holder),
        "critical_options": _options(found.critical_options),
        "extensions": _options(found.extensions),
        "issuer_public_key_fingerprints": _fingerprints(signer),
        "public_key_fingerprints": _fingerprints(holder),
    }


def _fingerprints(key: PublicKey) -> dict[str, str]:
    data = base64.b64decode(keys.encoded_public(key).split(" ")[1])
    return {
        "sha256": base64.b64encode(hashlib.sha256(data).digest()).decode(),
        "md5": hexadecimal(hashlib.md5(data, usedforsecurity=False).digest()).lower(),
    }


def _options(found: Mapping[bytes, bytes]) -> dict[str, object]:
    return {_text(name): _text(value) or True for name, value in found.items()}


def _text(value: bytes) -> str:
    return value.decode(errors="backslashreplace")


def _date(timestamp: int) -> str:
    try:
        return datetime.fromtimestamp(timestamp, UTC).strftime(names.TIME_FORMAT)
    except (OverflowError, ValueError, OSError):
        return FOREVER
