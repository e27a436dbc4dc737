"""Functions of ``pkg`` on a host with dnf that download packages, compare their files with the host's, and name the
services that run with replaced files.
"""

from __future__ import annotations

from collections.abc import Sequence

from statecore.builtin.modules.pkg_rpm import dnf, inventory, package_diffs, rpm
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of


def download(ctx: Context, *packages: str, **kwargs: object) -> dict[str, str]:
    """Download packages without installing them. Return a map of package to the path of its file; ``_error`` names
    packages that could not be downloaded. Raise CommandError if none could be.

    The files are in dnf's cache (``/var/cache/dnf/packages``); older ones of the same packages are removed. It needs
    ``yumdownloader`` (package dnf-utils), or dnf's own command ``download``.

    CLI Example:

        salt '*' pkg.download httpd postfix
    """
    if not packages:
        raise InvocationError("No packages were specified")
    folder = f"/var/cache/{dnf.name(ctx.host)}/packages"
    words = _downloader(ctx, folder)
    ctx.host.path(folder).mkdir(parents=True, exist_ok=True)
    for path in _files(ctx, packages, folder).values():
        ctx.host.path(path).unlink(missing_ok=True)
    result = rpm.run(ctx.host, [*words, *packages])
    found = _files(ctx, packages, folder)
    if not found:
        why = result.stderr.strip() or result.stdout.strip()
        raise CommandError(
            f"Unable to download any of the following packages: {', '.join(packages)}{f': {why}' if why else ''}"
        )
    failed = [each for each in packages if each not in found]
    error = {"_error": f"The following package(s) failed to download: {', '.join(failed)}"} if failed else {}
    return found | error


def diff(ctx: Context, *paths: str, **kwargs: object) -> dict[str, str]:
    """Return the differences between files of the host and of their packages, which are downloaded: a map of path to a
    text, or "Unchanged", "Not managed" (no package has the file) or "N/A" (there is no such file).

    CLI Example:

        salt '*' pkg.diff /etc/httpd/conf/httpd.conf /etc/sudoers
    """
    return package_diffs.differences(ctx, paths, lambda names: download(ctx, *names))


def services_need_restart(ctx: Context, **kwargs: object) -> list[str]:
    """Return the services that use files which the package manager has replaced since they were started. Raise
    CommandError without dnf or without systemd.

    CLI Example:

        salt '*' pkg.services_need_restart
    """
    if dnf.name(ctx.host) == "yum":
        raise CommandError("dnf or dnf5 is required to list outdated services.")
    if not ctx.host.path("/run/systemd/system").is_dir():
        raise CommandError("systemd is required to list outdated services.")
    lines = lines_of(dnf.run_query(ctx.host, ["--quiet", "needs-restarting"]).stdout)
    processes = [process.strip() for process, colon, _ in (line.partition(":") for line in lines) if colon]
    return sorted({service for each in processes if each.isdigit() and (service := _service(ctx, each))})


def _downloader(ctx: Context, folder: str) -> list[str]:
    """Return the command that downloads packages into a folder. Raise CommandError if the host has none."""
    if ctx.host.which("yumdownloader"):
        return ["yumdownloader", "-q", f"--destdir={folder}"]
    if (used := dnf.name(ctx.host)) != "yum":
        return [used, "-q", "download", f"--destdir={folder}"]
    raise CommandError("'yumdownloader' command not available: install yum-utils")


def _files(ctx: Context, packages: Sequence[str], folder: str) -> dict[str, str]:
    """Return a map of those of the packages that the folder has to the path of the file."""
    there = inventory.files_below(ctx, [folder])
    known = {each: there.get(inventory.plain_name(ctx, each)) for each in packages}
    return {each: str(next(reversed(rows.values()))["path"]) for each, rows in known.items() if rows}


def _service(ctx: Context, process: str) -> str:
    """Return the service of systemd that a process belongs to, without its suffix; "" if it belongs to none."""
    shown = rpm.run(ctx.host, ["systemctl", "status", "--no-pager", "--lines=0", process]).stdout
    unit = next((word for word in shown.partition("\n")[0].split() if word.endswith(".service")), "")
    return unit.removesuffix(".service")
