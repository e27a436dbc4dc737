"""The state ``x509.certificate_managed``: creates and renews a certificate in a file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509

from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.model.types import Plan
from statecore.system.certificates import arguments, desired, issuing, loading, policies, references
from statecore.system.certificates.arguments import passphrase as password
from statecore.system.certificates.state_file import FaultOfCall, ManagedFile, split

#: Default number of days before the expiry at which a certificate is recreated, as in Salt 3008.
_DAYS_REMAINING = 90

#: Changes that need no new signature: the existing certificate is only written in another form.
_OF_FORM = frozenset({"additional_certs", "encoding", "pkcs12_friendlyname"})


def certificate_managed(
    ctx: Context,
    name: str,
    days_remaining: int | None = None,
    ca_server: str | None = None,
    signing_policy: str | None = None,
    encoding: str = "pem",
    append_certs: object = None,
    digest: str | None = None,
    signing_private_key: object = None,
    signing_private_key_passphrase: str | None = None,
    signing_cert: object = None,
    public_key: object = None,
    private_key: object = None,
    private_key_passphrase: str | None = None,
    csr: object = None,
    subject: object = None,
    serial_number: object = None,
    not_before: str | None = None,
    not_after: str | None = None,
    days_valid: int | None = None,
    pkcs12_passphrase: str | None = None,
    pkcs12_encryption_compat: bool = False,
    pkcs12_friendlyname: str | None = None,
    check_cmd: str | None = None,
    **kwargs: object,
) -> Plan:
    """Create an X.509 certificate. It is recreated if its content differs from the arguments, or before it expires.

    days_remaining
        number of days before the expiry at which the certificate is recreated; default 90
    encoding
        pem, der, pkcs7_pem, pkcs7_der or pkcs12
    append_certs
        certificates to append after the certificate
    copypath, prepend_cn, CN, O, …, keyUsage, subjectAltName, … and all others
        as in ``x509.create_certificate``
    user, group, mode, makedirs, …
        as in ``file.managed``
    """
    asked = {
        "digest": digest,
        "signing_private_key": signing_private_key,
        "signing_private_key_passphrase": signing_private_key_passphrase,
        "signing_cert": signing_cert,
        "public_key": public_key,
        "private_key": private_key,
        "private_key_passphrase": private_key_passphrase,
        "csr": csr,
        "subject": subject,
        "serial_number": serial_number,
        "not_before": not_before,
        "not_after": not_after,
        "days_valid": days_valid,
    }
    form = {
        "pkcs12_passphrase": pkcs12_passphrase,
        "pkcs12_encryption_compat": pkcs12_encryption_compat,
        "pkcs12_friendlyname": pkcs12_friendlyname,
    }
    try:
        given, rest = split({**kwargs, **asked, "check_cmd": check_cmd})
        rest = policies.short(rest)
        chain = append_certs if isinstance(append_certs, list) else [append_certs] if append_certs else []
        issuing.need_certificate_encoding(encoding, bool(chain))
        left = arguments.whole("days_remaining", days_remaining, _DAYS_REMAINING)
        file = ManagedFile.of(ctx, name, given)
        current, changes = _current(file, password("pkcs12_passphrase", pkcs12_passphrase))
        own_key = None
        try:
            policy = ctx.call("x509.get_signing_policy", signing_policy, ca_server=ca_server) if signing_policy else {}
            order = arguments.certificate(_read(ctx), policies.merged(policy, rest), remote=bool(ca_server))
            own_key = order.own_key
            if encoding == "pkcs12" and own_key is None:
                raise InvocationError(
                    "Creating a PKCS12-encoded certificate without embedded private key is unsupported"
                )
            behind = [loading.certificate(_read(ctx)(each)).certificate for each in chain]
        except references.NoSuchFile:
            # An earlier state may create the missing file. Creating the certificate fails if it does not.
            if current is not None:
                raise
        else:
            if current is not None:
                changes |= order.desired.changes(current.certificate, order.digest)
                changes |= _of_form(current, encoding, behind, pkcs12_friendlyname)
                if "serial_number" in changes:
                    changes["serial_number"] = serial_number
                if current.certificate.not_valid_after_utc < datetime.now(UTC) + timedelta(days=left):
                    changes["expiration"] = True
    except FaultOfCall as error:
        return Plan.failed(str(error))

    def make() -> bytes:
        if current is not None and not set(changes) - _OF_FORM:
            return issuing.encoded_certificate(
                current.certificate,
                encoding,
                behind,
                own_key if encoding == "pkcs12" else None,
                password("pkcs12_passphrase", pkcs12_passphrase),
                pkcs12_encryption_compat,
                pkcs12_friendlyname,
            )
        made: bytes = ctx.call(
            "x509.create_certificate",
            ca_server=ca_server,
            signing_policy=signing_policy,
            encoding=encoding,
            append_certs=chain,
            raw=True,
            **form,
            **rest,
        )
        return made

    return file.plan("certificate", changes, make, again=current is not None)


def _current(file: ManagedFile, passphrase: str | None) -> tuple[loading.LoadedCertificate | None, dict[str, object]]:
    if file.old is None:
        return None, {"created": file.name, **({"replaced": file.name} if file.unlinks else {})}
    try:
        return loading.certificate(file.old, passphrase), {}
    except loading.WrongPassword:
        return None, {"pkcs12_passphrase": True}
    except loading.NotReadable:
        return None, {"replaced": file.name}


def _of_form(
    current: loading.LoadedCertificate, encoding: str, behind: list[x509.Certificate], friendly_name: str | None
) -> dict[str, object]:
    found: dict[str, object] = {}
    if current.encoding != encoding:
        found["encoding"] = encoding
    elif encoding == "pkcs12" and (current.friendly_name or b"").decode() != (friendly_name or ""):
        found["pkcs12_friendlyname"] = friendly_name
    if not desired.same_chain(current.chain, behind):
        found["additional_certs"] = True
    return found


def _read(ctx: Context) -> arguments.Read:
    return lambda reference: references.content(ctx.host, reference)
