"""X.509 certificates, requests and revocation lists as plain data, with the keys of ``x509.read_*`` (with Salt's
spelling mistakes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import CRLEntryExtensionOID, ExtensionOID

from statecore.system.certificates import names
from statecore.system.certificates.issuing import Encodable, key_size, key_type, public_pem
from statecore.system.certificates.loading import PublicKey, public_key

_EXTENSIONS: Mapping[str, x509.ObjectIdentifier] = {
    "basicConstraints": ExtensionOID.BASIC_CONSTRAINTS,
    "keyUsage": ExtensionOID.KEY_USAGE,
    "extendedKeyUsage": ExtensionOID.EXTENDED_KEY_USAGE,
    "subjectKeyIdentifier": ExtensionOID.SUBJECT_KEY_IDENTIFIER,
    "authorityKeyIdentifier": ExtensionOID.AUTHORITY_KEY_IDENTIFIER,
    "issuerAltName": ExtensionOID.ISSUER_ALTERNATIVE_NAME,
    "authorityInfoAccess": ExtensionOID.AUTHORITY_INFORMATION_ACCESS,
    "subjectAltName": ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
    "crlDistributionPoints": ExtensionOID.CRL_DISTRIBUTION_POINTS,
    "issuingDistributionPoint": ExtensionOID.ISSUING_DISTRIBUTION_POINT,
    "certificatePolicies": ExtensionOID.CERTIFICATE_POLICIES,
    "policyConstraints": ExtensionOID.POLICY_CONSTRAINTS,
    "inhibitAnyPolicy": ExtensionOID.INHIBIT_ANY_POLICY,
    "nameConstraints": ExtensionOID.NAME_CONSTRAINTS,
    "noCheck": ExtensionOID.OCSP_NO_CHECK,
    "tlsfeature": ExtensionOID.TLS_FEATURE,
    "cRLNumber": ExtensionOID.CRL_NUMBER,
    "deltaCRLIndicator": ExtensionOID.DELTA_CRL_INDICATOR,
    "freshestCRL": ExtensionOID.FRESHEST_CRL,
}

_ENTRY: Mapping[str, x509.ObjectIdentifier] = {
    "certificateIssuer": CRLEntryExtensionOID.CERTIFICATE_ISSUER,
    "CRLReason": CRLEntryExtensionOID.CRL_REASON,
    "invalidityDate": CRLEntryExtensionOID.INVALIDITY_DATE,
}

#: Type of a general name -> its prefix.
_MARKS: Mapping[type, str] = {
    x509.DNSName: "DNS",
    x509.RFC822Name: "mail",
    x509.UniformResourceIdentifier: "URI",
}


def hexadecimal(value: bytes | int) -> str:
    """Return bytes or a number as pairs of hexadecimal digits separated by colons, such as ``0A:FF``."""
    if isinstance(value, int):
        value = value.to_bytes(max((value.bit_length() + 7) // 8, 1), "big")
    return value.hex(":").upper()


def certificate(found: x509.Certificate) -> dict[str, object]:
    """Return an X.509 certificate as the map of ``x509.read_certificate``: serial_number, subject, not_after, extensions, ..."""
    holder = _usable(found.public_key())
    return {
        "version": found.version.value + 1,
        "key_size": key_size(holder),
        "key_type": key_type(holder),
        "serial_number": hexadecimal(found.serial_number),
        "fingerprints": {
            digest.name: hexadecimal(found.fingerprint(digest))
            for digest in (hashes.SHA1(), hashes.SHA256(), hashes.MD5())
        },
        **_named("subject", found.subject),
        **_named("issuer", found.issuer),
        "not_before": found.not_valid_before_utc.strftime(names.TIME_FORMAT),
        "not_after": found.not_valid_after_utc.strftime(names.TIME_FORMAT),
        "public_key": public_pem(holder),
        "extensions": _extensions(found.extensions, _EXTENSIONS),
        "signature_algorithm": _algorithm(found.signature_algorithm_oid),
    }


def request(found: x509.CertificateSigningRequest) -> dict[str, object]:
    """Return a certificate signing request as the map of ``x509.read_csr``: key_size, subject, public_key_hash, extensions, ..."""
    holder = _usable(found.public_key())
    digest = x509.SubjectKeyIdentifier.from_public_key(holder).digest
    return {
        "key_size": key_size(holder),
        "key_type": key_type(holder),
        **_named("subject", found.subject),
        "public_key_hash": hexadecimal(digest),
        "extensions": _extensions(found.extensions, _EXTENSIONS),
    }


def revocation_list(found: x509.CertificateRevocationList) -> dict[str, object]:
    """Return a certificate revocation list as the map of ``x509.read_crl``: issuer, next_update, revoked_certificates, ..."""
    revoked = {
        hexadecimal(each.serial_number).replace(":", ""): {
            "revocation_date": each.revocation_date_utc.strftime(names.TIME_FORMAT),
            "extensions": _extensions(each.extensions, _ENTRY),
        }
        for each in found
    }
    until = found.next_update_utc
    return {
        "issuer": parts(found.issuer),
        "last_update": found.last_update_utc.strftime(names.TIME_FORMAT),
        "next_update": until.strftime(names.TIME_FORMAT) if until else None,
        "revoked_certificates": revoked,
        "extensions": _extensions(found.extensions, _EXTENSIONS),
        "signature_algorithm": _algorithm(found.signature_algorithm_oid),
    }


def parts(name: x509.Name) -> dict[str, str | bytes]:
    """Map of the short name of each attribute in a distinguished name (``CN``, ``O``) to its first value."""
    found = {short: name.get_attributes_for_oid(oid) for short, oid in names.ATTRIBUTES.items()}
    return {short: rows[0].value for short, rows in found.items() if rows}


def _usable(key: Encodable) -> PublicKey:
    """Return the public key of a certificate or request. Raise NotReadable if its algorithm is not supported."""
    return public_key(public_pem(key).encode())


def _named(what: str, name: x509.Name) -> dict[str, object]:
    digest = hashes.Hash(hashes.SHA1())
    digest.update(name.public_bytes())
    # OpenSSL's hash of a name: the first four bytes, read as a little-endian number.
    return {
        what: parts(name),
        f"{what}_hash": hexadecimal(digest.finalize()[:4][::-1]),
        f"{what}_str": name.rfc4514_string(),
    }


def identifier(oid: x509.ObjectIdentifier) -> str:
    """Return the name of an X.509 object identifier, or its dotted form if it has no name."""
    name: str = oid._name
    return oid.dotted_string if name == "Unknown OID" else name


def _algorithm(oid: x509.ObjectIdentifier) -> str:
    return identifier(oid)


def _extensions(found: x509.Extensions, known: Mapping[str, x509.ObjectIdentifier]) -> dict[str, object]:
    shown: dict[str, object] = {}
    for name, oid in known.items():
        try:
            extension = found.get_extension_for_oid(oid)
        except x509.ExtensionNotFound:
            continue
        value = extension.value
        described = _SHOWN[type(value)](value) if type(value) in _SHOWN else {"value": str(value)}
        shown[name] = {"critical": extension.critical, **described}
    return shown


def _general(name: object) -> str:
    if isinstance(name, x509.DirectoryName):
        return f"dirName:{name.value.rfc4514_string()}"
    if isinstance(name, x509.IPAddress):
        return f"IP:{name.value.exploded}"
    if isinstance(name, x509.RegisteredID):
        return f"RID:{name.value.dotted_string}"
    if isinstance(name, x509.DNSName | x509.RFC822Name | x509.UniformResourceIdentifier):
        return f"{_MARKS[type(name)]}:{name.value}"
    return str(name)


def _generals(found: Iterable[object] | None) -> list[str]:
    return [_general(each) for each in found or ()]


def _key_usage(value: x509.KeyUsage) -> dict[str, object]:
    return {
        "cRLSign": value.crl_sign,
        "dataEncipherment": value.data_encipherment,
        # Without key_agreement, reading these two attributes raises an exception.
        "decipherOnly": value.decipher_only if value.key_agreement else False,
        "digitalSignature": value.digital_signature,
        "encipherOnly": value.encipher_only if value.key_agreement else False,
        "keyAgreement": value.key_agreement,
        "keyCertSign": value.key_cert_sign,
        "keyEncipherment": value.key_encipherment,
        "nonRepudiation": value.content_commitment,
    }


def _authority_key_identifier(value: x509.AuthorityKeyIdentifier) -> dict[str, object]:
    serial = value.authority_cert_serial_number
    return {
        "keyid": hexadecimal(value.key_identifier) if value.key_identifier else None,
        "issuer": _generals(value.authority_cert_issuer) or None,
        "issuer_sn": hexadecimal(serial) if serial else None,
    }


def _points(value: x509.CRLDistributionPoints | x509.FreshestCRL) -> dict[str, object]:
    return {
        "value": [
            {
                "crlissuer": _generals(each.crl_issuer),
                "fullname": _generals(each.full_name),
                "reasons": sorted(reason.value for reason in each.reasons or ()),
                "relativename": each.relative_name.rfc4514_string() if each.relative_name else None,
            }
            for each in value
        ]
    }


def _issuing_point(value: x509.IssuingDistributionPoint) -> dict[str, object]:
    return {
        "fullname": _generals(value.full_name),
        "onysomereasons": sorted(reason.value for reason in value.only_some_reasons or ()),
        "relativename": value.relative_name.rfc4514_string() if value.relative_name else None,
        "onlyuser": value.only_contains_user_certs,
        "onlyCA": value.only_contains_ca_certs,
        "onlyAA": value.only_contains_attribute_certs,
        "indirectCRL": value.indirect_crl,
    }


def _policies(value: x509.CertificatePolicies) -> dict[str, object]:
    return {
        "value": [
            {identifier(each.policy_identifier): [_qualifier(one) for one in each.policy_qualifiers or ()]}
            for each in value
        ]
    }


def _qualifier(value: str | x509.UserNotice) -> dict[str, object]:
    if isinstance(value, str):
        return {"practice_statement": value}
    notice = value.notice_reference
    return {
        "organizataion": notice.organization if notice else None,
        "notice_numbers": notice.notice_numbers if notice else None,
        "explicit_text": value.explicit_text,
    }


_SHOWN: Mapping[type, Callable[[Any], dict[str, object]]] = {
    x509.BasicConstraints: lambda value: {"ca": value.ca, "pathlen": value.path_length},
    x509.KeyUsage: _key_usage,
    x509.ExtendedKeyUsage: lambda value: {"value": [identifier(each) for each in value]},
    x509.SubjectKeyIdentifier: lambda value: {"value": hexadecimal(value.digest)},
    x509.AuthorityKeyIdentifier: _authority_key_identifier,
    x509.IssuerAlternativeName: lambda value: {"value": _generals(value)},
    x509.CertificateIssuer: lambda value: {"value": _generals(value)},
    x509.AuthorityInformationAccess: lambda value: {
        # As in Salt, the location is shown without its type.
        "value": [{identifier(each.access_method): str(each.access_location.value)} for each in value]
    },
    x509.SubjectAlternativeName: lambda value: {"value": _generals(value)},
    x509.CRLDistributionPoints: _points,
    x509.FreshestCRL: _points,
    x509.IssuingDistributionPoint: _issuing_point,
    x509.CertificatePolicies: _policies,
    x509.PolicyConstraints: lambda value: {
        "inhibitPolicyMapping": value.inhibit_policy_mapping,
        "requireExplicitPolicy": value.require_explicit_policy,
    },
    x509.InhibitAnyPolicy: lambda value: {"value": value.skip_certs},
    x509.NameConstraints: lambda value: {
        "excluded": _generals(value.excluded_subtrees),
        "permitted": _generals(value.permitted_subtrees),
    },
    x509.OCSPNoCheck: lambda value: {"value": True},
    x509.TLSFeature: lambda value: {"value": [each.name for each in value]},
    x509.CRLNumber: lambda value: {"value": value.crl_number},
    x509.DeltaCRLIndicator: lambda value: {"value": value.crl_number},
    x509.CRLReason: lambda value: {"value": value.reason.value},
    x509.InvalidityDate: lambda value: {"value": value.invalidity_date.strftime(names.TIME_FORMAT)},
}
