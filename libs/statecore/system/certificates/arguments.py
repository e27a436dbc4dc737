"""Arguments of the ``x509`` functions: checks them, and loads the keys and certificates that they name.

The result is given to the execution module, which signs, and to the state module, which compares first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509

from statecore.model.errors import InvocationError
from statecore.model.values import to_int
from statecore.system.certificates import desired, extensions, issuing, loading, names
from statecore.system.certificates.loading import PrivateKey

#: Function from a reference (path, text or bytes) to its bytes.
Read = Callable[[object], bytes]

#: Default validity in days of a certificate and of a revocation list, as in Salt 3008.
CERTIFICATE_DAYS = 365
LIST_DAYS = 100

_SUBJECT = frozenset({"subject", *names.ATTRIBUTES})

_CERTIFICATE = frozenset(
    {
        *_SUBJECT,
        *extensions.CERTIFICATE,
        "digest",
        "signing_private_key",
        "signing_private_key_passphrase",
        "signing_cert",
        "public_key",
        "private_key",
        "private_key_passphrase",
        "csr",
        "serial_number",
        "not_before",
        "not_after",
        "days_valid",
        "copypath",
        "prepend_cn",
    }
)

_REQUEST = frozenset({*_SUBJECT, *extensions.CERTIFICATE})


@dataclass(frozen=True, slots=True)
class CertificateOrder:
    """A desired X.509 certificate, the private keys to sign it, and the digest: the checked arguments of a call."""

    desired: desired.WantedCertificate
    #: None if another minion (ca_server) signs.
    signing_key: PrivateKey | None
    #: The certified private key, if the arguments name it.
    own_key: PrivateKey | None
    digest: str


def certificate(read: Read, given: Mapping[str, object], *, remote: bool = False) -> CertificateOrder:
    """Check the arguments for an X.509 certificate, load the keys and certificates that they name, and return the
    CertificateOrder.

    With ``remote`` another minion signs, so no signing key is loaded. Raise InvocationError for a missing, unknown or
    malformed argument; CommandError for a key or certificate that cannot be used.
    """
    _known(given, _CERTIFICATE)
    digest = issuing.need_digest(given.get("digest") or "sha256")
    request = loading.request(read(given["csr"])).value if given.get("csr") else None
    issuer = loading.certificate(read(given["signing_cert"])).certificate if given.get("signing_cert") else None
    signing = None
    if not remote:
        if not given.get("signing_private_key"):
            raise InvocationError("Creating a certificate locally at least requires a signing private key.")
        signing = _key(read, given["signing_private_key"], given.get("signing_private_key_passphrase"))
        if issuer is not None and not _pair(issuer, signing):
            raise InvocationError("Signing private key does not match the certificate's public key")
    own = None
    if issuer is None:
        if signing is None:
            raise InvocationError("the signing policy of the ca_server has no signing_cert")
        own, holder = signing, signing.public_key()
    elif given.get("private_key"):
        own = _key(read, given["private_key"], given.get("private_key_passphrase"))
        holder = own.public_key()
    elif given.get("public_key"):
        holder = loading.public_key(read(given["public_key"]))
    elif request is not None:
        holder = loading.public_key(issuing.public_pem(request.public_key()).encode())
    else:
        raise InvocationError(
            "This certificate is not self-signed (signing_cert is set) and thus "
            "needs public_key, private_key or csr to derive public key to sign"
        )
    days = whole("days_valid", given.get("days_valid"), CERTIFICATE_DAYS)
    validity = desired.Validity(given.get("not_before"), given.get("not_after"), days)
    validity.dates()
    return CertificateOrder(desired.certificate(given, validity, holder, issuer, request), signing, own, digest)


def request(
    read: Read, private_key: object, passphrase: str | None, given: Mapping[str, object]
) -> tuple[desired.WantedRequest, PrivateKey]:
    """Return (desired certificate signing request, private key that signs it) for the arguments of a call.

    Raise InvocationError for an unknown or malformed argument, CommandError for a key that cannot be used.
    """
    _known(given, _REQUEST)
    key = _key(read, private_key, passphrase)
    return desired.request(given, key.public_key()), key


def revocation_list(
    read: Read,
    signing_private_key: object,
    passphrase: str | None,
    signing_cert: object,
    revoked: object,
    include_expired: bool,
    days_valid: object,
    given: Mapping[str, object],
) -> tuple[desired.WantedList, PrivateKey]:
    """Return (desired certificate revocation list, private key that signs it) for the arguments of a call.

    Raise InvocationError for a missing, unknown or malformed argument; CommandError for a key or certificate that
    cannot be used.
    """
    if not signing_cert:
        raise InvocationError("signing_cert is needed: a revocation list names its issuer")
    issuer = loading.certificate(read(signing_cert)).certificate
    key = _key(read, signing_private_key, passphrase)
    if not _pair(issuer, key):
        raise InvocationError("Signing private key does not match the certificate's public key")
    rows = [row for each in _rows(revoked) if (row := _revocation(read, each, include_expired)) is not None]
    return desired.revocation_list(issuer, whole("days_valid", days_valid, LIST_DAYS), rows, given), key


def whole(argument: str, value: object, usual: int) -> int:
    """Return a number of days from the argument called ``argument``; ``usual`` if the value is None. Raises
    InvocationError for a value that is not a whole number.
    """
    try:
        return usual if value is None or isinstance(value, bool) else to_int(value)
    except (TypeError, ValueError):
        raise InvocationError(f"{argument} is a number of days, not {value!r}") from None


def passphrase(argument: str, value: object) -> str | None:
    """Return the password in the argument called ``argument`` as text; None if the value is None.

    Raises InvocationError for a value that is neither text nor number. The message does not contain the password.
    """
    if value is None or isinstance(value, str | int):
        return None if value is None else str(value)
    raise InvocationError(f"{argument} is a text")


def _key(read: Read, reference: object, password: object) -> PrivateKey:
    if not reference:
        raise InvocationError("a private key is needed")
    return loading.key(read(reference), passphrase("passphrase", password)).key


def _pair(issuer: x509.Certificate, key: PrivateKey) -> bool:
    return issuing.same_key(loading.public_key(issuing.public_pem(issuer.public_key()).encode()), key.public_key())


def _known(given: Mapping[str, object], known: Iterable[str]) -> None:
    if unknown := sorted(set(given) - set(known)):
        raise InvocationError(f"Unrecognized keyword arguments: {unknown}")


def _rows(revoked: object) -> Iterable[Mapping[str, object]]:
    """Yield each row of the argument ``revoked`` (revoked certificates) as a map.

    Also accepts the older x509 module's ``name: [map, ...]`` with the reason beside the extensions.
    """
    if not isinstance(revoked, list | tuple):
        raise InvocationError(f"revoked is a list of maps, not {revoked!r}")
    for row in revoked:
        if not isinstance(row, Mapping):
            raise InvocationError(f"revoked is a list of maps, not of {row!r}")
        only = next(iter(row.values()), None)
        if len(row) == 1 and isinstance(only, list) and all(isinstance(each, Mapping) for each in only):
            row = {key: value for each in only for key, value in each.items()}
        if "reason" in row:
            rest = {key: value for key, value in row.items() if key != "reason"}
            row = {**rest, "extensions": {**(rest.get("extensions") or {}), "CRLReason": row["reason"]}}
        yield row


def _revocation(read: Read, row: Mapping[str, object], include_expired: bool) -> desired.Revocation | None:
    allowed = ("certificate", "serial_number", "not_after", "revocation_date", "extensions")
    if unknown := [name for name in row if name not in allowed]:
        raise InvocationError(f"revoked: a row has no {', '.join(map(str, unknown))}; it has {', '.join(allowed)}")
    until = names.moment("not_after", row["not_after"]) if row.get("not_after") else None
    if row.get("certificate"):
        found = loading.certificate(read(row["certificate"])).certificate
        serial, until = found.serial_number, found.not_valid_after_utc
    elif row.get("serial_number"):
        serial = names.serial(row["serial_number"])
    else:
        raise InvocationError("Need serial_number or certificate")
    now = datetime.now(UTC)
    if until is not None and not include_expired and now > until:
        return None
    date = names.moment("revocation_date", row["revocation_date"]) if row.get("revocation_date") else now
    given = row.get("extensions") or {}
    if not isinstance(given, Mapping):
        raise InvocationError(f"revoked: extensions is a map, not {given!r}")
    return desired.Revocation(serial, date, given)
