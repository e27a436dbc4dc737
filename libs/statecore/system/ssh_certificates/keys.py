"""Parse and encode private keys, public keys and certificates in the formats of OpenSSH. Errors have Salt's messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import SSHCertificate

from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import ManagedHost
from statecore.system.certificates import issuing, references
from statecore.system.certificates.loading import MissingPassword, PasswordFault, WrongPassword

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey

#: Algorithm -> key size in bits if none is given; None for an algorithm with a fixed size.
DEFAULT_SIZES: dict[str, int | None] = {"rsa": 3072, "ec": 256, "ed25519": None}

Found = TypeVar("Found")


class NotReadable(CommandError):
    """Error: a private key, public key or certificate is not in a format of OpenSSH."""


class NeedlessPassword(PasswordFault):
    """Error: the private key is not encrypted, but a password is given."""

    def __init__(self) -> None:
        super().__init__("Password was given but private key is not encrypted")


def content(host: ManagedHost, reference: object) -> bytes:
    """Return the bytes of a key or certificate. The argument ``reference`` is a path of the host, or the data as text
    or bytes. Raise references.NoSuchFile if the path does not exist, InvocationError for any other value.
    """
    return references.content(host, reference, str.encode)


def need_size(algo: object, keysize: int | None) -> int | None:
    """Return the size in bits of a private key to generate; None for ed25519. Raise InvocationError for an algorithm
    that is not rsa, ec or ed25519, or another size.
    """
    if not isinstance(algo, str) or algo not in DEFAULT_SIZES:
        raise InvocationError(
            f"Invalid algorithm specified for generating private key: {algo}. Valid: {', '.join(DEFAULT_SIZES)}"
        )
    return issuing.need_size(algo, keysize or DEFAULT_SIZES[algo])


def make_key(algo: str, keysize: int | None) -> PrivateKey:
    """Return a new random private key: rsa, ec or ed25519. Raise InvocationError for another algorithm or size."""
    made = issuing.make_key(algo, need_size(algo, keysize))
    if not isinstance(made, PrivateKey):
        raise CommandError(f"OpenSSH has no keys of the algorithm {algo}")
    return made


def private_key(data: bytes, passphrase: str | None = None) -> PrivateKey:
    """Parse a private key. Raise NotReadable if it is none of OpenSSH, PasswordFault if the passphrase is wrong, missing
    or not needed.
    """
    password = None if passphrase is None else passphrase.encode()
    try:
        found = _parsed(lambda: serialization.load_ssh_private_key(data, password))
    except (ValueError, TypeError) as error:
        raise _fault(str(error)) from error
    if not isinstance(found, PrivateKey):
        raise NotReadable(f"{type(found).__name__} is not supported; supported are rsa, ec and ed25519 keys")
    return found


def public_key(data: bytes) -> PublicKey:
    """Return the public key that OpenSSH's text (``ssh-ed25519 AAAA...``) holds. Raise NotReadable for other text, and for
    a kind of key that is not rsa, ec or ed25519.
    """
    try:
        found = _parsed(lambda: serialization.load_ssh_public_key(data))
    except ValueError as error:
        raise NotReadable("Could not load OpenSSH public key.") from error
    return supported(found)


def certificate(data: bytes, *, verify: bool = True) -> SSHCertificate:
    """Parse a certificate. With ``verify``, check that its signature was made by the key that it names as signer.

    Raise NotReadable if it cannot be parsed, InvocationError if it is a plain public key, CommandError if the signature
    is wrong.
    """
    try:
        found = _parsed(lambda: serialization.load_ssh_public_identity(data))
    except ValueError as error:
        raise NotReadable("Could not load OpenSSH certificate.") from error
    if not isinstance(found, SSHCertificate):
        raise InvocationError(f"The data decoded to a {type(found).__name__}, not SSHCertificate")
    if verify and not is_intact(found):
        raise CommandError("The signature on the SSH certificate was invalid")
    return found


def is_intact(found: SSHCertificate) -> bool:
    """Return True if a certificate's signature was made by the key that the certificate names as signer."""
    try:
        found.verify_cert_signature()
    except InvalidSignature:
        return False
    return True


def is_signed_by(found: SSHCertificate, signer: PublicKey) -> bool:
    """Return True if a certificate was signed with the private key that belongs to the public key ``signer``."""
    return is_intact(found) and issuing.same_key(supported(found.signature_key()), signer)


def any_public_key(data: bytes, passphrase: str | None = None) -> PublicKey:
    """Return the public key of a public key, certificate or private key. Raise CommandError for any other data, and
    PasswordFault for a private key whose passphrase is wrong, missing or not needed.
    """
    loads: tuple[Callable[[], PublicKey], ...] = (
        lambda: public_key(data),
        lambda: supported(certificate(data).public_key()),
        lambda: private_key(data, passphrase).public_key(),
    )
    for load in loads:
        try:
            return load()
        except PasswordFault:
            raise
        except (CommandError, InvocationError):
            continue
    raise CommandError("Could not load key as certificate, public key or private key")


def supported(found: object) -> PublicKey:
    """Return a public key. Raise NotReadable for an algorithm that is not rsa, ec or ed25519."""
    if not isinstance(found, PublicKey):
        raise NotReadable(f"{type(found).__name__} is not supported; supported are rsa, ec and ed25519 keys")
    return found


def encoded_public(key: PublicKey) -> str:
    """Return a public key as OpenSSH writes it in one line, without a comment."""
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()


def encoded_private(key: PrivateKey, passphrase: str | None) -> bytes:
    """Return a private key in the format of OpenSSH, encrypted if there is a ``passphrase``. Raise CommandError if the
    library for that is missing.
    """
    locked = (
        serialization.NoEncryption()
        if passphrase is None
        else serialization.BestAvailableEncryption(passphrase.encode())
    )
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH)
    try:
        return _parsed(lambda: key.private_bytes(*form, locked))
    except ValueError as error:
        raise InvocationError(f"passphrase: {error}") from error


def _parsed(load: Callable[[], Found]) -> Found:
    try:
        return load()
    except UnsupportedAlgorithm as error:
        if "bcrypt" in str(error):
            raise CommandError(
                "encrypted keys of OpenSSH need bcrypt, which is not installed here: install saltern-statecore[certificates]"
            ) from error
        raise NotReadable(str(error)) from error


def _fault(message: str) -> CommandError | InvocationError:
    if "Key is password-protected" in message:
        return MissingPassword()
    if "broken checksum" in message:
        return WrongPassword()
    return (
        NeedlessPassword()
        if "private key is not encrypted" in message
        else NotReadable("Could not load OpenSSH private key")
    )
