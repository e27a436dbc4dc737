"""Functions of ``x509`` that describe keys, certificates, requests and revocation lists."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable

from statecore.builtin.modules.x509.host_files import reader
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.certificates import descriptions, issuing, loading
from statecore.system.certificates.arguments import passphrase as password


def read_certificate(ctx: Context, certificate: object) -> dict[str, object]:
    """Return a map that describes an X.509 certificate: version, serial_number, subject, issuer, not_before, not_after,
    key_type, key_size, public_key, fingerprints, extensions and more.

    CLI Example:

        salt '*' x509.read_certificate /etc/pki/mycert.crt
    """
    return descriptions.certificate(loading.certificate(reader(ctx)(certificate)).certificate)


def read_certificates(ctx: Context, glob_path: str) -> dict[str, dict[str, object]]:
    """Return a map of path to the map of ``x509.read_certificate`` (subject, issuer, dates, ...) for each certificate
    of the host that matches a glob. Other matching files are left out.

    CLI Example:

        salt '*' x509.read_certificates "/etc/pki/*.crt"
    """
    found = {}
    for name in _matching(ctx, glob_path):
        try:
            found[name] = read_certificate(ctx, name)
        except InvocationError:
            continue
    return found


def read_csr(ctx: Context, csr: object) -> dict[str, object]:
    """Return a map that describes a certificate request: subject, key_type, key_size, public_key_hash and extensions."""
    return descriptions.request(loading.request(reader(ctx)(csr)).value)


def read_crl(ctx: Context, crl: object) -> dict[str, object]:
    """Return a map that describes a certificate revocation list: issuer, last_update, next_update, revoked_certificates
    (by serial number), extensions.
    """
    return descriptions.revocation_list(loading.revocation_list(reader(ctx)(crl)).value)


def get_public_key(ctx: Context, key: object, passphrase: str | None = None, asObj: object = None) -> str:
    """Return the public key, in PEM, of a private key, certificate or request. Raise CommandError for any other
    data.

    CLI Example:

        salt '*' x509.get_public_key /etc/pki/my.key
    """
    data = reader(ctx)(key)
    locked = password("passphrase", passphrase)
    forms: tuple[Callable[[], issuing.Encodable], ...] = (
        lambda: loading.public_key(data),
        lambda: loading.certificate(data, locked).certificate.public_key(),
        lambda: loading.key(data, locked).key.public_key(),
        lambda: loading.request(data).value.public_key(),
    )
    for load in forms:
        try:
            return issuing.public_pem(load())
        except loading.PasswordFault as error:
            raise CommandError(str(error)) from error
        except (InvocationError, CommandError, ValueError):
            continue
    raise CommandError("Could not load key as certificate, public key, private key or CSR")


def get_private_key_size(ctx: Context, private_key: object, passphrase: str | None = None) -> int | None:
    """Return the size of a private key in bits; None for kinds of keys that have only one size."""
    return issuing.key_size(loading.key(reader(ctx)(private_key), password("passphrase", passphrase)).key)


def _matching(ctx: Context, pattern: str) -> list[str]:
    """Return the paths of the host's regular files that match a glob, sorted. Paths are resolved within the host's
    root.
    """
    if not pattern.startswith("/"):
        raise InvocationError(f"glob_path is an absolute path, not {pattern!r}")
    found = [""]
    for part in pattern.strip("/").split("/"):
        found = [f"{above}/{name}" for above in found for name in _names(ctx, above or "/", part)]
    return sorted(name for name in found if ctx.host.path(name).is_file())


def _names(ctx: Context, directory: str, pattern: str) -> list[str]:
    real_path = ctx.host.path(directory)
    names = [path.name for path in real_path.iterdir()] if real_path.is_dir() else []
    hidden = pattern.startswith(".")
    return [name for name in fnmatch.filter(names, pattern) if hidden or not name.startswith(".")]
