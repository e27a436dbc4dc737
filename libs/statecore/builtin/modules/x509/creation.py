"""Keys, certificates, requests and revocation lists, made."""

from __future__ import annotations

from typing import Any

from statecore.builtin.modules.x509.host_files import put, reader, told
from statecore.builtin.modules.x509.signers import copied, policy_of, signed_by
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.certificates import arguments, issuing, loading, policies
from statecore.system.certificates.arguments import CertificateOrder
from statecore.system.certificates.arguments import passphrase as password


def create_private_key(
    ctx: Context,
    algo: str = "rsa",
    keysize: int | None = None,
    passphrase: str | None = None,
    encoding: str = "pem",
    pkcs12_encryption_compat: bool = False,
    path: str | None = None,
    raw: bool = False,
    bits: int | None = None,
    **kwargs: Any,
) -> Any:
    """A new key: rsa (2048, 3072, 4096 bits), ec (256, 384, 521), ed25519 or ed448; written to ``path`` where there is one.

    CLI Example:

        salt '*' x509.create_private_key algo=ec keysize=384
    """
    _nothing_more(kwargs)
    issuing.need_encoding(encoding, issuing.KEYS)
    key = issuing.make_key(algo, bits or keysize)
    data = issuing.encoded_key(key, encoding, password("passphrase", passphrase), pkcs12_encryption_compat)
    if path is None:
        return told(data, encoding, raw)
    put(ctx, path, data, mode=0o600)
    return f"PEM written to {path}" if encoding == "pem" else f"Private key written to {path}"


def create_certificate(
    ctx: Context,
    ca_server: str | None = None,
    signing_policy: str | None = None,
    encoding: str = "pem",
    append_certs: Any = None,
    pkcs12_passphrase: str | None = None,
    pkcs12_encryption_compat: bool = False,
    pkcs12_friendlyname: str | None = None,
    path: str | None = None,
    overwrite: bool = True,
    raw: bool = False,
    **kwargs: Any,
) -> Any:
    """A certificate, signed here or by the minion ``ca_server``; written to ``path`` where there is one.

    signing_private_key, signing_private_key_passphrase, signing_cert
        who signs; without signing_cert the certificate is its own issuer's
    private_key, private_key_passphrase, public_key, csr
        whose key is certified: the first of these that there is
    subject, or C, ST, L, STREET, O, OU, CN, MAIL, SN, GN, UID, SERIALNUMBER
        whom it names
    serial_number, not_before, not_after, days_valid, digest
        dates are ``%Y-%m-%d %H:%M:%S`` in UTC; days_valid is 365
    basicConstraints, keyUsage, extendedKeyUsage, subjectKeyIdentifier, authorityKeyIdentifier, issuerAltName, subjectAltName,
    authorityInfoAccess, crlDistributionPoints, certificatePolicies, policyConstraints, inhibitAnyPolicy, nameConstraints, noCheck,
    tlsfeature
        extensions, as OpenSSL's configuration has them, or as maps and lists
    signing_policy
        the name of what the signer lays down
    copypath, prepend_cn
        a directory that gets a copy, named by the serial number, behind the common name

    CLI Example:

        salt '*' x509.create_certificate signing_private_key=/etc/pki/myca.key csr=/etc/pki/my.csr
    """
    given = _plain(kwargs)
    issuing.need_certificate_encoding(encoding, bool(append_certs))
    if path and not overwrite and ctx.host.path(path).is_file():
        return f"The file at {path} exists and overwrite was set to false"
    read = reader(ctx)
    if ca_server:
        certificate, own = signed_by(ctx, ca_server, signing_policy, given)
    else:
        order = arguments.certificate(read, policies.merged(policy_of(ctx, signing_policy), given))
        certificate, own = _signed(ctx, order, given), order.own_key
    chain = append_certs if isinstance(append_certs, list) else [append_certs] if append_certs else []
    data = issuing.encoded_certificate(
        certificate,
        encoding,
        [loading.certificate(read(each)).certificate for each in chain],
        own if encoding == "pkcs12" else None,
        password("pkcs12_passphrase", pkcs12_passphrase),
        pkcs12_encryption_compat,
        pkcs12_friendlyname,
    )
    if path is None:
        return told(data, encoding, raw)
    put(ctx, path, data)
    return f"PEM written to {path}" if encoding == "pem" else f"Certificate written to {path}"


