"""Functions of ``x509`` that convert keys, certificates, requests and lists to another encoding."""

from __future__ import annotations

from statecore.builtin.modules.x509.host_files import encoded_result, reader
from statecore.model.context import Context
from statecore.system.certificates import issuing, loading
from statecore.system.certificates.arguments import passphrase as password


def encode_certificate(
    ctx: Context,
    certificate: object,
    encoding: str = "pem",
    append_certs: object = None,
    private_key: object = None,
    private_key_passphrase: str | None = None,
    pkcs12_passphrase: str | None = None,
    pkcs12_encryption_compat: bool = False,
    pkcs12_friendlyname: str | None = None,
    raw: bool = False,
) -> object:
    """Return an X.509 certificate encoded as pem or pkcs7_pem, or in base64 as der, pkcs7_der or pkcs12.

    ``append_certs`` are appended; pkcs12 also includes the private key.

    CLI Example:

        salt '*' x509.encode_certificate /etc/pki/my.crt pem /etc/pki/ca.crt
    """
    issuing.need_certificate_encoding(encoding, bool(append_certs))
    read = reader(ctx)
    chain = append_certs if isinstance(append_certs, list) else [append_certs] if append_certs else []
    key = (
        loading.key(read(private_key), password("private_key_passphrase", private_key_passphrase))
        if private_key
        else None
    )
    data = issuing.encoded_certificate(
        loading.certificate(read(certificate)).certificate,
        encoding,
        [loading.certificate(read(each)).certificate for each in chain],
        key.key if key else None,
        password("pkcs12_passphrase", pkcs12_passphrase),
        pkcs12_encryption_compat,
        pkcs12_friendlyname,
    )
    return encoded_result(data, encoding, raw)


def encode_private_key(
    ctx: Context,
    private_key: object,
    encoding: str = "pem",
    passphrase: str | None = None,
    private_key_passphrase: str | None = None,
    pkcs12_encryption_compat: bool = False,
    raw: bool = False,
) -> object:
    """Return a private key encoded as pem, or in base64 as der or pkcs12. It is encrypted with ``passphrase`` if one is
    given.

    CLI Example:

        salt '*' x509.encode_private_key /etc/pki/my.key der
    """
    issuing.need_encoding(encoding, issuing.KEYS)
    found = loading.key(reader(ctx)(private_key), password("private_key_passphrase", private_key_passphrase))
    locked = password("passphrase", passphrase)
    return encoded_result(issuing.encoded_key(found.key, encoding, locked, pkcs12_encryption_compat), encoding, raw)


def encode_csr(ctx: Context, csr: object, encoding: str = "pem", raw: bool = False) -> object:
    """Return a certificate request encoded as pem, or in base64 as der."""
    issuing.need_encoding(encoding, issuing.OTHERS)
    return encoded_result(issuing.encoded(loading.request(reader(ctx)(csr)).value, encoding), encoding, raw)


def encode_crl(ctx: Context, crl: object, encoding: str = "pem", raw: bool = False) -> object:
    """Return a certificate revocation list encoded as pem, or in base64 as der."""
    issuing.need_encoding(encoding, issuing.OTHERS)
    return encoded_result(issuing.encoded(loading.revocation_list(reader(ctx)(crl)).value, encoding), encoding, raw)
