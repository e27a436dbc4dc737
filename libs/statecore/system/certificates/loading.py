"""Parse keys, certificates, signing requests and revocation lists: PEM, DER, PKCS#7, PKCS#12.

Errors have Salt's messages.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import pkcs7, pkcs12

from statecore.model.errors import CommandError, InvocationError

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | ed448.Ed448PublicKey

_BEGIN = b"-----BEGIN"

_PEM = re.compile(rb"-----BEGIN [^-]*-----.*?-----END [^-]*-----[ \t]*\r?\n?", re.DOTALL)

#: Messages of the library cryptography for a wrong password.
_WRONG = ("Bad decrypt", "Incorrect password", "Invalid password")

Thing = TypeVar("Thing", x509.CertificateRevocationList, x509.CertificateSigningRequest)


class NotReadable(InvocationError):
    """Error: a key, certificate, request or revocation list cannot be parsed in any known encoding."""


class PasswordFault(InvocationError):
    """Error: the password of a key or certificate is wrong, missing or not needed."""


class WrongPassword(PasswordFault):
    """Error: the password of a key or certificate is wrong. For PKCS#12, cryptography also reports a missing password
    as a wrong one.
    """

    def __init__(self) -> None:
        super().__init__("Bad decrypt - is the password correct?")


class MissingPassword(PasswordFault):
    """Error: the key or certificate is encrypted and no password is given."""

    def __init__(self) -> None:
        super().__init__("Private key is encrypted. Please provide a password.")


class NeedlessPassword(PasswordFault):
    """Error: the key is not encrypted, but a password is given."""

    def __init__(self) -> None:
        super().__init__("Private key is unencrypted. Please remove the password.")


@dataclass(frozen=True, slots=True)
class LoadedKey:
    """A private key read from a file, and the file's encoding: pem, der or pkcs12."""

    key: PrivateKey
    encoding: str


@dataclass(frozen=True, slots=True)
class LoadedCertificate:
    """A certificate with its chain read from a file, and the file's encoding: pem, der, pkcs7_pem, pkcs7_der or pkcs12."""

    certificate: x509.Certificate
    encoding: str
    chain: tuple[x509.Certificate, ...] = ()
    #: The friendly name in PKCS#12; None for other encodings.
    friendly_name: bytes | None = None


@dataclass(frozen=True, slots=True)
class Loaded(Generic[Thing]):
    """A signing request or revocation list read from a file, and the file's encoding: pem or der."""

    value: Thing
    encoding: str


def decoded(text: str) -> bytes:
    """Return the bytes of a key or certificate given as text: PEM, ``b64:`` and base64, hexadecimal, or base64. Raise
    InvocationError if the text has none of these forms.
    """
    if "-----BEGIN" in text:
        return text.encode()
    try:
        if text.startswith("b64:"):
            return base64.b64decode(text[4:], validate=True)
        if re.fullmatch(r"([0-9A-Fa-f]{2}\s*)+", text):
            return bytes.fromhex(text)
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvocationError(
            "Could not load provided source. You need to pass an existing file, (PEM|hex|base64)-encoded string or raw bytes."
        ) from error


def key(data: bytes, passphrase: str | None = None) -> LoadedKey:
    """Parse a private key and return it with its encoding.

    Raise NotReadable if the data has no known form, PasswordFault if the passphrase is wrong, missing or not needed,
    CommandError for PKCS#12 without a private key.
    """
    password = None if passphrase is None else passphrase.encode()
    if _BEGIN in data:
        try:
            return LoadedKey(_known(serialization.load_pem_private_key(data, password)), "pem")
        except (ValueError, TypeError) as error:
            raise _password_fault(error) or NotReadable("Could not load PEM-encoded private key") from error
    try:
        bundle = pkcs12.load_pkcs12(data, password)
    except (ValueError, TypeError) as error:
        # cryptography reports "Invalid password" for data that is not PKCS#12, too.
        if "Invalid password" in str(error) and _is_bundle(data):
            raise WrongPassword from error
    else:
        if bundle.key is None:
            raise CommandError("PKCS12-encoded blob does not contain a private key.")
        return LoadedKey(_known(bundle.key), "pkcs12")
    try:
        return LoadedKey(_known(serialization.load_der_private_key(data, password)), "der")
    except (ValueError, TypeError) as error:
        unreadable = NotReadable("Could not deserialize binary data, neither as DER nor PKCS#12.")
        raise _password_fault(error) or unreadable from error


