"""Signing policies, and requests to another minion that signs. The master's option ``peer`` must allow them. Helpers of
``x509``.
"""

from __future__ import annotations

from collections.abc import Mapping

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from statecore.builtin.modules.x509.host_files import reader
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.certificates import descriptions, issuing, loading, peers, policies
from statecore.system.certificates.arguments import passphrase as password
from statecore.system.certificates.host_files import write_file
from statecore.system.certificates.loading import PrivateKey

#: Arguments that only the signer sets: its keys, and the directory of its copies.
SIGNERS: frozenset[str] = frozenset(
    {
        "ca_server",
        "signing_private_key",
        "signing_private_key_passphrase",
        "signing_cert",
        "private_key",
        "private_key_passphrase",
        "copypath",
        "prepend_cn",
    }
)


def policy_of(ctx: Context, name: str | None) -> dict[str, object]:
    """Return a signing policy of this minion as a map, from its pillar, else from its configuration; {} if there is
    none.

    Raise InvocationError for an invalid policy.
    """
    return policies.read(peers.configured_policy(ctx, "x509_signing_policies", name), str(name))


def request_signing(
    ctx: Context, ca_server: str, policy: str | None, given: Mapping[str, object], *, only_policy: bool = False
) -> object:
    """Call ``x509.sign_remote_certificate`` on another minion and return the ``data`` of its result. Raise CommandError
    if that minion refuses.
    """
    return peers.request_signing(ctx, "x509.sign_remote_certificate", ca_server, policy, given, only_policy=only_policy)


def signed_by(
    ctx: Context, ca_server: str, policy: str | None, given: Mapping[str, object]
) -> tuple[x509.Certificate, PrivateKey | None]:
    """Return (the certificate that another minion signed, this minion's private key for it or None). Raise CommandError
    if that minion refuses, InvocationError for invalid arguments.
    """
    read = reader(ctx)
    own = None
    sent = {name: value for name, value in given.items() if name not in SIGNERS}
    if given.get("private_key"):
        locked = password("private_key_passphrase", given.get("private_key_passphrase"))
        own = loading.key(read(given["private_key"]), locked).key
        sent["public_key"] = issuing.public_der(own.public_key())
    elif given.get("public_key"):
        sent["public_key"] = issuing.public_der(loading.public_key(read(given["public_key"])))
    if given.get("csr"):
        sent["csr"] = issuing.encoded(loading.request(read(given["csr"])).value, "der")
    returned = request_signing(ctx, ca_server, policy, sent)
    try:
        certificate = loading.certificate(returned if isinstance(returned, bytes) else read(returned)).certificate
    except InvocationError as error:
        raise CommandError(f"ca_server did not return a certificate: {str(returned)[:200]}") from error
    write_copy(ctx, certificate, given)
    return certificate, own


def write_copy(ctx: Context, certificate: x509.Certificate, given: Mapping[str, object]) -> None:
    """Write a copy of a certificate into the directory ``copypath`` (nothing if it is not given), named by the serial
    number. Raise CommandError if there is no such directory, HostError if the file cannot be written.
    """
    if not given.get("copypath"):
        return
    common = str(descriptions.parts(certificate.subject).get("CN", "")) if given.get("prepend_cn") else ""
    if "/" in common or common.startswith("."):
        raise InvocationError(f"prepend_cn: '{common}' cannot be part of a file's name")
    name = f"{common}{'-' if common else ''}{certificate.serial_number:x}.crt"
    directory = str(given["copypath"])
    if not ctx.host.path(directory).is_dir():
        raise CommandError(f"copypath: there is no directory {directory}")
    write_file(ctx, f"{directory.rstrip('/')}/{name}", certificate.public_bytes(serialization.Encoding.PEM))
