"""The state ``x509.crl_managed``: creates and renews a certificate revocation list in a file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509

from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.model.types import Plan
from statecore.system.certificates import arguments, desired, issuing, loading, policies, references
from statecore.system.certificates.state_file import FaultOfCall, ManagedFile, need_nothing_more, split

#: Default number of days before the expiry at which a list is recreated, as in Salt 3008.
_DAYS_REMAINING = 30


def crl_managed(
    ctx: Context,
    name: str,
    signing_private_key: object,
    revoked: object,
    days_remaining: int | None = None,
    signing_cert: object = None,
    signing_private_key_passphrase: str | None = None,
    include_expired: bool = False,
    days_valid: int | None = None,
    digest: str = "sha256",
    encoding: str = "pem",
    extensions: Mapping[str, object] | None = None,
    check_cmd: str | None = None,
    **kwargs: object,
) -> Plan:
    """Create a certificate revocation list. It is recreated if its content differs from the arguments, or before it
    expires.

    revoked, extensions
        as in ``x509.create_crl``. ``cRLNumber: auto``: increase the number with each list.
    days_remaining
        number of days before the expiry at which the list is recreated; default 30; 0: never
    user, group, mode, makedirs, …
        as in ``file.managed``
    """
    try:
        given, rest = split({**kwargs, "check_cmd": check_cmd})
        rest = policies.short(rest)
        need_nothing_more(rest)
        if extensions is not None and not isinstance(extensions, Mapping):
            raise InvocationError(f"extensions is a map, not {extensions!r}")
        digest = issuing.need_digest(digest)
        issuing.need_encoding(encoding, issuing.OTHERS)
        left = arguments.whole("days_remaining", days_remaining, _DAYS_REMAINING)
        file = ManagedFile.of(ctx, name, given)
        asked = dict(extensions or {})
        counts = asked.get("cRLNumber") == "auto"
        if counts:
            del asked["cRLNumber"]
        current, changes = _current(file)

        def order(more: Mapping[str, object]) -> tuple[desired.WantedList, loading.PrivateKey]:
            return arguments.revocation_list(
                lambda reference: references.content(ctx.host, reference),
                signing_private_key,
                signing_private_key_passphrase,
                signing_cert,
                revoked,
                include_expired,
                days_valid,
                {**asked, **more},
            )

        def make() -> bytes:
            if current is not None and not set(changes) - {"encoding"}:
                return issuing.encoded(current.value, encoding)
            wanted, key = order({"cRLNumber": _number(current) + 1} if counts else {})
            return issuing.encoded(wanted.signed(key, digest), encoding)

        try:
            wanted, key = order({})
        except references.NoSuchFile:
            # An earlier state may create the missing file. Creating the list fails if it does not.
            if current is not None:
                raise
        else:
            if current is not None:
                changes |= _uncounted(wanted.changes(current.value, key, digest), counts=counts)
        if current is not None:
            changes |= _aged(current, encoding, left)
    except FaultOfCall as error:
        return Plan.failed(str(error))
    return file.plan("certificate revocation list", changes, make, again=current is not None)


def _current(file: ManagedFile) -> tuple[loading.Loaded[x509.CertificateRevocationList] | None, dict[str, object]]:
    if file.old is None:
        return None, {"created": file.name, **({"replaced": file.name} if file.unlinks else {})}
    try:
        return loading.revocation_list(file.old), {}
    except loading.NotReadable:
        return None, {"replaced": file.name}


def _aged(current: loading.Loaded[x509.CertificateRevocationList], encoding: str, left: int) -> dict[str, object]:
    until = current.value.next_update_utc
    ends = bool(left) and (until is None or until < datetime.now(UTC) + timedelta(days=left))
    wrong = {"encoding": encoding} if current.encoding != encoding else {}
    return {**wrong, **({"expiration": True} if ends else {})}


def _number(current: loading.Loaded[x509.CertificateRevocationList] | None) -> int:
    """Return the number of the existing certificate revocation list; 0 if it has none."""
    if current is None:
        return 0
    try:
        return current.value.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    except x509.ExtensionNotFound:
        return 0


def _uncounted(changes: dict[str, Any], *, counts: bool) -> dict[str, object]:
    """Return a revocation list's map of changes without the removal of its number, if ``cRLNumber: auto`` sets the number."""
    if not counts or "extensions" not in changes:
        return changes
    rows = {
        kind: [each for each in listed if (kind, each) != ("removed", "cRLNumber")]
        for kind, listed in changes["extensions"].items()
    }
    rest = {name: value for name, value in changes.items() if name != "extensions"}
    return rest | ({"extensions": rows} if any(rows.values()) else {})
