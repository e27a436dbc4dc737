"""``salt.utils.x509`` for users' modules: reads certificates and keys. It needs the library cryptography."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cryptography import x509 as cx509
from cryptography.exceptions import InvalidSignature as InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs7, pkcs12

from statecore.loader.compat.exceptions import CommandExecutionError, SaltInvocationError

#: Salt's short name of a part of a subject -> its object identifier.
NAME_ATTRS_OID: Mapping[str, cx509.ObjectIdentifier] = MappingProxyType(
    {
        "C": cx509.NameOID.COUNTRY_NAME,
        "ST": cx509.NameOID.STATE_OR_PROVINCE_NAME,
        "L": cx509.NameOID.LOCALITY_NAME,
        "STREET": cx509.NameOID.STREET_ADDRESS,
        "O": cx509.NameOID.ORGANIZATION_NAME,
        "OU": cx509.NameOID.ORGANIZATIONAL_UNIT_NAME,
        "CN": cx509.NameOID.COMMON_NAME,
        "MAIL": cx509.NameOID.EMAIL_ADDRESS,
        "SN": cx509.NameOID.SURNAME,
        "GN": cx509.NameOID.GIVEN_NAME,
        "UID": cx509.NameOID.USER_ID,
        "SERIALNUMBER": cx509.NameOID.SERIAL_NUMBER,
    }
)

_PEM = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.+?-----END \1-----", re.DOTALL)


class CertDeserializationError(CommandExecutionError):
    """Error: a text, bytes or a file do not contain a certificate."""


class PrivDeserializationError(CommandExecutionError):
    """Error: a text, bytes or a file do not contain a private key."""


def load_file_or_bytes(fob: str | bytes) -> bytes:
    """Return bytes: the content of the file at a path, a PEM text, or decoded base64 or hexadecimal digits."""
    data = fob.encode() if isinstance(fob, str) else fob
    if b"-----BEGIN" in data:
        return data
    if isinstance(fob, str) and Path(fob).is_absolute() and Path(fob).is_file():
        return Path(fob).read_bytes()
    if b"\0" not in data:
        try:
            return bytes.fromhex(data.decode().replace(":", ""))
        except ValueError:
            pass
        try:
            return base64.b64decode(data, validate=True)
        except ValueError:
            pass
    return data


def split_pems(pem: str | bytes) -> list[bytes]:
    """Return the PEM blocks in a text, each as bytes; [] if there are none."""
    return [match.group() for match in _PEM.finditer(pem.encode() if isinstance(pem, str) else pem)]


def load_cert(
    cert: Any, passphrase: str | bytes | None = None, load_chain: bool = False, get_encoding: bool = False
) -> Any:
    """Return the certificate in ``cert``: a text, bytes or the path of a file in PEM, DER, PKCS#7 or PKCS#12 form.

    With ``load_chain`` return (certificate, list of further certificates); with ``get_encoding`` (certificate, name of
    the form, list of further certificates, the PKCS#12 object or None). Raise CertDeserializationError if ``cert`` has
    no such form.
    """
    chain: list[cx509.Certificate]
    if isinstance(cert, cx509.Certificate):
        found, form, chain, box = cert, None, [], None
    else:
        data = load_file_or_bytes(cert)
        found, form, chain, box = _read_cert(data, passphrase.encode() if isinstance(passphrase, str) else passphrase)
    if load_chain:
        return found, chain
    return (found, form, chain, box) if get_encoding else found


def _read_cert(data: bytes, passphrase: bytes | None) -> tuple[cx509.Certificate, str, list[cx509.Certificate], Any]:
    try:
        if blocks := split_pems(data):
            if b"BEGIN PKCS7" in blocks[0]:
                first, *rest = pkcs7.load_pem_pkcs7_certificates(blocks[0])
                return first, "pkcs7_pem", rest, None
            first, *rest = (cx509.load_pem_x509_certificate(block) for block in blocks if b"CERTIFICATE" in block)
            return first, "pem", rest, None
    except ValueError as error:
        raise CertDeserializationError(f"Could not load PEM-encoded certificate: {error}") from error
    try:
        return cx509.load_der_x509_certificate(data), "der", [], None
    except ValueError:
        pass
    try:
        box = pkcs12.load_pkcs12(data, passphrase)
        if box.cert is not None:
            return box.cert.certificate, "pkcs12", [each.certificate for each in box.additional_certs], box
    except ValueError:
        pass
    try:
        first, *rest = pkcs7.load_der_pkcs7_certificates(data)
    except ValueError as error:
        raise CertDeserializationError(
            "Could not deserialize binary data, neither as DER nor PKCS#7, PKCS#12."
        ) from error
    return first, "pkcs7_der", rest, None


def order_certs_naively(certs: list[cx509.Certificate]) -> list[cx509.Certificate]:
    """Return certificates in the order of their chain: each one before its issuer."""
    rest = list(certs)
    issuers = {each.issuer for each in rest if each.issuer != each.subject}
    found = [each for each in rest if each.subject not in issuers][:1]
    while found and (following := [each for each in rest if each.subject == found[-1].issuer and each not in found]):
        found.append(following[0])
    return [*found, *(each for each in rest if each not in found)]


def load_privkey(pk: Any, passphrase: str | None = None, get_encoding: bool = False) -> Any:
    """Return the private key in ``pk``: a text, bytes or the path of a file in PEM, DER or PKCS#12 form.

    With ``get_encoding`` return (key, name of the form, the PKCS#12 object or None). Raise PrivDeserializationError if
    ``pk`` has no such form, or if the passphrase is wrong.
    """
    if hasattr(pk, "private_bytes"):
        return (pk, None, None) if get_encoding else pk
    data, secret = load_file_or_bytes(pk), passphrase.encode() if passphrase else None
    box = None
    try:
        if b"-----BEGIN" in data:
            key, form = serialization.load_pem_private_key(data, secret), "pem"
        else:
            key, form, box = _read_privkey(data, secret)
    except (ValueError, TypeError) as error:
        raise PrivDeserializationError(f"Could not load the private key: {error}") from error
    return (key, form, box) if get_encoding else key


def _read_privkey(data: bytes, secret: bytes | None) -> tuple[Any, str, Any]:
    try:
        return serialization.load_der_private_key(data, secret), "der", None
    except ValueError:
        box = pkcs12.load_pkcs12(data, secret)
        return box.key, "pkcs12", box


def is_pair(pubkey: Any, privkey: Any) -> bool:
    """Return whether a public key belongs to a private key."""
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return bool(pubkey.public_bytes(*form) == privkey.public_key().public_bytes(*form))


def verify_signature(cert: cx509.Certificate, pubkey: Any) -> bool:
    """Return whether a certificate was signed by the private key that belongs to ``pubkey``. Raise SaltInvocationError
    for a public key that is not of the kind rsa, ec, ed25519 or ed448.
    """
    parameters: Any = cert.signature_algorithm_parameters
    given = {"PKCS1v15": 2, "PSS": 2, "ECDSA": 1}.get(type(parameters).__name__, 0)
    options = [parameters, cert.signature_hash_algorithm] if given == 2 else [parameters] if given else []
    if not hasattr(pubkey, "verify"):
        raise SaltInvocationError("Invalid public key type, can only process rsa, ec, ed25519, ed448")
    try:
        pubkey.verify(cert.signature, cert.tbs_certificate_bytes, *options)
    except (InvalidSignature, TypeError):
        # A key of another kind takes other arguments: it did not sign the certificate.
        return False
    return True