def create_csr(
    ctx: Context,
    private_key: Any,
    private_key_passphrase: str | None = None,
    digest: str = "sha256",
    encoding: str = "pem",
    path: str | None = None,
    raw: bool = False,
    **kwargs: Any,
) -> Any:
    """A request for a certificate of this key. Subject and extensions as for create_certificate, but for the issuer's.

    CLI Example:

        salt '*' x509.create_csr private_key=/etc/pki/myca.key CN='My Cert'
    """
    given = _plain(kwargs)
    digest = given.pop("digest", digest)
    issuing.need_encoding(encoding, issuing.OTHERS)
    wanted, key = arguments.request(reader(ctx), private_key, private_key_passphrase, given)
    data = issuing.encoded(wanted.signed(key, issuing.need_digest(digest)), encoding)
    if path is None:
        return told(data, encoding, raw)
    put(ctx, path, data)
    return f"PEM written to {path}" if encoding == "pem" else f"CSR written to {path}"


def create_crl(
    ctx: Context,
    signing_private_key: Any,
    revoked: list[Any],
    signing_cert: Any = None,
    signing_private_key_passphrase: str | None = None,
    include_expired: bool = False,
    days_valid: int | None = None,
    digest: str = "sha256",
    encoding: str = "pem",
    extensions: dict[str, Any] | None = None,
    path: str | None = None,
    raw: bool = False,
    **kwargs: Any,
) -> Any:
    """A list of revoked certificates, valid for 100 days where ``days_valid`` says nothing else.

    revoked
        maps of ``certificate`` or ``serial_number``, and at will ``revocation_date``, ``not_after``, ``extensions``
        (certificateIssuer, CRLReason, invalidityDate)
    extensions
        authorityKeyIdentifier, authorityInfoAccess, cRLNumber, deltaCRLIndicator, freshestCRL, issuerAltName,
        issuingDistributionPoint

    CLI Example:

        salt '*' x509.create_crl signing_cert=/etc/pki/ca.crt signing_private_key=/etc/pki/ca.key revoked='[{"serial_number": "A"}]'
    """
    _nothing_more(kwargs)
    issuing.need_encoding(encoding, issuing.OTHERS)
    used = issuing.need_digest(digest)
    wanted, key = arguments.revocation_list(
        reader(ctx),
        signing_private_key,
        signing_private_key_passphrase,
        signing_cert,
        revoked,
        include_expired,
        days_valid,
        extensions or {},
    )
    data = issuing.encoded(wanted.signed(key, used), encoding)
    if path is None:
        return told(data, encoding, raw)
    put(ctx, path, data)
    return f"PEM written to {path}" if encoding == "pem" else f"CRL written to {path}"


def _signed(ctx: Context, order: CertificateOrder, given: dict[str, Any]) -> Any:
    if order.signing_key is None:
        raise CommandError("there is no key to sign with")
    certificate = order.desired.signed(order.signing_key, order.digest)
    copied(ctx, certificate, given)
    return certificate


def _plain(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by their short names. Publications bring their own (__pub_jid, …)."""
    given = policies.short({name: value for name, value in kwargs.items() if not name.startswith("__")})
    return {name: value for name, value in given.items() if value is not None}


def _nothing_more(kwargs: dict[str, Any]) -> None:
    if unknown := sorted(_plain(kwargs)):
        raise InvocationError(f"Unrecognized keyword arguments: {unknown}")
