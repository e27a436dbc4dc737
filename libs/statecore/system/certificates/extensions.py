"""X.509v3 extensions from Salt's arguments: OpenSSL configuration strings, lists and maps.

``_BUILDERS`` has one function for each extension, which returns (extension, critical). ``CERTIFICATE``, ``LIST`` and
``ENTRY`` name the extensions of certificates, revocation lists and their rows. An invalid value raises InvocationError
that names the extension.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cryptography import x509
from cryptography.x509.oid import AuthorityInformationAccessOID, SubjectInformationAccessOID

from statecore.model.errors import CommandError, InvocationError
from statecore.model.values import to_int
from statecore.system.certificates import names
from statecore.system.certificates.loading import PublicKey

Built = tuple[x509.ExtensionType, bool]

_ACCESS: Mapping[str, x509.ObjectIdentifier] = {
    "OCSP": AuthorityInformationAccessOID.OCSP,
    "caIssuers": AuthorityInformationAccessOID.CA_ISSUERS,
    "caRepository": SubjectInformationAccessOID.CA_REPOSITORY,
}

_USAGES: Mapping[str, str] = {
    "digitalSignature": "digital_signature",
    "nonRepudiation": "content_commitment",
    "keyEncipherment": "key_encipherment",
    "dataEncipherment": "data_encipherment",
    "keyAgreement": "key_agreement",
    "keyCertSign": "key_cert_sign",
    "cRLSign": "crl_sign",
    "encipherOnly": "encipher_only",
    "decipherOnly": "decipher_only",
}


@dataclass(frozen=True, slots=True)
class Parties:
    """Public key, issuer's certificate and issuer's public key, to which an X.509 extension may refer."""

    #: The certified public key.
    subject: PublicKey | None = None
    #: The issuer's certificate; None for a self-signed certificate.
    issuer: x509.Certificate | None = None
    #: The issuer's public key, if there is no issuer's certificate yet.
    issuer_key: PublicKey | None = None


def build(name: str, value: object, parties: Parties) -> Built:
    """Return (X.509 extension, True if it is critical) for an extension's name and value. Raises InvocationError or
    CommandError, both with the extension's name.
    """
    try:
        return _BUILDERS[name](value, parties)
    except (CommandError, InvocationError) as error:
        raise type(error)(f"{name}: {error}") from error
    except KeyError as error:
        raise InvocationError(f"{name}: {error.args[0]} is missing or unknown") from error
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise InvocationError(f"{name}: {value!r} is not a valid value: {error}") from error


def _basic_constraints(value: object, parties: Parties) -> Built:
    found, critical = settings(value)
    lower = {name.lower(): each for name, each in found.items()}
    ca, length = lower["ca"], lower.get("pathlen")
    if not isinstance(ca, bool):
        ca = str(ca).lower() == "true"
    return x509.BasicConstraints(ca, None if length is None else to_int(length)), critical


def _key_usage(value: object, parties: Parties) -> Built:
    found, critical = words(value)
    if unknown := [each for each in found if each not in _USAGES]:
        raise InvocationError(f"there is no {', '.join(unknown)}; there are {', '.join(_USAGES)}")
    flags = {flag: name in found for name, flag in _USAGES.items()}
    return x509.KeyUsage(**flags), critical


def _extended_key_usage(value: object, parties: Parties) -> Built:
    found, critical = words(value)
    return x509.ExtendedKeyUsage([names.identifier(PURPOSES.get(each, each)) for each in found]), critical


def _subject_key_identifier(value: object, parties: Parties) -> Built:
    if "critical" in str(value):
        raise InvocationError("must be marked as non-critical")
    if value == "hash":
        if parties.subject is None:
            raise InvocationError("the value 'hash' needs a public key, and none is given")
        return x509.SubjectKeyIdentifier.from_public_key(parties.subject), False
    digest = value if isinstance(value, bytes) else bytes.fromhex(str(value).replace(":", ""))
    return x509.SubjectKeyIdentifier(digest), False


def _authority_key_identifier(value: object, parties: Parties) -> Built:
    found, critical = settings(value)
    if critical:
        raise InvocationError("must be marked as non-critical")
    digest = _issuer_digest(parties) if "keyid" in found else None
    if found.get("keyid") == "always" and digest is None:
        raise CommandError("Could not retrieve authorityKeyIdentifier keyid, but it was set to always")
    issuer, serial = None, None
    if found.get("issuer") == "always" or ("issuer" in found and digest is None):
        if parties.issuer is not None:
            issuer, serial = [x509.DirectoryName(parties.issuer.issuer)], parties.issuer.serial_number
        elif found["issuer"] == "always":
            raise CommandError(
                "Could not add authority_cert_issuer and authority_cert_serial_number, but was set to always."
            )
    return x509.AuthorityKeyIdentifier(digest, issuer, serial), False


def _issuer_digest(parties: Parties) -> bytes | None:
    if parties.issuer is not None:
        try:
            return parties.issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
        except x509.ExtensionNotFound:
            made = x509.AuthorityKeyIdentifier.from_issuer_public_key(parties.issuer.public_key())  # type: ignore[arg-type]
            return made.key_identifier
    if parties.issuer_key is None:
        return None
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(parties.issuer_key).key_identifier


def _issuer_names(value: object, parties: Parties) -> tuple[list[x509.GeneralName], bool]:
    found, critical = pairs(value)
    copied: list[x509.GeneralName] = []
    if ("issuer", "copy") in found:
        if parties.issuer is None:
            raise CommandError("Need CA certificate to copy to issuerAltName")
        try:
            copied = list(parties.issuer.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
        except x509.ExtensionNotFound as error:
            raise CommandError("the issuer's certificate has no subjectAltName to copy") from error
        found = [each for each in found if each != ("issuer", "copy")]
    return [*copied, *names.general(found)], critical


def _authority_info_access(value: Any, parties: Parties) -> Built:
    if isinstance(value, str):
        rows: Iterable[Any] = [each.strip().split(";", 1) for each in value.split(",") if each.strip() != "critical"]
    else:
        maps = value if isinstance(value, list | tuple) else [value]
        rows = [row for each in maps if each != "critical" for row in each.items() if row[0] != "critical"]
    found = [
        x509.AccessDescription(_ACCESS.get(str(method)) or names.identifier(method), names.general_of(place))
        for method, place in rows
    ]
    # Never critical, as RFC 5280 requires.
    return x509.AuthorityInformationAccess(found), False


def _subject_alt_name(value: object, parties: Parties) -> Built:
    found, critical = pairs(value)
    return x509.SubjectAlternativeName(names.general(found)), critical


def _distribution_points(value: Any) -> tuple[list[x509.DistributionPoint], bool]:
    if isinstance(value, str):
        value = [each.strip() for each in value.split(",")]
    listed = [value] if isinstance(value, Mapping) else list(value)
    points = [_point(each) for each in listed if each != "critical"]
    return points, "critical" in listed


def _point(value: object) -> x509.DistributionPoint:
    if not isinstance(value, Mapping):
        return x509.DistributionPoint([names.general_of(value)], None, None, None)
    if not value.keys() & {"fullname", "relativename", "crlissuer", "reasons"}:
        return x509.DistributionPoint(names.general(value.items()), None, None, None)
    issuers = [names.general_of(each) for each in listed(value.get("crlissuer"))] or None
    return x509.DistributionPoint(*_place(value), _reasons(value.get("reasons")), issuers)


def _place(value: Mapping[str, object]) -> tuple[list[x509.GeneralName] | None, x509.RelativeDistinguishedName | None]:
    full = [names.general_of(each) for each in listed(value.get("fullname"))] or None
    relative = value.get("relativename")
    return full, names.relative(relative) if relative else None


def _reasons(value: object) -> frozenset[x509.ReasonFlags] | None:
    return frozenset(x509.ReasonFlags(each) for each in listed(value)) or None


def _crl_distribution_points(value: object, parties: Parties) -> Built:
    found, critical = _distribution_points(value)
    return x509.CRLDistributionPoints(found), critical


def _certificate_policies(value: object, parties: Parties) -> Built:
    if not isinstance(value, Mapping):
        found, critical = words(value)
        return x509.CertificatePolicies(
            [x509.PolicyInformation(names.identifier(each), None) for each in found]
        ), critical
    policies = [
        x509.PolicyInformation(names.identifier(policy), [_qualifier(each) for each in listed(given)] or None)
        for policy, given in value.items()
        if policy != "critical"
    ]
    return x509.CertificatePolicies(policies), bool(value.get("critical"))


def _qualifier(value: Any) -> str | x509.UserNotice:
    if isinstance(value, str):
        return value
    organization, numbers = value.get("organization"), value.get("noticeNumbers")
    notice = x509.NoticeReference(organization, [to_int(each) for each in listed(numbers)]) if numbers else None
    return x509.UserNotice(notice, value.get("text"))


def _policy_constraints(value: object, parties: Parties) -> Built:
    found, critical = settings(value)
    known = ("requireExplicitPolicy", "inhibitPolicyMapping")
    explicit, mapping = (to_int(found[name]) if name in found else None for name in known)
    return x509.PolicyConstraints(explicit, mapping), critical


def _inhibit_any_policy(value: object, parties: Parties) -> Built:
    if isinstance(value, Mapping):
        return x509.InhibitAnyPolicy(int(value["value"])), bool(value.get("critical"))
    (number,), critical = words(value)
    return x509.InhibitAnyPolicy(int(number)), critical


def _name_constraints(value: object, parties: Parties) -> Built:
    found: dict[str, list[tuple[str, object]]] = {"permitted": [], "excluded": []}
    if isinstance(value, Mapping):
        critical = bool(value.get("critical"))
        for scope, listed in found.items():
            listed += pairs(value.get(scope) or [])[0]
    else:
        rows, critical = words(value)
        for row in rows:
            scope, _, name = row.partition(";")
            found[scope.strip()].append(names.pair(name))
    scopes = [[_subtree(each) for each in found[scope]] or None for scope in ("permitted", "excluded")]
    if not any(scopes):
        raise InvocationError("nameConstraints needs at least one definition")
    return x509.NameConstraints(*scopes), critical


def _subtree(pair: tuple[str, object]) -> x509.GeneralName:
    return names.general([pair])[0]


def _no_check(value: object, parties: Parties) -> Built:
    return x509.OCSPNoCheck(), "critical" in str(value)


def _tls_feature(value: object, parties: Parties) -> Built:
    found, critical = words(value)
    return x509.TLSFeature([x509.TLSFeatureType[each] for each in found]), critical


def _not_there(value: object, parties: Parties) -> Built:
    raise InvocationError("is currently not implemented.")


def _crl_number(value: object, parties: Parties) -> Built:
    return x509.CRLNumber(to_int(value)), False


def _delta_crl_indicator(value: object, parties: Parties) -> Built:
    numbers = re.findall(r"\d+", str(value))
    if len(numbers) != 1:
        raise InvocationError("must contain a single integer pointing to a cRLNumber")
    return x509.DeltaCRLIndicator(int(numbers[0])), "critical" in str(value)


def _freshest_crl(value: object, parties: Parties) -> Built:
    return x509.FreshestCRL(_distribution_points(value)[0]), False


def _issuing_distribution_point(value: object, parties: Parties) -> Built:
    if not isinstance(value, Mapping):
        raise InvocationError("must be a dictionary")
    full, relative = _place(value)
    flags = [bool(value.get(name, False)) for name in ("onlyuser", "onlyCA", "indirectCRL", "onlyAA")]
    user, authority, indirect, attribute = flags
    reasons = _reasons(value.get("onlysomereasons"))
    point = x509.IssuingDistributionPoint(full, relative, user, authority, reasons, indirect, attribute)
    return point, bool(value.get("critical"))


def _issuer_alt_name(value: object, parties: Parties) -> Built:
    found, critical = _issuer_names(value, parties)
    return x509.IssuerAlternativeName(found), critical


def _certificate_issuer(value: object, parties: Parties) -> Built:
    found, critical = _issuer_names(value, parties)
    return x509.CertificateIssuer(found), critical


def _crl_reason(value: object, parties: Parties) -> Built:
    (reason,), critical = words(value)
    return x509.CRLReason(x509.ReasonFlags(reason)), critical


def _invalidity_date(value: object, parties: Parties) -> Built:
    if not isinstance(value, str):
        raise InvocationError("must be a string")
    critical = value.startswith("critical")
    text = re.sub(r"^critical[, ]+", "", value)
    return x509.InvalidityDate(datetime.strptime(text, names.TIME_FORMAT)), critical


_BUILDERS: Mapping[str, Callable[[object, Parties], Built]] = {
    "basicConstraints": _basic_constraints,
    "keyUsage": _key_usage,
    "extendedKeyUsage": _extended_key_usage,
    "subjectKeyIdentifier": _subject_key_identifier,
    "authorityKeyIdentifier": _authority_key_identifier,
    "issuerAltName": _issuer_alt_name,
    "authorityInfoAccess": _authority_info_access,
    "subjectAltName": _subject_alt_name,
    "crlDistributionPoints": _crl_distribution_points,
    "certificatePolicies": _certificate_policies,
    "policyConstraints": _policy_constraints,
    "inhibitAnyPolicy": _inhibit_any_policy,
    "nameConstraints": _name_constraints,
    "noCheck": _no_check,
    "tlsfeature": _tls_feature,
    "nsComment": _not_there,
    "nsCertType": _not_there,
    "cRLNumber": _crl_number,
    "deltaCRLIndicator": _delta_crl_indicator,
    "freshestCRL": _freshest_crl,
    "issuingDistributionPoint": _issuing_distribution_point,
    "certificateIssuer": _certificate_issuer,
    "CRLReason": _crl_reason,
    "invalidityDate": _invalidity_date,
}

#: Extensions of certificates, in the order in which they are added.
CERTIFICATE: tuple[str, ...] = tuple(_BUILDERS)[:17]

#: Extensions that a signing request cannot contain, because the issuer decides them.
ISSUERS: frozenset[str] = frozenset(
    {"authorityInfoAccess", "authorityKeyIdentifier", "issuerAltName", "crlDistributionPoints"}
)

#: Extensions of revocation lists.
LIST: frozenset[str] = frozenset(
    {
        "authorityKeyIdentifier",
        "authorityInfoAccess",
        "cRLNumber",
        "deltaCRLIndicator",
        "freshestCRL",
        "issuerAltName",
        "issuingDistributionPoint",
    }
)

#: Extensions of one row of a revocation list.
ENTRY: frozenset[str] = frozenset({"certificateIssuer", "CRLReason", "invalidityDate"})

#: Name of the extension in Salt's older x509 module -> its name here.
LONG_NAMES: Mapping[str, str] = {
    "X509v3 Basic Constraints": "basicConstraints",
    "X509v3 Key Usage": "keyUsage",
    "X509v3 Extended Key Usage": "extendedKeyUsage",
    "X509v3 Subject Key Identifier": "subjectKeyIdentifier",
    "X509v3 Authority Key Identifier": "authorityKeyIdentifier",
    "X509v3 Issuer Alternative Name": "issuerAltName",
    "issuserAltName": "issuerAltName",
    "Authority Information Access": "authorityInfoAccess",
    "X509v3 Subject Alternative Name": "subjectAltName",
    "X509v3 CRL Distribution Points": "crlDistributionPoints",
    "X509v3 Issuing Distribution Point": "issuingDistributionPoint",
    "X509v3 Certificate Policies": "certificatePolicies",
    "X509v3 Policy Constraints": "policyConstraints",
    "X509v3 Inhibit Any Policy": "inhibitAnyPolicy",
    "X509v3 Name Constraints": "nameConstraints",
    "OCSP No Check": "noCheck",
    "TLS Feature": "tlsfeature",
    "Netscape Comment": "nsComment",
    "Netscape Certificate Type": "nsCertType",
    "X509v3 CRLNumber": "cRLNumber",
    "X509v3 Delta CRL Indicator": "deltaCRLIndicator",
    "x509v3 Freshest CRL": "freshestCRL",
}


def words(value: object) -> tuple[list[str], bool]:
    """Return (list of words in the value of an X.509 extension, True if "critical" is one of them).

    The words come from ``critical, a, b``, from a list, or from the keys of a map whose values are true.
    """
    if isinstance(value, str):
        found = [each.strip() for each in value.split(",")]
    elif isinstance(value, Mapping):
        found = [str(name) for name, on in value.items() if on]
    else:
        found = [str(each).strip() for each in (value if isinstance(value, list | tuple) else [value])]
    return [each for each in found if each not in ("critical", "")], "critical" in found


def settings(value: object) -> tuple[dict[str, object], bool]:
    """Return (map of name to value, True if critical) from the value of an X.509 extension: a text ``critical, a:1,
    b``, or a map.
    """
    if isinstance(value, Mapping):
        return {str(name): each for name, each in value.items() if name != "critical"}, bool(value.get("critical"))
    found, critical = words(value)
    pairs = (each.partition(":") for each in found)
    return {name.strip(): setting.strip() if colon else "__present__" for name, colon, setting in pairs}, critical


def pairs(value: object) -> tuple[list[tuple[str, object]], bool]:
    """Return (list of (type, value), True if critical) from the value of an X.509 extension: a text ``critical,
    type:value, ...``, a list of such texts, or maps. Raise InvocationError for a text without a colon.
    """
    if isinstance(value, Mapping):
        return [(str(kind), each) for kind, each in value.items() if kind != "critical"], bool(value.get("critical"))
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
    found: list[tuple[str, object]] = []
    critical = False
    for each in listed:
        if isinstance(each, Mapping):
            critical = critical or bool(each.get("critical"))
            found += [(str(kind), one) for kind, one in each.items() if kind != "critical"]
        elif str(each).strip() == "critical":
            critical = True
        else:
            found.append(names.pair(each))
    return found, critical


def listed(value: object) -> list[object]:
    """Return the value of an X.509 extension as a list: a list unchanged, [] for None, and any other value as its only
    item.
    """
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


#: OpenSSL's name of a key purpose -> its object identifier.
PURPOSES: Mapping[str, str] = {
    "serverAuth": "1.3.6.1.5.5.7.3.1",
    "clientAuth": "1.3.6.1.5.5.7.3.2",
    "codeSigning": "1.3.6.1.5.5.7.3.3",
    "emailProtection": "1.3.6.1.5.5.7.3.4",
    "timeStamping": "1.3.6.1.5.5.7.3.8",
    "OCSPSigning": "1.3.6.1.5.5.7.3.9",
    "msSmartcardLogin": "1.3.6.1.4.1.311.20.2.2",
    "pkInitKDC": "1.3.6.1.5.2.3.5",
    "ipsecIKE": "1.3.6.1.5.5.7.3.17",
    "msCodeInd": "1.3.6.1.4.1.311.2.1.21",
    "msCodeCom": "1.3.6.1.4.1.311.2.1.22",
    "msCTLSign": "1.3.6.1.4.1.311.10.3.1",
    "msEFS": "1.3.6.1.4.1.311.10.3.4",
}
