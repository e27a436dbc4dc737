"""The state ``ssh_pki.certificate_managed``: creates and renews a certificate of OpenSSH in a file."""

from __future__ import annotations

from collections.abc import Mapping

from cryptography.hazmat.primitives.serialization import SSHCertificate

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Plan
from statecore.system.certificates import references
from statecore.system.certificates.state_file import FaultOfCall, ManagedFile, need_nothing_more, split
from statecore.system.ssh_certificates import desired, keys, policies

#: The execution module that signs.
_BACKEND = "ssh_pki"


def certificate_managed(
    ctx: Context,
    name: str,
    ttl_remaining: str | float | None = None,
    ca_server: str | None = None,
    backend: str | None = None,
    backend_args: Mapping[str, object] | None = None,
    signing_policy: str | None = None,
    copypath: str | None = None,
    cert_type: str | None = None,
    signing_private_key: object = None,
    signing_private_key_passphrase: str | None = None,
    public_key: object = None,
    private_key: object = None,
    private_key_passphrase: str | None = None,
    serial_number: object = None,
    not_before: str | None = None,
    not_after: str | None = None,
    ttl: str | float | None = None,
    critical_options: Mapping[str, object] | None = None,
    extensions: Mapping[str, object] | None = None,
    valid_principals: object = None,
    all_principals: bool = False,
    key_id: str | None = None,
    check_cmd: str | None = None,
    **kwargs: object,
) -> Plan:
    """Create a certificate of OpenSSH. It is recreated if its content differs from the arguments, or before it expires.

    ttl_remaining
        duration (seconds, ``1.5h``, ``12d``) before the expiry at which the certificate is recreated; default 7 days for
        hosts, an hour for users
    ca_server, signing_policy
        the minion that signs, and the name of one of its signing policies
    backend, backend_args
        another execution module with the functions ``create_certificate`` and ``get_signing_policy``, and arguments for
        them
    copypath, cert_type, signing_private_key, public_key, ttl, valid_principals and all others
        as in ``ssh_pki.create_certificate``
    user, group, mode, makedirs, …
        as in ``file.managed``
    """
    asked: dict[str, object] = {
        "cert_type": cert_type,
        "signing_private_key": signing_private_key,
        "signing_private_key_passphrase": signing_private_key_passphrase,
        "public_key": public_key,
        "private_key": private_key,
        "private_key_passphrase": private_key_passphrase,
        "serial_number": serial_number,
        "not_before": not_before,
        "not_after": not_after,
        "ttl": ttl,
        "critical_options": critical_options,
        "extensions": extensions,
        "valid_principals": valid_principals,
        "all_principals": all_principals or None,
        "key_id": key_id,
    }
    asked = {argument: value for argument, value in asked.items() if value is not None}
    module, more = backend or _BACKEND, dict(backend_args or {})
    try:
        given, rest = split({**kwargs, "check_cmd": check_cmd})
        need_nothing_more(rest)
        _need_taken(ctx, module, more)
        left = desired.seconds("ttl_remaining", ttl_remaining)
        file = ManagedFile.of(ctx, name, given)
        current, changes = _current(file)
        remote = bool(ca_server) or module != _BACKEND
        try:
            if current is not None or not remote:
                policy = ctx.call(f"{module}.get_signing_policy", signing_policy, ca_server=ca_server, **more)
                order, signer = _order(ctx, policy or {}, asked, remote=remote)
        except references.NoSuchFile:
            # An earlier state may create the missing file. Creating the certificate fails if it does not.
            if current is not None:
                raise
        if current is not None:
            changes |= _changes(order, signer, current, asked)
            usual = desired.TTL_REMAINING[desired.kind_of(current)]
            if desired.ends_within(current, usual if left is None else left):
                changes["expiration"] = True
    except FaultOfCall as error:
        return Plan.failed(str(error))

    def make() -> bytes:
        made = ctx.call(
            f"{module}.create_certificate",
            ca_server=ca_server,
            signing_policy=signing_policy,
            copypath=copypath,
            **asked,
            **more,
        )
        return f"{made}\n".encode()

    return file.plan("certificate", changes, make, again=current is not None)


def _need_taken(ctx: Context, module: str, more: Mapping[str, object]) -> None:
    """Raise InvocationError if a function of the backend ``module`` does not take one of the ``backend_args``."""
    for function in ("get_signing_policy", "create_certificate") if more else ():
        spec = ctx.catalog.argspec(f"{module}.{function}") or {"kwargs": True}
        unknown = [] if spec["kwargs"] else sorted(more.keys() - set(spec["args"] or ()))
        if unknown:
            raise InvocationError(f"backend_args: {module}.{function} takes no argument {', '.join(unknown)}")


def _current(file: ManagedFile) -> tuple[SSHCertificate | None, dict[str, object]]:
    if file.old is None:
        return None, {"created": file.name, **({"replaced": file.name} if file.unlinks else {})}
    try:
        return keys.certificate(file.old), {}
    except keys.NotReadable:
        return None, {"replaced": file.name}


def _order(
    ctx: Context, policy: Mapping[str, object], asked: Mapping[str, object], *, remote: bool
) -> tuple[desired.WantedCertificate, keys.PublicKey]:
    """Return the desired certificate and the public key of its signer. ``remote``: another minion or module signs."""
    given = policies.merged(policy, asked)
    delivered = given.pop("signing_public_key", None)
    made = desired.certificate(lambda reference: keys.content(ctx.host, reference), given, remote=remote)
    if made.signing_key is not None:
        return made.desired, made.signing_key.public_key()
    if delivered is None:
        raise CommandError("The remote CA server or backend module did not deliver the CA pubkey")
    return made.desired, keys.any_public_key(keys.content(ctx.host, delivered))


def _changes(
    wanted: desired.WantedCertificate, signer: keys.PublicKey, current: SSHCertificate, asked: Mapping[str, object]
) -> dict[str, object]:
    """Return what differs in the existing certificate. A random serial number never does."""
    found = wanted.changes(current, signer)
    if "serial_number" in found:
        del found["serial_number"]
        if "serial_number" in asked:
            found["serial_number"] = asked["serial_number"]
    return found
