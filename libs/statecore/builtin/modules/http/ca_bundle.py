"""``http.update_ca_bundle``: replace the host's file of trusted certificate authorities."""

from __future__ import annotations

from pathlib import Path

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.sources import downloads

#: Paths where distributions keep the bundle. Salt: salt/utils/http.py.
_PLACES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/tls/certs/ca-bundle.trust.crt",
    "/etc/ssl/certs/ca-bundle.crt",
    "/var/lib/ca-certificates/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def update_ca_bundle(
    ctx: Context, target: str | None = None, source: str | None = None, merge_files: object = None
) -> None:
    """Download a bundle of certificate authorities and write it, followed by the ``merge_files``, to the host's bundle
    file.

    target
        path of the bundle; default: the option ``ca_bundle``, else the first known path that exists on the host
    source
        https URL of the bundle; default: the option ``ca_bundle_url``. Saltern has no built-in source, unlike Salt
    merge_files
        a path, or a list of paths, of PEM files to append

    Raise InvocationError without a source, CommandError if the download is not a certificate.

    CLI Example:

        salt '*' http.update_ca_bundle source=https://example.com/cacerts.pem merge_files=/path/to/mycert.pem
    """
    source = source or ctx.call("config.get", "ca_bundle_url", None)
    if not source:
        raise InvocationError("http.update_ca_bundle needs a source: an https URL of a bundle that you trust")
    named = [merge_files] if isinstance(merge_files, str) else [] if merge_files is None else merge_files
    if not isinstance(named, list):
        raise InvocationError(f"merge_files is a path, or a list of paths, not {merge_files!r}")
    name = target or ctx.call("config.get", "ca_bundle", None) or _found(ctx)
    real_path = ctx.host.path(str(name))
    parts = [_fetched(ctx, str(source))]
    for each in named:
        data = managed_file.read(ctx.host.path(str(each)), str(each))
        if data is None:
            raise CommandError(f"merge_files: there is no file {each}")
        parts.append(data)
    managed_file.replace(ctx.host, real_path, b"\n".join(parts), Attributes())


def _found(ctx: Context) -> str:
    for name in _PLACES:
        if ctx.host.path(name).is_file():
            return name
    raise CommandError("the host has no bundle of certificate authorities at a known path; set `target`")


def _fetched(ctx: Context, source: str) -> bytes:
    kept = Path(ctx.opts["cachedir"], "ca-bundle.pem")
    downloads.fetch(source, kept)
    try:
        data = kept.read_bytes()
    finally:
        kept.unlink(missing_ok=True)
    if b"-----BEGIN CERTIFICATE-----" not in data:
        raise CommandError(f"{downloads.shown(source)} does not contain a certificate")
    return data
