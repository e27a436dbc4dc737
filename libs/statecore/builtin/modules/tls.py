"""Self-signed certificates, and the fields of a certificate: a part of Salt's ``tls`` execution module.

For authorities and for certificates that they sign, use ``x509``. Certificates are in ``<path>/<tls_dir>/certs``; the path
is the argument ``cacert_path``, else the option ``ca.cert_base_path`` (/etc/pki).
"""

from __future__ import annotations

import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError

#: Part of a subject -> its object identifier, in the order of Salt's subjects.
_PARTS = {
    "C": NameOID.COUNTRY_NAME,
    "ST": NameOID.STATE_OR_PROVINCE_NAME,
    "L": NameOID.LOCALITY_NAME,
    "O": NameOID.ORGANIZATION_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "CN": NameOID.COMMON_NAME,
    "emailAddress": NameOID.EMAIL_ADDRESS,
}

_DIGESTS = {each.name: each for each in (hashes.SHA256(), hashes.SHA384(), hashes.SHA512())}


def cert_base_path(ctx: Context, cacert_path: str | None = None) -> str:
    """Return the directory of the host below which ``tls`` keeps certificates.

    CLI Example:

        salt '*' tls.cert_base_path
    """
    kept = ctx.scratch.get("tls.path")
    return str(cacert_path or kept or ctx.call("config.option", "ca.cert_base_path") or "/etc/pki")


def set_ca_path(ctx: Context, cacert_path: str | None) -> str:
    """Set the directory below which ``tls`` keeps certificates, for the rest of this job or state run. Return the
    directory.

    CLI Example:

        salt '*' tls.set_ca_path /etc/certs
    """
    if cacert_path:
        ctx.scratch["tls.path"] = cacert_path
    return cert_base_path(ctx)


def create_self_signed_cert(
    ctx: Context,
    tls_dir: str = "tls",
    bits: int = 2048,
    days: int = 365,
    CN: str = "localhost",
    C: str | None = "US",
    ST: str | None = "Utah",
    L: str | None = "Salt Lake City",
    O: str | None = "SaltStack",  # noqa: E741 - Salt's name
    OU: str | None = None,
    emailAddress: str | None = None,
    cacert_path: str | None = None,
    cert_filename: str | None = None,
    digest: str = "sha256",
    replace: bool = False,
) -> str:
    """Make a private key and a self-signed certificate for it. Return a sentence with the paths, or that the
    certificate exists already.

    bits, days
        size of the RSA key; days that the certificate is valid
    CN, C, ST, L, O, OU, emailAddress
        parts of the subject
    cert_filename
        name of the files without suffix; default: CN
    digest
        sha256, sha384 or sha512
    replace
        True: also replace an existing key and certificate

    CLI Example:

        salt '*' tls.create_self_signed_cert CN='test.mysite.org'
    """
    if digest not in _DIGESTS:
        raise InvocationError(f"digest must be one of {', '.join(_DIGESTS)}, not {digest}")
    directory, name = f"{set_ca_path(ctx, cacert_path)}/{tls_dir}/certs", cert_filename or CN
    key_path, cert_path = f"{directory}/{name}.key", f"{directory}/{name}.crt"
    if not replace and ctx.host.path(cert_path).exists():
        return f'Certificate "{name}" already exists'
    given = {"C": C, "ST": ST, "L": L, "O": O, "OU": OU, "CN": CN, "emailAddress": emailAddress}
    key = rsa.generate_private_key(65537, int(bits))
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    try:
        subject = x509.Name([x509.NameAttribute(_PARTS[part], str(value)) for part, value in given.items() if value])
        certificate = (
            x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
            .not_valid_before(now)
            .not_valid_after(now + datetime.timedelta(days=int(days)))
            .sign(key, _DIGESTS[digest])
        )
    except ValueError as error:
        raise InvocationError(f"no certificate can be made: {error}") from error
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    managed_file.make_directories(ctx.host, ctx.host.path(directory), Attributes(), ctx.host.root)
    managed_file.replace(ctx.host, ctx.host.path(key_path), pem, Attributes(mode=0o600))
    text = certificate.public_bytes(serialization.Encoding.PEM)
    managed_file.replace(ctx.host, ctx.host.path(cert_path), text, Attributes(mode=0o644))
    return f'Created Private Key: "{key_path}" Created Certificate: "{cert_path}"'


def cert_info(ctx: Context, cert: str, digest: str = "sha256") -> dict[str, object]:
    """Return the fields of a certificate as a map: ``subject``, ``issuer``, ``serial_number``, ``fingerprint``,
    ``not_before`` and ``not_after`` (seconds since 1970), ``subject_alt_names`` and ``signature_algorithm``.
    Raise CommandError for data that is no certificate.

    cert
        a path of the host, or the text of the certificate
    digest
        algorithm of the fingerprint

    CLI Example:

        salt '*' tls.cert_info /dir/for/certs/cert.pem
    """
    found = _loaded(ctx, cert)
    if digest not in _DIGESTS:
        raise InvocationError(f"digest must be one of {', '.join(_DIGESTS)}, not {digest}")
    info: dict[str, object] = {
        "fingerprint": found.fingerprint(_DIGESTS[digest]).hex(":").upper(),
        "subject": _name(found.subject),
        "issuer": _name(found.issuer),
        "serial_number": found.serial_number,
        "not_before": int(found.not_valid_before_utc.timestamp()),
        "not_after": int(found.not_valid_after_utc.timestamp()),
    }
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = None
    if names is not None:
        addresses = [str(each) for each in names.get_values_for_type(x509.IPAddress)]
        info["subject_alt_names"] = [*names.get_values_for_type(x509.DNSName), *addresses]
    algorithm = found.signature_hash_algorithm
    if algorithm is not None and "RSA" in found.signature_algorithm_oid._name:
        info["signature_algorithm"] = f"{algorithm.name}WithRSAEncryption"
    return info


def get_expiration_date(ctx: Context, cert: str, date_format: str = "%Y-%m-%d") -> str:
    """Return the day on which a certificate expires (in UTC) as text, by default as YYYY-MM-DD. Raise CommandError
    for data that is no certificate.

    date_format
        format of strftime

    CLI Example:

        salt '*' tls.get_expiration_date /path/to/foo.crt date_format='%d/%m/%Y'
    """
    return _loaded(ctx, cert).not_valid_after_utc.strftime(date_format)


def _loaded(ctx: Context, cert: str) -> x509.Certificate:
    try:
        data = cert.encode() if "-----BEGIN" in cert else ctx.host.path(cert).read_bytes()
        return x509.load_pem_x509_certificate(data)
    except OSError as error:
        raise CommandError(f"{cert}: {error.strerror}") from error
    except ValueError as error:
        raise CommandError(f"{'the text' if '-----BEGIN' in cert else cert}: no certificate: {error}") from error


def _name(name: x509.Name) -> dict[str, str]:
    short = {oid: part for part, oid in _PARTS.items()}
    return {short.get(each.oid, each.oid.dotted_string): str(each.value) for each in name}
