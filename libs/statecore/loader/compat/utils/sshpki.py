"""``salt.utils.sshpki`` for users' modules: keys, certificates and signing policies of OpenSSH. It needs the library
cryptography.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import SSHCertificate

from statecore.loader.compat.exceptions import SaltInvocationError
from statecore.system.ssh_certificates import keys, policies
from statecore.system.ssh_certificates.keys import PrivateKey, PublicKey


def load_file_or_bytes(fob: object) -> bytes:
    """Return bytes: the content of the file at an absolute path, or the text or bytes themselves."""
    if isinstance(fob, str) and fob.startswith("/") and "\n" not in fob and Path(fob).is_file():
        return Path(fob).read_bytes()
    if isinstance(fob, str):
        return fob.encode()
    if isinstance(fob, bytes):
        return fob
    raise SaltInvocationError("Could not load provided source. You need to pass an existing file, string or raw bytes.")


def load_privkey(pk: object, passphrase: str | None = None) -> PrivateKey:
    """Return the private key in ``pk``: a key, text, bytes or the path of a file. Raise CommandExecutionError for any
    other data, SaltInvocationError if the passphrase is wrong, missing or not needed.
    """
    return pk if isinstance(pk, PrivateKey) else keys.private_key(load_file_or_bytes(pk), passphrase)


def load_pubkey(pk: object) -> PublicKey:
    """Return the public key in ``pk``: a key, text, bytes or the path of a file. Raise CommandExecutionError for any
    other data.
    """
    return pk if isinstance(pk, PublicKey) else keys.public_key(load_file_or_bytes(pk))


def load_cert(cert: object, verify: bool = True) -> SSHCertificate:
    """Return the certificate in ``cert``: a certificate, text, bytes or the path of a file. With ``verify``, check its
    signature. Raise CommandExecutionError or SaltInvocationError for any other data.
    """
    return cert if isinstance(cert, SSHCertificate) else keys.certificate(load_file_or_bytes(cert), verify=verify)


def encode_public_key(public_key: PublicKey) -> bytes:
    """Return a public key as bytes, as OpenSSH writes it in one line."""
    return keys.encoded_public(public_key).encode()


def get_public_key(key: object, passphrase: str | None = None) -> str:
    """Return the public key of a public key, certificate or private key as text."""
    if isinstance(key, PrivateKey):
        return keys.encoded_public(key.public_key())
    if isinstance(key, SSHCertificate):
        return keys.encoded_public(keys.supported(key.public_key()))
    if isinstance(key, PublicKey):
        return keys.encoded_public(key)
    return keys.encoded_public(keys.any_public_key(load_file_or_bytes(key), passphrase))


def verify_signature(
    certificate: object, signing_pub_key: object, signing_pub_key_passphrase: str | None = None
) -> bool:
    """Return whether a certificate was signed with the private key of ``signing_pub_key``."""
    signer = get_public_key(signing_pub_key, signing_pub_key_passphrase)
    return keys.is_signed_by(load_cert(certificate, verify=False), keys.public_key(signer.encode()))


def merge_signing_policy(policy: Mapping[str, object] | None, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Change the arguments of a certificate to those that a signing policy allows, and return them."""
    found = policies.merged(policy or {}, kwargs)
    kwargs.clear()
    kwargs.update(found)
    return kwargs
