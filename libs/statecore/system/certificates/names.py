"""X.509 distinguished names, general names, object identifiers and serial numbers, in the forms that Salt accepts."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from cryptography import x509
from cryptography.x509.oid import NameOID

from statecore.model.errors import CommandError, InvocationError

#: Format of dates, in UTC.
TIME_FORMAT = "%Y-%m-%d %H:%M:%S"

#: Short name of a subject's attribute -> its object identifier, in the order of a subject. Salt: salt/utils/x509.py.
ATTRIBUTES: Mapping[str, x509.ObjectIdentifier] = {
    "C": NameOID.COUNTRY_NAME,
    "ST": NameOID.STATE_OR_PROVINCE_NAME,
    "L": NameOID.LOCALITY_NAME,
    "STREET": NameOID.STREET_ADDRESS,
    "O": NameOID.ORGANIZATION_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "CN": NameOID.COMMON_NAME,
    "MAIL": NameOID.EMAIL_ADDRESS,
    "SN": NameOID.SURNAME,
    "GN": NameOID.GIVEN_NAME,
    "UID": NameOID.USER_ID,
    "SERIALNUMBER": NameOID.SERIAL_NUMBER,
}

#: Name of the attribute in Salt's older x509 module -> its short name.
LONG_NAMES: Mapping[str, str] = {
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationUnitName": "OU",
    "givenName": "GN",
    "surname": "SN",
    "Email": "MAIL",
    "emailAddress": "MAIL",
    "serialNumber": "SERIALNUMBER",
}

_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?")


def distinguished(value: object) -> x509.Name:
    """Return an X.509 distinguished name from a text (RFC 4514), a list of its parts, or a map of attributes.

    Raises CommandError for a malformed name, InvocationError for another type.
    """
    try:
        if isinstance(value, str):
            return x509.Name.from_rfc4514_string(value)
        if isinstance(value, list | tuple):
            return x509.Name([relative(part) for part in value])
        if isinstance(value, Mapping):
            return x509.Name(
                [x509.NameAttribute(oid, str(value[name])) for name, oid in ATTRIBUTES.items() if value.get(name)]
            )
    except ValueError as error:
        raise CommandError(f"Failed parsing rfc4514 dirName string: {value!r}: {error}") from error
    raise InvocationError("Need string, list or dict to parse distinguished names")


def relative(value: object) -> x509.RelativeDistinguishedName:
    """Return one part of a distinguished name (a relative distinguished name, ``CN=example``) from a text.

    Raises CommandError for a malformed text, InvocationError for a text with several parts.
    """
    try:
        parts = x509.Name.from_rfc4514_string(str(value)).rdns
    except ValueError as error:
        raise CommandError(f"Failed parsing rdn string: {value}") from error
    if len(parts) != 1:
        raise InvocationError("Specified string is not a Relative Distinguished Name, but a Distinguished Name.")
    return parts[0]


def identifier(value: object) -> x509.ObjectIdentifier:
    """Return an X.509 object identifier from its dotted form, such as ``2.5.29.15``. Raise CommandError if the text has
    another form.
    """
    try:
        return x509.ObjectIdentifier(str(value))
    except ValueError as error:
        raise CommandError(f"Invalid oid: {value}") from error


def serial(value: object) -> int:
    """Return the serial number of a certificate from a number, or from hexadecimal digits with or without colons.

    None gives a new random number. Raises CommandError for any other text.
    """
    if value is None:
        return x509.random_serial_number()
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        return int.from_bytes(bytes.fromhex(str(value).replace(":", "")), "big")
    except ValueError as error:
        raise CommandError(f"Could not parse serial number {value}") from error


def moment(argument: str, value: object) -> datetime:
    """Return the date in the text of the argument called ``argument``, in UTC. Raises InvocationError for a malformed date."""
    try:
        return datetime.strptime(str(value), TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError as error:
        raise InvocationError(f"{argument}: {error}") from error


def general(pairs: Iterable[object]) -> list[x509.GeneralName]:
    """List of X.509 general names (``DNS``, ``IP``, ``email``, ...), one for each (type, value) pair.

    Raises InvocationError for an item that is not a pair; CommandError or InvocationError for an invalid type or value.
    """
    found = []
    for pair in pairs:
        try:
            kind, value = pair if isinstance(pair, tuple | list) else ()
        except (TypeError, ValueError):
            raise InvocationError(f"a general name is 'type:value', not {pair!r}") from None
        found.append(_general(str(kind).lower(), value))
    return found


def general_of(text: object) -> x509.GeneralName:
    """Return the X.509 general name for a text ``type:value``, such as ``DNS:example.org``. Raise InvocationError for a
    text without a colon; InvocationError or CommandError for an invalid type or value.
    """
    return general([pair(text)])[0]


def pair(text: object) -> tuple[str, str]:
    """Split the text ``type:value`` of a general name into (type, value). Raises InvocationError for a text without a colon."""
    kind, colon, value = str(text).partition(":")
    if not colon:
        raise InvocationError(f"a general name is 'type:value', not {text!r}")
    return kind.strip(), value.strip()


def domain(value: object, *, dot: bool = False, wildcard: bool = False) -> str:
    """Return a domain name in ASCII (IDNA), for a certificate. Raises CommandError for an invalid name, InvocationError for a
    value that is not text.

    With ``dot`` it may begin with a dot, with ``wildcard`` with ``*.``.
    """
    if not isinstance(value, str):
        raise InvocationError(f"Expected string value, got {type(value).__name__}: `{value}`")
    head = "." if value.startswith(".") else "*." if value.startswith("*.") else ""
    if head == "." and not dot:
        raise CommandError("Leading dots are not allowed in this context")
    if head == "*." and not wildcard:
        raise CommandError("Wildcards are not allowed in this context")
    labels = value.removeprefix(head).removesuffix(".").split(".")
    try:
        encoded = [label if label.isascii() else label.encode("idna").decode() for label in labels]
    except UnicodeError as error:
        raise CommandError(f"'{value}' is not a domain name: {error}") from error
    for label in encoded:
        if not label:
            raise CommandError("Empty domain" if labels == [""] else "Empty Label")
        if not _LABEL.fullmatch(label) or len(label) > 63:
            raise CommandError(f"'{value}' is not a domain name: '{label}' is not allowed in it")
    return head + ".".join(encoded)


def _general(kind: str, value: object) -> x509.GeneralName:
    try:
        if kind == "dirname":
            return x509.DirectoryName(distinguished(value))
        if kind == "rid":
            return x509.RegisteredID(identifier(value))
        if kind == "ip":
            return x509.IPAddress(_address(value))
        if kind == "email":
            return x509.RFC822Name(_mailbox(str(value)))
        if kind == "uri":
            return x509.UniformResourceIdentifier(_resource(str(value)))
        if kind == "dns":
            return x509.DNSName(domain(value, dot=True, wildcard=True))
    except (TypeError, ValueError) as error:
        raise CommandError(f"{kind}:{value}: {error}") from error
    if kind == "othername":
        raise InvocationError("otherName is currently not implemented")
    raise CommandError(f"GeneralName type {kind} is invalid")


def _address(
    value: object,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address | ipaddress.IPv4Network | ipaddress.IPv6Network:
    given = value if isinstance(value, int | bytes) else str(value)
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(given)
    with contextlib.suppress(ValueError):
        return ipaddress.ip_network(given)
    raise CommandError(f"Provided value {value} does not seem to be an IP address or network range.")


def _mailbox(value: str) -> str:
    user, at, host = value.rpartition("@")
    # In name constraints, a value without "@" means all mailboxes of a domain.
    return f"{user}@{domain(host)}" if at else domain(value, dot=True)


def _resource(value: str) -> str:
    parts = urllib.parse.urlsplit(value)
    if not parts.netloc:
        return value
    user, at, server = parts.netloc.rpartition("@")
    host, colon, port = server.partition(":") if not server.startswith("[") else (server, "", "")
    if host.startswith("[") or re.fullmatch(r"[0-9.]+", host):
        return value
    return urllib.parse.urlunsplit(parts._replace(netloc=f"{user}{at}{domain(host)}{colon}{port}"))
