"""Functions of ``ssh_pki`` that describe and check keys and certificates."""

from __future__ import annotations

from statecore.builtin.modules.ssh_pki.signers import reader
from statecore.model.context import Context
from statecore.system.certificates import issuing
from statecore.system.certificates.arguments import passphrase as password
from statecore.system.ssh_certificates import descriptions, desired, keys


def expires(ctx: Context, certificate: object, ttl: str | float = 0) -> bool:
    """Return whether a certificate of OpenSSH is expired, or will expire within ``ttl``: seconds, or a duration such as
    ``12h`` or ``30d``.

    CLI Example:

        salt '*' ssh_pki.expires /root/.ssh/id_rsa.crt ttl=7d
    """
    found = keys.certificate(reader(ctx)(certificate))
    return desired.ends_within(found, desired.seconds("ttl", ttl) or 0)


def get_private_key_size(ctx: Context, private_key: object, passphrase: str | None = None) -> int | None:
    """Return the size in bits of a private key of OpenSSH; None for ed25519.

    CLI Example:

        salt '*' ssh_pki.get_private_key_size /root/.ssh/id_rsa
    """
    return issuing.key_size(keys.private_key(reader(ctx)(private_key), password("passphrase", passphrase)))


def get_public_key(ctx: Context, key: object, passphrase: str | None = None) -> str:
    """Return the public key, in one line, of a public key, certificate or private key of OpenSSH. Raise CommandError
    for any other data.

    CLI Example:

        salt '*' ssh_pki.get_public_key /root/.ssh/id_rsa
    """
    return keys.encoded_public(keys.any_public_key(reader(ctx)(key), password("passphrase", passphrase)))


def read_certificate(ctx: Context, certificate: object) -> dict[str, object]:
    """Return a map that describes a certificate of OpenSSH: cert_type, valid_principals, key_id, key_type, key_size,
    serial_number, not_before, not_after, public_key, issuer_public_key, critical_options, extensions, and fingerprints
    of both keys.

    CLI Example:

        salt '*' ssh_pki.read_certificate /root/.ssh/id_rsa.crt
    """
    return descriptions.certificate(keys.certificate(reader(ctx)(certificate)))


def verify_private_key(ctx: Context, private_key: object, public_key: object, passphrase: str | None = None) -> bool:
    """Return whether a private key of OpenSSH belongs to a public key, certificate or private key.

    CLI Example:

        salt '*' ssh_pki.verify_private_key /root/.ssh/id_rsa /root/.ssh/id_rsa.crt
    """
    read = reader(ctx)
    key = keys.private_key(read(private_key), password("passphrase", passphrase))
    return issuing.same_key(keys.any_public_key(read(public_key)), key.public_key())


def verify_signature(
    ctx: Context, certificate: object, signing_pub_key: object, signing_pub_key_passphrase: str | None = None
) -> bool:
    """Return whether a certificate of OpenSSH was signed with the private key of ``signing_pub_key`` (a public key,
    certificate or private key).

    CLI Example:

        salt '*' ssh_pki.verify_signature /root/.ssh/id_rsa.crt /etc/pki/ssh/ca.pub
    """
    read = reader(ctx)
    found = keys.certificate(read(certificate), verify=False)
    locked = password("signing_pub_key_passphrase", signing_pub_key_passphrase)
    return keys.is_signed_by(found, keys.any_public_key(read(signing_pub_key), locked))
