"""A desired certificate of OpenSSH: made from the arguments of a call, signed, and compared with an existing one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography.hazmat.primitives.serialization import SSHCertificate, SSHCertificateBuilder, SSHCertificateType

from statecore.model.errors import CommandError, InvocationError
from statecore.system.certificates import issuing, names
from statecore.system.certificates.arguments import passphrase
from statecore.system.ssh_certificates import keys
from statecore.system.ssh_certificates.keys import PrivateKey, PublicKey

#: Function from a reference (path, text or bytes) to its bytes.
Read = Callable[[object], bytes]

TYPES: Mapping[str, SSHCertificateType] = {"user": SSHCertificateType.USER, "host": SSHCertificateType.HOST}

#: Type of the certificate -> default seconds of its validity, and before its end at which a state renews it.
TTL: Mapping[str, int] = {"user": 86400, "host": 30 * 86400}
TTL_REMAINING: Mapping[str, int] = {"user": 3600, "host": 7 * 86400}

#: Arguments that describe a certificate.
ARGUMENTS: tuple[str, ...] = (
    *("cert_type", "signing_private_key", "signing_private_key_passphrase", "public_key", "private_key"),
    *("private_key_passphrase", "serial_number", "not_before", "not_after", "ttl", "critical_options", "extensions"),
    *("valid_principals", "all_principals", "key_id"),
)

_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_SECONDS: Mapping[str, int] = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class WantedCertificate:
    """A certificate of OpenSSH before it is signed."""

    cert_type: str
    key: PublicKey
    serial: int
    key_id: bytes | None
    #: Names of users or hosts; none: the certificate is valid for all.
    principals: tuple[bytes, ...]
    valid_after: int
    valid_before: int
    critical_options: Mapping[bytes, bytes]
    extensions: Mapping[bytes, bytes]

    def signed(self, key: PrivateKey) -> SSHCertificate:
        """Return the certificate, signed with a private key. Raise InvocationError if a value is impossible."""
        try:
            built = SSHCertificateBuilder().public_key(self.key).serial(self.serial).type(TYPES[self.cert_type])
            if self.key_id is not None:
                built = built.key_id(self.key_id)
            if self.principals:
                built = built.valid_principals(list(self.principals))
            else:
                built = built.valid_for_all_principals()  # type: ignore[no-untyped-call]
            built = built.valid_after(self.valid_after).valid_before(self.valid_before)
            for name, value in self.critical_options.items():
                built = built.add_critical_option(name, value)
            for name, value in self.extensions.items():
                built = built.add_extension(name, value)
            return built.sign(key)
        except (ValueError, TypeError) as error:
            raise InvocationError(f"the certificate cannot be made: {error}") from error

    def changes(self, current: SSHCertificate, signer: PublicKey) -> dict[str, object]:
        """Return what differs in an existing certificate, by the names of Salt's changes; {} if nothing does.

        The dates are not compared. The serial number is told as ``serial_number: True``.
        """
        found: dict[str, object] = {}
        if self.serial != current.serial:
            found["serial_number"] = True
        if not issuing.same_key(self.key, keys.supported(current.public_key())):
            found["private_key"] = True
        if not keys.is_signed_by(current, signer):
            found["signing_private_key"] = True
        if self.key_id is not None and self.key_id != current.key_id:
            found["key_id"] = {"old": _text(current.key_id), "new": _text(self.key_id)}
        if TYPES[self.cert_type] is not current.type:
            found["cert_type"] = self.cert_type
        for name, wanted, has in (
            ("extensions", self.extensions, current.extensions),
            ("critical_options", self.critical_options, current.critical_options),
        ):
            if any((changed := _differing(wanted, has)).values()):
                found[name] = changed
        added, removed = _principals(self.principals, current.valid_principals)
        if added or removed:
            found["principals"] = {"added": added, "removed": removed}
        return found


@dataclass(frozen=True, slots=True)
class CertificateOrder:
    """A desired certificate, and the private key that signs it: the checked arguments of a call."""

    desired: WantedCertificate
    #: None if another minion (ca_server) or another module signs.
    signing_key: PrivateKey | None


def certificate(read: Read, given: Mapping[str, object], *, remote: bool = False) -> CertificateOrder:
    """Check the arguments for a certificate, load the keys that they name, and return the CertificateOrder.

    With ``remote`` something else signs, so no signing key is loaded. Raise InvocationError for a missing, unknown or
    malformed argument; CommandError for a key that cannot be used.
    """
    if unknown := sorted(set(given) - set(ARGUMENTS)):
        raise InvocationError(f"Unrecognized keyword arguments: {unknown}")
    if not remote and not given.get("signing_private_key"):
        raise InvocationError("Creating a certificate locally at least requires a signing private key.")
    kind = given.get("cert_type")
    if not isinstance(kind, str) or kind not in TYPES:
        raise InvocationError(f"Cert type needs to be either `user` or `host`, got '{kind}'")
    signing = None if remote else _key(read, given, "signing_private_key")
    serial = _serial(given.get("serial_number"))
    holder = _holder(read, given)
    key_id = given.get("key_id")
    principals = _names(given.get("valid_principals"))
    if not principals and not given.get("all_principals"):
        raise InvocationError("Must either set all_principals to true or specify principals to allow")
    after, before = _validity(given, TTL[kind])
    wanted = WantedCertificate(
        cert_type=kind,
        key=holder,
        serial=serial,
        key_id=None if key_id is None else key_id if isinstance(key_id, bytes) else str(key_id).encode(),
        principals=principals,
        valid_after=int(after.timestamp()),
        valid_before=int(before.timestamp()),
        critical_options=_options("critical_options", given.get("critical_options")),
        extensions=_options("extensions", given.get("extensions")),
    )
    return CertificateOrder(wanted, signing)


def seconds(argument: str, value: object) -> float | None:
    """Return the seconds of a duration such as ``90``, ``1.5h`` or ``30d``; None for None. ``argument``: its name.

    Raise InvocationError for any other value.
    """
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    try:
        return float(str(value))
    except ValueError:
        pass
    if (found := _DURATION.fullmatch(str(value))) is None:
        raise InvocationError(f"{argument}: Invalid time string format: {value}")
    return float(found[1]) * _SECONDS[found[2]]


def ends_within(current: SSHCertificate, left: float) -> bool:
    """Return True if a certificate ends within ``left`` seconds, or has ended."""
    return current.valid_before <= (datetime.now(UTC) + timedelta(seconds=left)).timestamp()


def kind_of(current: SSHCertificate) -> str:
    """Return the type of a certificate: user or host."""
    return next(name for name, kind in TYPES.items() if kind is current.type)


def _key(read: Read, given: Mapping[str, object], argument: str) -> PrivateKey:
    locked = passphrase(f"{argument}_passphrase", given.get(f"{argument}_passphrase"))
    return keys.private_key(read(given[argument]), locked)


def _holder(read: Read, given: Mapping[str, object]) -> PublicKey:
    if given.get("private_key"):
        return _key(read, given, "private_key").public_key()
    if given.get("public_key"):
        return keys.public_key(read(given["public_key"]))
    raise InvocationError("Need public_key or private_key to derive public key to sign")


def _serial(value: object) -> int:
    """Return a serial number. None gives a new random number below 2^63, as the format has no room for longer ones."""
    return int.from_bytes(os.urandom(8), "big") >> 1 if value is None else names.serial(value)


def _validity(given: Mapping[str, object], usual: int) -> tuple[datetime, datetime]:
    after = names.moment("not_before", given["not_before"]) if given.get("not_before") else datetime.now(UTC)
    if given.get("not_after"):
        return after, names.moment("not_after", given["not_after"])
    lasting = seconds("ttl", given.get("ttl"))
    try:
        return after, datetime.now(UTC) + timedelta(seconds=usual if lasting is None else lasting)
    except OverflowError as error:
        raise InvocationError(f"ttl: {given['ttl']} is too long") from error


def _names(value: object) -> tuple[bytes, ...]:
    given = [value] if isinstance(value, str | bytes) else value or []
    if not isinstance(given, Iterable):
        raise InvocationError(f"valid_principals is a list of names, not {value!r}")
    return tuple(each if isinstance(each, bytes) else str(each).encode() for each in given)


def _options(argument: str, value: object) -> dict[bytes, bytes]:
    """Return {name: value} of critical options or extensions, both in bytes, as a certificate holds them.

    One without a value is given as ``true``; one that is false is left out.
    """
    if not isinstance(value or {}, Mapping):
        raise InvocationError(f"{argument} is a map, not {value!r}")
    found = {}
    for name, each in (value or {}).items():  # type: ignore[attr-defined]
        if not each:
            continue
        if each is not True and not isinstance(each, str | bytes):
            raise InvocationError(f"{argument}: {name} is a text or true, not {each!r}")
        found[str(name).encode()] = b"" if each is True else each if isinstance(each, bytes) else each.encode()
    return found


def _differing(wanted: Mapping[bytes, bytes], has: Mapping[bytes, bytes]) -> dict[str, list[str]]:
    return {
        "added": [_text(name) for name in wanted if name not in has],
        "changed": [_text(name) for name, value in wanted.items() if name in has and has[name] != value],
        "removed": [_text(name) for name in has if name not in wanted],
    }


def _principals(wanted: Sequence[bytes], has: Sequence[bytes]) -> tuple[list[str] | str, list[str] | str]:
    """Return (added, removed) names; ``*ALL*`` stands for a certificate that is valid for all."""
    if not wanted:
        return ("*ALL*" if has else []), []
    added = [_text(each) for each in wanted if each not in has]
    return added, ([_text(each) for each in has if each not in wanted] if has else "*ALL*")


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise CommandError(f"the certificate has a name that is not UTF-8: {value!r}") from error
