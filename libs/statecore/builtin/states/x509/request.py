"""The state ``x509.csr_managed``: creates a certificate signing request in a file."""

from __future__ import annotations

from cryptography import x509
from cryptography.x509 import InvalidVersion

from statecore.model.context import Context
from statecore.model.types import Plan
from statecore.system.certificates import arguments, issuing, loading, policies, references
from statecore.system.certificates.state_file import FaultOfCall, ManagedFile, split


def csr_managed(
    ctx: Context,
    name: str,
    private_key: object,
    private_key_passphrase: str | None = None,
    digest: str = "sha256",
    encoding: str = "pem",
    subject: object = None,
    check_cmd: str | None = None,
    **kwargs: object,
) -> Plan:
    """Create a certificate signing request for a private key. It is recreated if its content differs from the
    arguments.

    subject, or CN, O, …; keyUsage, subjectAltName, …
        as in ``x509.create_csr``
    user, group, mode, makedirs, …
        as in ``file.managed``
    """
    try:
        given, rest = split({**kwargs, "check_cmd": check_cmd, "subject": subject})
        rest = policies.short(rest)
        digest = issuing.need_digest(rest.pop("digest", digest))
        issuing.need_encoding(encoding, issuing.OTHERS)
        file = ManagedFile.of(ctx, name, given)
        current, changes = _current(file)

        def make() -> bytes:
            if current is not None and not set(changes) - {"encoding"}:
                return issuing.encoded(current.value, encoding)
            wanted, key = arguments.request(_read(ctx), private_key, private_key_passphrase, rest)
            return issuing.encoded(wanted.signed(key, digest), encoding)

        try:
            wanted, key = arguments.request(_read(ctx), private_key, private_key_passphrase, rest)
        except references.NoSuchFile:
            # An earlier state may create the missing key. Creating the request fails if it does not.
            if current is not None:
                raise
        else:
            if current is not None:
                changes |= wanted.changes(current.value, key, digest)
        if current is not None and current.encoding != encoding:
            changes["encoding"] = encoding
    except FaultOfCall as error:
        return Plan.failed(str(error))
    return file.plan("certificate signing request", changes, make, again=current is not None)


def _current(file: ManagedFile) -> tuple[loading.Loaded[x509.CertificateSigningRequest] | None, dict[str, object]]:
    if file.old is None:
        return None, {"created": file.name, **({"replaced": file.name} if file.unlinks else {})}
    try:
        return loading.request(file.old), {}
    except loading.NotReadable:
        return None, {"replaced": file.name}
    except InvalidVersion:
        # Salt's first x509 module wrote requests with an invalid version.
        return None, {"invalid_version": True, "replaced": file.name}


def _read(ctx: Context) -> arguments.Read:
    return lambda reference: references.content(ctx.host, reference)