def public_key(data: bytes) -> PublicKey:
    """Parse a public key (PEM or DER) and return it. Raise NotReadable if the data is neither, or if the key's
    algorithm is not supported.
    """
    pem = _BEGIN in data
    try:
        load = serialization.load_pem_public_key if pem else serialization.load_der_public_key
        return _known_public(load(data))
    except ValueError as error:
        raise NotReadable(f"Could not load {'PEM' if pem else 'DER'}-encoded public key.") from error


def certificate(data: bytes, passphrase: str | None = None) -> LoadedCertificate:
    """Parse a certificate and its chain, and return them with their encoding. Raise NotReadable if the data has no
    known form, WrongPassword if PKCS#12 data has another password.
    """
    if _BEGIN in data:
        return _pem_certificate(data)
    try:
        return LoadedCertificate(x509.load_der_x509_certificate(data), "der")
    except ValueError:
        pass
    try:
        bundle = pkcs12.load_pkcs12(data, None if passphrase is None else passphrase.encode())
        if bundle.cert is not None:
            chain = tuple(each.certificate for each in bundle.additional_certs)
            return LoadedCertificate(bundle.cert.certificate, "pkcs12", chain, bundle.cert.friendly_name)
    except (ValueError, TypeError) as error:
        if any(each in str(error) for each in _WRONG) and _is_bundle(data):
            raise WrongPassword from error
    try:
        first, *rest = pkcs7.load_der_pkcs7_certificates(data)
        return LoadedCertificate(first, "pkcs7_der", tuple(rest))
    except ValueError as error:
        raise NotReadable("Could not deserialize binary data, neither as DER nor PKCS#7, PKCS#12.") from error


def revocation_list(data: bytes) -> Loaded[x509.CertificateRevocationList]:
    """Parse a certificate revocation list (PEM or DER) and return it with its encoding. Raise NotReadable if the data
    is neither.
    """
    return _either(data, "certificate revocation list", x509.load_pem_x509_crl, x509.load_der_x509_crl)


def request(data: bytes) -> Loaded[x509.CertificateSigningRequest]:
    """Parse a certificate signing request (PEM or DER) and return it with its encoding.

    Raise NotReadable if the data is neither, x509.InvalidVersion for an unknown version.
    """
    return _either(data, "certificate signing request", x509.load_pem_x509_csr, x509.load_der_x509_csr)


def _either(
    data: bytes, what: str, load_pem: Callable[[bytes], Thing], load_der: Callable[[bytes], Thing]
) -> Loaded[Thing]:
    pem = _BEGIN in data
    try:
        return Loaded((load_pem if pem else load_der)(data), "pem" if pem else "der")
    except x509.InvalidVersion:
        raise
    except ValueError as error:
        raise NotReadable(f"Could not load {'PEM' if pem else 'DER'}-encoded {what}.") from error


def _pem_certificate(data: bytes) -> LoadedCertificate:
    blocks = _PEM.findall(data)
    if blocks and b"-----BEGIN PKCS7" in blocks[0]:
        try:
            first, *rest = pkcs7.load_pem_pkcs7_certificates(blocks[0])
            return LoadedCertificate(first, "pkcs7_pem", tuple(rest))
        except ValueError as error:
            raise NotReadable("Could not load PEM-encoded PKCS#7 blob") from error
    try:
        first = x509.load_pem_x509_certificate(blocks[0])
    except (ValueError, IndexError) as error:
        raise NotReadable("Could not load PEM-encoded certificate.") from error
    chain = []
    for block in blocks[1:]:
        # The file may also contain a private key.
        if b"-----BEGIN CERTIFICATE-----" in block:
            try:
                chain.append(x509.load_pem_x509_certificate(block))
            except ValueError as error:
                raise NotReadable("Could not load PEM-encoded certificate.") from error
    return LoadedCertificate(first, "pem", tuple(chain))


def _is_bundle(data: bytes) -> bool:
    """Return True if the bytes begin like PKCS#12: a sequence whose first member is the version 3."""
    return b"\x02\x01\x03" in data[:8]


def _password_fault(error: Exception) -> PasswordFault | None:
    message = str(error)
    if any(each in message for each in _WRONG):
        return WrongPassword()
    if "private key is encrypted" in message:
        return MissingPassword()
    return NeedlessPassword() if "private key is not encrypted" in message else None


def _known(found: object) -> PrivateKey:
    if not isinstance(found, PrivateKey):
        raise NotReadable(f"{type(found).__name__} is not supported; supported are rsa, ec, ed25519 and ed448 keys")
    return found


def _known_public(found: object) -> PublicKey:
    if not isinstance(found, PublicKey):
        raise NotReadable(f"{type(found).__name__} is not supported; supported are rsa, ec, ed25519 and ed448 keys")
    return found
