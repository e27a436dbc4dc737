"""Signing policies of ``ssh_pki``, and certificates that another minion signs."""

from __future__ import annotations

from collections.abc import Mapping

from cryptography.hazmat.primitives.serialization import SSHCertificate

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.certificates import peers, policies
from statecore.system.certificates.arguments import passphrase as password
from statecore.system.certificates.host_files import write_file
from statecore.system.ssh_certificates import desired, keys

#: The function by which another minion signs.
_FUNCTION = "ssh_pki.sign_remote_certificate"

#: Arguments that only the signer sets: its keys, and the directory of its copies.
SIGNERS: frozenset[str] = frozenset(
    {
        *("ca_server", "signing_private_key", "signing_private_key_passphrase"),
        *("private_key", "private_key_passphrase", "copypath"),
    }
)


def reader(ctx: Context) -> desired.Read:
    """Return a function that reads an argument of ``ssh_pki``, a path of the host or the content itself, and returns
    bytes.
    """
    return lambda reference: keys.content(ctx.host, reference)


def policy_of(ctx: Context, name: str | None) -> dict[str, object]:
    """Return a signing policy of this minion as a map, from its pillar, else from its configuration; {} if there is
    none. Raise InvocationError for an invalid policy.
    """
    return policies.as_map(peers.configured_policy(ctx, "ssh_signing_policies", name), str(name))


def policy_of_peer(ctx: Context, ca_server: str, name: str | None) -> dict[str, object]:
    """Return a signing policy of another minion as a map, with its public key as ``signing_public_key``. Raise
    CommandError if that minion refuses.
    """
    return policies.as_map(peers.request_signing(ctx, _FUNCTION, ca_server, name, {}, only_policy=True), str(name))


def signed_by(ctx: Context, ca_server: str, policy: str | None, given: Mapping[str, object]) -> SSHCertificate:
    """Return the certificate that another minion signed. Raise CommandError if that minion refuses, InvocationError for
    invalid arguments.
    """
    read = reader(ctx)
    sent = {name: value for name, value in given.items() if name not in SIGNERS}
    if given.get("private_key"):
        locked = password("private_key_passphrase", given.get("private_key_passphrase"))
        sent["public_key"] = keys.encoded_public(keys.private_key(read(given["private_key"]), locked).public_key())
    elif given.get("public_key"):
        sent["public_key"] = keys.encoded_public(keys.public_key(read(given["public_key"])))
    returned = peers.request_signing(ctx, _FUNCTION, ca_server, policy, sent, only_policy=False)
    try:
        certificate = keys.certificate(read(returned))
    except (CommandError, InvocationError) as error:
        raise CommandError(f"ca_server did not return a certificate: {str(returned)[:200]}") from error
    write_copy(ctx, certificate, given.get("copypath"))
    return certificate


def write_copy(ctx: Context, certificate: SSHCertificate, directory: object) -> None:
    """Write a copy of a certificate into a directory (nothing if it is None), named by the serial number. Raise
    CommandError if there is no such directory, HostError if the file cannot be written.
    """
    if not directory:
        return
    if not ctx.host.path(str(directory)).is_dir():
        raise CommandError(f"copypath: there is no directory {directory}")
    write_file(ctx, f"{str(directory).rstrip('/')}/{certificate.serial:x}.crt", certificate.public_bytes())
