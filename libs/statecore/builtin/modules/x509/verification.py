"""Functions of ``x509`` that check signatures, key pairs and expiry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from statecore.builtin.modules.x509.host_files import reader
from statecore.builtin.modules.x509.inspection import get_public_key
from statecore.model.context import Context
from statecore.system.certificates import descriptions, issuing, loading, references
from statecore.system.certificates.arguments import passphrase as password
from statecore.system.certificates.arguments import whole


def expires(ctx: Context, certificate: object, days: int = 0) -> bool:
    """Return whether an X.509 certificate is expired, or will expire within ``days`` days.

    CLI Example:

        salt '*' x509.expires /etc/pki/my.crt days=7
    """
    found = loading.certificate(reader(ctx)(certificate)).certificate
    return found.not_valid_after_utc <= datetime.now(UTC) + timedelta(days=whole("days", days, 0))


def expired(ctx: Context, certificate: object) -> dict[str, object]:
    """Return a map with ``expired`` (bool, for an X.509 certificate), the certificate's common name (``cn``) and its
    ``path``.
    """
    return _introduced(ctx, certificate) | {"expired": expires(ctx, certificate)}


def will_expire(ctx: Context, certificate: object, days: int) -> dict[str, object]:
    """Return a map with ``will_expire`` (bool: whether an X.509 certificate expires within ``days``), ``check_days``,
    the certificate's common name (``cn``) and its ``path``.
    """
    return {"check_days": days, **_introduced(ctx, certificate), "will_expire": expires(ctx, certificate, days)}


def verify_private_key(ctx: Context, private_key: object, public_key: object, passphrase: str | None = None) -> bool:
    """Return whether a private key belongs to a public key, certificate or request.

    CLI Example:

        salt '*' x509.verify_private_key /etc/pki/my.key /etc/pki/my.crt
    """
    key = loading.key(reader(ctx)(private_key), password("passphrase", passphrase)).key
    return issuing.same_key(loading.public_key(get_public_key(ctx, public_key).encode()), key.public_key())


def verify_signature(
    ctx: Context, certificate: object, signing_pub_key: object = None, signing_pub_key_passphrase: str | None = None
) -> bool:
    """Return whether an X.509 certificate was signed with the private key of ``signing_pub_key``, by default with its
    own key.
    """
    found = loading.certificate(reader(ctx)(certificate)).certificate
    signer = get_public_key(ctx, signing_pub_key or certificate, signing_pub_key_passphrase)
    return issuing.is_signed_by(found, loading.public_key(signer.encode()))


def verify_crl(ctx: Context, crl: object, cert: object) -> bool:
    """Return whether a certificate revocation list was signed with the private key of the certificate ``cert``."""
    found = loading.revocation_list(reader(ctx)(crl)).value
    return bool(found.is_signature_valid(loading.public_key(get_public_key(ctx, cert).encode())))


def _introduced(ctx: Context, certificate: object) -> dict[str, object]:
    found = loading.certificate(reader(ctx)(certificate)).certificate
    common = descriptions.parts(found.subject).get("CN")
    return ({"path": certificate} if references.is_path(certificate) else {}) | (
        {} if common is None else {"cn": common}
    )
