"""Functions of ``pkg`` about packages' files on a host with zypper: their owner, changes since the installation, downloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from statecore.builtin.modules import lowpkg_rpm
from statecore.builtin.modules.pkg_rpm import inventory, package_diffs
from statecore.builtin.modules.pkg_zypper import zypper
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError

_CACHE = "/var/cache/zypp/packages"


def owner(ctx: Context, *paths: str, **kwargs: object) -> object:
    """Return the name of the package that a file of the host belongs to, "" if there is none. For several paths return a map of
    path to name.

    CLI Example:

        salt '*' pkg.owner /usr/bin/apachectl
    """
    return lowpkg_rpm.owner(ctx, *paths, **kwargs)


def file_list(ctx: Context, *packages: str, **kwargs: object) -> dict[str, list[str]]:
    """Return the files of packages, or without an argument of all installed ones: a map of ``errors`` and ``files``.

    CLI Example:

        salt '*' pkg.file_list nginx
    """
    return lowpkg_rpm.file_list(ctx, *packages, **kwargs)


def file_dict(ctx: Context, *packages: str, **kwargs: object) -> dict[str, Any]:
    """Return the files of packages: a map of ``errors`` (messages about unknown packages) and ``packages`` (a map of package to
    its files).

    CLI Example:

        salt '*' pkg.file_dict nginx
    """
    return lowpkg_rpm.file_dict(ctx, *packages, **kwargs)


def verify(ctx: Context, *names: str, **kwargs: Any) -> dict[str, dict[str, Any]]:
    """Return the files of packages that changed since their installation: a map of path to the differing attributes and the kind
    of the file. The named packages are checked, or all. Raise CommandError if rpm fails.

    ignore_types
        kinds of files that are left out: config, doc, ghost, license, readme
    verify_options
        options of rpm -V: ``["nodeps", "nosize"]``

    CLI Example:

        salt '*' pkg.verify nginx ignore_types='["config"]'
    """
    return lowpkg_rpm.verify(ctx, *names, **kwargs)


def modified(ctx: Context, *packages: str, **flags: object) -> dict[str, Any]:
    """Return the files of packages that changed since their installation: a map of path to a list of what differs.

    size, mode, checksum, device, symlink, owner, group, time, capabilities
        True: only files that differ in it; False: only files that do not

    CLI Example:

        salt '*' pkg.modified nginx mode=True
    """
    return lowpkg_rpm.modified(ctx, *packages, **flags)


def download(ctx: Context, *packages: str, **kwargs: Any) -> dict[str, Any]:
    """Download packages without installing them. Return a map of package to a map of ``repository-name``, ``repository-alias``
    and ``path``; ``_error`` names packages that could not be downloaded, or whose digests are wrong. Raise CommandError if none
    could be.

    refresh
        True: fetch the metadata of the repositories before

    CLI Example:

        salt '*' pkg.download nginx
    """
    if not packages:
        raise InvocationError("No packages specified")
    root = kwargs.get("root")
    if kwargs.get("refresh"):
        zypper.refresh(ctx, force=kwargs.get("force"), root=root, trust_keys=bool(kwargs.get("gpgautoimport")))
    found: dict[str, Any] = {}
    for result in zypper.order_xml(ctx, "download", *packages, root=root).iter("download-result"):
        repository, file = result.find(".//repository"), result.find(".//localfile")
        if repository is None or file is None:
            continue
        path = file.get("path", "")
        if lowpkg_rpm.checksum(ctx, path, root=root)[path]:
            found[(result.findtext(".//name") or "").strip()] = {
                "repository-name": repository.get("name", ""),
                "repository-alias": repository.get("alias", ""),
                "path": path,
            }
    if not found:
        raise CommandError(f"Unable to download packages: {', '.join(packages)}")
    failed = [name for name in packages if name not in found]
    error = {"_error": f"The following package(s) failed to download: {', '.join(failed)}"} if failed else {}
    return found | error


def list_downloaded(
    ctx: Context, root: str | None = None, **kwargs: object
) -> dict[str, dict[str, dict[str, str | int]]]:
    """Return the package files in zypper's cache: a map of package to version to path, size (bytes) and creation time.

    CLI Example:

        salt '*' pkg.list_downloaded
    """
    return inventory.files_below(ctx, [f"{(root or '').rstrip('/')}{_CACHE}"])


def diff(ctx: Context, *paths: str, **kwargs: Any) -> dict[str, str]:
    """Return the differences between files of the host and of their packages, which are downloaded: a map of path to a text, or
    "Unchanged", "Not managed" (no package has the file) or "N/A" (there is no such file).

    CLI Example:

        salt '*' pkg.diff /etc/apache2/httpd.conf /etc/sudoers
    """

    def fetch(names: Sequence[str]) -> dict[str, str]:
        rows = download(ctx, *names, **kwargs)
        return {name: row if name == "_error" else row["path"] for name, row in rows.items()}

    return package_diffs.differences(ctx, paths, fetch, **kwargs)
