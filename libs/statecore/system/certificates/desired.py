"""Desired certificates, signing requests and revocation lists: their content before signing, and their changes.

A call's arguments are evaluated once. ``signed`` makes the object, ``changes`` compares it with an existing one.

Salt: salt/utils/x509.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes

from statecore.model.errors import CommandError, InvocationError
from statecore.system.certificates import extensions, issuing, loading, names
from statecore.system.certificates.descriptions import hexadecimal, identifier
from statecore.system.certificates.extensions import Built, Parties
from statecore.system.certificates.loading import PrivateKey, PublicKey


@dataclass(frozen=True, slots=True)
class Validity:
    """Start and end of a certificate's validity, as text such as ``2026-01-31 00:00:00``. No start means now; no end
    means ``days`` days from now.
    """

    not_before: object
    not_after: object
    days: int

    def dates(self) -> tuple[datetime, datetime]:
        """Return (start, end) of the validity. Raises InvocationError for a text that is not a date."""
        now = datetime.now(UTC)
        first = names.moment("not_before", self.not_before) if self.not_before else now
        last = names.moment("not_after", self.not_after) if self.not_after else now + timedelta(days=self.days)
        if last < first:
            raise InvocationError(f"not_after ({last:%Y-%m-%d}) comes before not_before ({first:%Y-%m-%d})")
        return first, last


@dataclass(frozen=True, slots=True)
class WantedCertificate:
    """Content of a desired X.509 certificate, before it is signed. ``issuer_certificate`` is None for a self-signed
    certificate.
    """

    subject: x509.Name
    issuer: x509.Name
    holder: PublicKey
    issuer_certificate: x509.Certificate | None
    validity: Validity
    #: None: a random number.
    serial_number: int | None
    extensions: tuple[Built, ...]

    def signed(self, key: PrivateKey, digest: str) -> x509.Certificate:
        """Return the X.509 certificate with the desired content, signed with the issuer's private ``key``. Raise
        InvocationError for an invalid validity, CommandError if the key cannot sign with this digest.
        """
        first, last = self.validity.dates()
        builder = x509.CertificateBuilder(
            self.issuer,
            self.subject,
            self.holder,
            names.serial(None) if self.serial_number is None else self.serial_number,
        )
        try:
            builder = builder.not_valid_before(first).not_valid_after(last)
        except ValueError as error:
            raise InvocationError(str(error)) from error
        for extension, critical in self.extensions:
            builder = builder.add_extension(extension, critical)
        return issuing.signed(builder, key, digest)

    def changes(self, current: x509.Certificate, digest: str) -> dict[str, object]:
        """Map of the differences between the desired certificate and an existing one; {} if there are none.

        The keys are Salt's, such as "subject_name" and "private_key"; most values are the desired ones.
        """
        found = _digest_change(current, digest)
        if self.serial_number is not None and self.serial_number != current.serial_number:
            found["serial_number"] = self.serial_number
        if not issuing.same_key(self.holder, _usable(current)):
            found["private_key"] = True
        signer = _usable(self.issuer_certificate) if self.issuer_certificate else None
        if signer is not None and not issuing.is_signed_by(current, signer):
            found["signing_private_key"] = True
        if self.subject != current.subject:
            found["subject_name"] = self.subject.rfc4514_string()
        if self.issuer != current.issuer:
            found["issuer_name"] = self.issuer.rfc4514_string()
        return found | _extension_changes(current.extensions, self.extensions)


@dataclass(frozen=True, slots=True)
class WantedRequest:
    """Content of a desired certificate signing request, before it is signed."""

    subject: x509.Name
    extensions: tuple[Built, ...]

    def signed(self, key: PrivateKey, digest: str) -> x509.CertificateSigningRequest:
        """Return the certificate signing request with the desired content, signed with the private ``key``. Raise
        CommandError if the key cannot sign with this digest.
        """
        builder = x509.CertificateSigningRequestBuilder(self.subject)
        for extension, critical in self.extensions:
            builder = builder.add_extension(extension, critical)
        return issuing.signed(builder, key, digest)

    def changes(self, current: x509.CertificateSigningRequest, key: PrivateKey, digest: str) -> dict[str, object]:
        """Map of the differences between the desired signing request and an existing one; {} if there are none.

        The keys are Salt's, such as "subject_name" and "private_key"; most values are the desired ones.
        """
        found = _digest_change(current, digest)
        if not issuing.same_key(_usable(current), key.public_key()):
            found["private_key"] = True
        if self.subject != current.subject:
            found["subject_name"] = self.subject.rfc4514_string()
        return found | _extension_changes(current.extensions, self.extensions)


@dataclass(frozen=True, slots=True)
class WantedList:
    """Content of a desired certificate revocation list, before it is signed. ``revoked`` holds (serial number, date,
    extensions) of each revoked certificate.
    """

    issuer: x509.Name
    days: int
    revoked: tuple[tuple[int, datetime, tuple[Built, ...]], ...]
    extensions: tuple[Built, ...]

    def signed(self, key: PrivateKey, digest: str) -> x509.CertificateRevocationList:
        """Return the certificate revocation list with the desired content, signed with the private ``key``. Raise
        CommandError if the key cannot sign with this digest.
        """
        now = datetime.now(UTC)
        builder = x509.CertificateRevocationListBuilder(self.issuer, now, now + timedelta(days=self.days))
        for serial, date, entry in self.revoked:
            row = x509.RevokedCertificateBuilder(serial, date)
            for extension, critical in entry:
                row = row.add_extension(extension, critical)
            builder = builder.add_revoked_certificate(row.build())
        for extension, critical in self.extensions:
            builder = builder.add_extension(extension, critical)
        return issuing.signed(builder, key, digest)

    def changes(self, current: x509.CertificateRevocationList, key: PrivateKey, digest: str) -> dict[str, object]:
        """Map of the differences between the desired revocation list and an existing one; {} if there are none.

        The keys are Salt's, such as "issuer_name" and "revocations"; most values are the desired ones.
        """
        found = _digest_change(current, digest)
        if self.issuer != current.issuer:
            found["issuer_name"] = self.issuer.rfc4514_string()
        if not current.is_signature_valid(key.public_key()):
            found["public_key"] = True
        rows = self._row_changes(current)
        if any(rows.values()):
            found["revocations"] = rows
        return found | _extension_changes(current.extensions, self.extensions)

    def _row_changes(self, current: x509.CertificateRevocationList) -> dict[str, list[str]]:
        there = {row.serial_number: row for row in current}
        wanted = {serial: entry for serial, _, entry in self.revoked}
        changed = [
            serial for serial, entry in wanted.items() if serial in there and not _same(there[serial].extensions, entry)
        ]
        return {
            "added": [hexadecimal(serial) for serial in wanted if serial not in there],
            "changed": [hexadecimal(serial) for serial in changed],
            "removed": [hexadecimal(serial) for serial in there if serial not in wanted],
        }


def certificate(
    given: Mapping[str, object],
    validity: Validity,
    holder: PublicKey,
    issuer: x509.Certificate | None,
    request: x509.CertificateSigningRequest | None,
) -> WantedCertificate:
    """Return the desired certificate for the public key ``holder``.

    ``given`` has the subject or its parts, serial_number and extensions. ``issuer`` is None for a self-signed
    certificate. ``request`` is a signing request whose subject and extensions are used. Raise InvocationError or
    CommandError for an invalid argument, CommandError for a request with a wrong signature.
    """
    subject = _subject(given)
    parties = Parties(holder, issuer, None if issuer else holder)
    made = {
        name: extensions.build(name, given[name], parties)
        for name in extensions.CERTIFICATE
        # A signing policy forbids an extension by setting it to None.
        if given.get(name) is not None
    }
    serial = given.get("serial_number")
    return WantedCertificate(
        subject=subject,
        issuer=issuer.subject if issuer else subject,
        holder=holder,
        issuer_certificate=issuer,
        validity=validity,
        serial_number=None if serial is None else names.serial(serial),
        extensions=(*made.values(), *_requested_extensions(request, given)),
    )


def request(given: Mapping[str, object], holder: PublicKey) -> WantedRequest:
    """Return the desired signing request for the public key ``holder``. ``given`` maps the call's arguments for subject
    and extensions to their values.

    Raise InvocationError for an extension that only the issuer sets; InvocationError or CommandError for an invalid
    value.
    """
    if refused := [name for name in extensions.ISSUERS if given.get(name) is not None]:
        raise InvocationError(
            f"a request cannot contain {', '.join(sorted(refused))}: the issuer sets these extensions"
        )
    parties = Parties(holder)
    made = [
        extensions.build(name, given[name], parties) for name in extensions.CERTIFICATE if given.get(name) is not None
    ]
    return WantedRequest(_subject(given), tuple(made))


def revocation_list(
    issuer: x509.Certificate, days: int, rows: Sequence[Revocation], given: Mapping[str, object]
) -> WantedList:
    """Return the desired revocation list of the authority ``issuer``, valid for ``days`` days, with the revoked
    certificates ``rows``. ``given`` maps the names of extensions to their values.

    Raise InvocationError for an unknown extension; InvocationError or CommandError for an invalid value.
    """
    if unknown := sorted(set(given) - extensions.LIST):
        raise InvocationError(f"{', '.join(unknown)}: a revocation list has no such extension")
    parties = Parties(issuer=issuer)
    made = tuple(extensions.build(name, value, parties) for name, value in given.items() if value is not None)
    return WantedList(issuer.subject, days, tuple(row.built(parties) for row in rows), made)


@dataclass(frozen=True, slots=True)
class Revocation:
    """One certificate to revoke: its serial number, the date, and the extensions of its row in the revocation list, in
    the form of ``x509.create_crl``'s arguments.
    """

    serial_number: int
    date: datetime
    extensions: Mapping[str, object]

    def built(self, parties: Parties) -> tuple[int, datetime, tuple[Built, ...]]:
        """Return (serial number, date, tuple of (X.509 extension, critical)) of the certificate to revoke.

        Raise InvocationError for an unknown extension; InvocationError or CommandError for an invalid value.
        """
        if unknown := sorted(set(self.extensions) - extensions.ENTRY):
            raise InvocationError(f"{', '.join(unknown)}: a row of a revocation list has no such extension")
        made = tuple(extensions.build(name, value, parties) for name, value in self.extensions.items())
        return self.serial_number, self.date, made


def same_chain(one: Sequence[x509.Certificate], other: Sequence[x509.Certificate]) -> bool:
    """Return True if two certificate chains have the same certificates in the same order."""
    digests = [[each.fingerprint(hashes.SHA256()) for each in chain] for chain in (one, other)]
    return digests[0] == digests[1]


def _usable(found: x509.Certificate | x509.CertificateSigningRequest) -> PublicKey:
    return loading.public_key(issuing.public_pem(found.public_key()).encode())


def _subject(given: Mapping[str, object]) -> x509.Name:
    return names.distinguished(given["subject"] if given.get("subject") else dict(given))


def _requested_extensions(
    request: x509.CertificateSigningRequest | None, given: Mapping[str, object]
) -> Iterable[Built]:
    """Yield those extensions of the signing request that the call does not set and that the issuer does not decide."""
    if request is None:
        return
    if not request.is_signature_valid:
        raise CommandError("the certificate signing request is not signed by the key that it asks for")
    classes = {EXTENSION_CLASSES[name]: name for name in extensions.CERTIFICATE if name in EXTENSION_CLASSES}
    for extension in request.extensions:
        name = classes.get(type(extension.value))
        if name is not None and name not in extensions.ISSUERS and given.get(name) is None:
            yield extension.value, extension.critical


#: Extensions that a signing request may contain.
EXTENSION_CLASSES: Mapping[str, type[x509.ExtensionType]] = {
    "basicConstraints": x509.BasicConstraints,
    "keyUsage": x509.KeyUsage,
    "extendedKeyUsage": x509.ExtendedKeyUsage,
    "subjectKeyIdentifier": x509.SubjectKeyIdentifier,
    "subjectAltName": x509.SubjectAlternativeName,
    "certificatePolicies": x509.CertificatePolicies,
    "policyConstraints": x509.PolicyConstraints,
    "inhibitAnyPolicy": x509.InhibitAnyPolicy,
    "nameConstraints": x509.NameConstraints,
    "noCheck": x509.OCSPNoCheck,
    "tlsfeature": x509.TLSFeature,
}


_Object: TypeAlias = x509.Certificate | x509.CertificateSigningRequest | x509.CertificateRevocationList


def _digest_change(current: _Object, digest: str) -> dict[str, object]:
    try:
        used = current.signature_hash_algorithm
    except UnsupportedAlgorithm:
        return {}
    # Ed25519 and Ed448 keys sign without a digest.
    if used is None or used.name.replace("-", "_").replace("/", "_") == issuing.need_digest(digest):
        return {}
    return {"digest": digest}


def _same(current: x509.Extensions, wanted: Sequence[Built]) -> bool:
    return {(each.value, each.critical) for each in current} == set(wanted)


def _extension_changes(current: x509.Extensions, wanted: Sequence[Built]) -> dict[str, object]:
    there = {each.oid: (each.value, each.critical) for each in current}
    asked = {extension.oid: (extension, critical) for extension, critical in wanted}
    found = {
        "added": [identifier(oid) for oid in asked if oid not in there],
        "changed": [identifier(oid) for oid, built in asked.items() if oid in there and there[oid] != built],
        "removed": [identifier(oid) for oid in there if oid not in asked],
    }
    return {"extensions": found} if any(found.values()) else {}
