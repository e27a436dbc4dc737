"""Functions of ``x509`` that create keys, certificates, requests and revocation lists."""

from __future__ import annotations

from typing import Any

from cryptography import x509

from statecore.builtin.modules.x509.host_files import encoded_result, reader
from statecore.builtin.modules.x509.signers import policy_of, signed_by, write_copy
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.certificates import arguments, issuing, loading, policies
from statecore.system.certificates.arguments import CertificateOrder
from statecore.system.certificates.arguments import passphrase as password
from statecore.system.certificates.host_files import write_file


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
    **kwargs: object,
) -> object:
    """Create a private key: rsa (2048, 3072, 4096 bits), ec (256, 384, 521 bits), ed25519 or ed448.

    Return the key, or write it to ``path`` and return a sentence.

    CLI Example:

        salt '*' x509.create_private_key algo=ec keysize=384
    """
    _nothing_more(kwargs)
    issuing.need_encoding(encoding, issuing.KEYS)
    key = issuing.make_key(algo, bits or keysize)
    data = issuing.encoded_key(key, encoding, password("passphrase", passphrase), pkcs12_encryption_compat)
    if path is None:
        return encoded_result(data, encoding, raw)
    write_file(ctx, path, data, mode=0o600)
    return f"PEM written to {path}" if encoding == "pem" else f"Private key written to {path}"


def create_certificate(
    ctx: Context,
    ca_server: str | None = None,
    signing_policy: str | None = None,
    encoding: str = "pem",
    append_certs: object = None,
    pkcs12_passphrase: str | None = None,
    pkcs12_encryption_compat: bool = False,
    pkcs12_friendlyname: str | None = None,
    path: str | None = None,
    overwrite: bool = True,
    raw: bool = False,
    **kwargs: object,
) -> object:
    """Create an X.509 certificate, signed on this minion or by the minion ``ca_server``.

    Return the certificate, or write it to ``path`` and return a sentence.

    signing_private_key, signing_private_key_passphrase, signing_cert
        the signer; without signing_cert the certificate is self-signed
    private_key, private_key_passphrase, public_key, csr
        the key to certify: the first one given
    subject, or C, ST, L, STREET, O, OU, CN, MAIL, SN, GN, UID, SERIALNUMBER
        the certificate's subject
    serial_number, not_before, not_after, days_valid, digest
        dates are ``%Y-%m-%d %H:%M:%S`` in UTC; days_valid is 365 by default
    basicConstraints, keyUsage, extendedKeyUsage, subjectKeyIdentifier, authorityKeyIdentifier, issuerAltName,
    subjectAltName, authorityInfoAccess, crlDistributionPoints, certificatePolicies, policyConstraints,
    inhibitAnyPolicy, nameConstraints, noCheck, tlsfeature
        extensions, in the syntax of OpenSSL's configuration, or as maps and lists
    signing_policy
        the name of a policy of the signer, whose values override the arguments
    copypath, prepend_cn
        a directory for a copy, named by the serial number; with prepend_cn after the common name

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
        return encoded_result(data, encoding, raw)
    write_file(ctx, path, data)
    return f"PEM written to {path}" if encoding == "pem" else f"Certificate written to {path}"


def create_csr(
    ctx: Context,
    private_key: object,
    private_key_passphrase: str | None = None,
    digest: str = "sha256",
    encoding: str = "pem",
    path: str | None = None,
    raw: bool = False,
    **kwargs: object,
) -> object:
    """Create a certificate request for a private key. Subject and extensions are given as in
    ``x509.create_certificate``.

    Return the request, or write it to ``path`` and return a sentence.

    CLI Example:

        salt '*' x509.create_csr private_key=/etc/pki/myca.key CN='My Cert'
    """
    given = _plain(kwargs)
    digest = given.pop("digest", digest)
    issuing.need_encoding(encoding, issuing.OTHERS)
    wanted, key = arguments.request(reader(ctx), private_key, private_key_passphrase, given)
    data = issuing.encoded(wanted.signed(key, issuing.need_digest(digest)), encoding)
    if path is None:
        return encoded_result(data, encoding, raw)
    write_file(ctx, path, data)
    return f"PEM written to {path}" if encoding == "pem" else f"CSR written to {path}"


def create_crl(
    ctx: Context,
    signing_private_key: object,
    revoked: list[object],
    signing_cert: object = None,
    signing_private_key_passphrase: str | None = None,
    include_expired: bool = False,
    days_valid: int | None = None,
    digest: str = "sha256",
    encoding: str = "pem",
    extensions: dict[str, object] | None = None,
    path: str | None = None,
    raw: bool = False,
    **kwargs: object,
) -> object:
    """Create a list of revoked certificates, valid for ``days_valid`` days (default 100).

    Return the list, or write it to ``path`` and return a sentence.

    revoked
        maps of ``certificate`` or ``serial_number``, and optionally ``revocation_date``, ``not_after``, ``extensions``
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
        return encoded_result(data, encoding, raw)
    write_file(ctx, path, data)
    return f"PEM written to {path}" if encoding == "pem" else f"CRL written to {path}"


def _signed(ctx: Context, order: CertificateOrder, given: dict[str, object]) -> x509.Certificate:
    if order.signing_key is None:
        raise CommandError("there is no key to sign with")
    certificate = order.desired.signed(order.signing_key, order.digest)
    write_copy(ctx, certificate, given)
    return certificate


def _plain(kwargs: dict[str, object]) -> dict[str, Any]:
    """Return the keyword arguments of a function that creates a certificate or request: their names shortened, without
    None values and without those of the publication (``__pub_...``).
    """
    given = policies.short({name: value for name, value in kwargs.items() if not name.startswith("__")})
    return {name: value for name, value in given.items() if value is not None}


def _nothing_more(kwargs: dict[str, object]) -> None:
    if unknown := sorted(_plain(kwargs)):
        raise InvocationError(f"Unrecognized keyword arguments: {unknown}")
