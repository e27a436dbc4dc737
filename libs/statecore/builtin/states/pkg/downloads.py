"""The states ``pkg.downloaded``, ``pkg.patch_installed`` and ``pkg.patch_downloaded``: download package files, and
install the packages of advisories.
"""

from __future__ import annotations

from statecore.builtin.states.pkg import actions, comments, selection
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step


def downloaded(
    ctx: Context,
    name: str,
    version: object = None,
    pkgs: object = None,
    fromrepo: str | None = None,
    ignore_epoch: bool | None = None,
    resolve_capabilities: bool = False,
    normalize: bool = True,
    skip_suggestions: bool = False,
    skip_verify: bool | None = None,
    enablerepo: object = None,
    disablerepo: object = None,
    disableexcludes: str | None = None,
    branch: str | None = None,
    setopt: object = None,
) -> Plan:
    """Download the files of packages into the package manager's cache, without installing them.

    version, pkgs
        wanted version; list of packages or of {package: version}, in place of ``name``
    fromrepo, enablerepo, disablerepo, disableexcludes, branch, setopt, skip_verify
        repositories and options of the package manager, as in ``pkg.installed``
    resolve_capabilities
        True: names may be capabilities that packages provide (RPM)
    """
    if "pkg.list_downloaded" not in ctx.functions:
        return Plan.failed("The pkg.downloaded state is not available on this platform")
    if isinstance(pkgs, list) and not pkgs:
        return Plan.unchanged("No packages to download provided")
    if refused := selection.refused(ctx, pkgs, None, verify=False, resolve=resolve_capabilities):
        return refused
    options = selection.given(
        fromrepo=fromrepo,
        skip_verify=skip_verify,
        enablerepo=enablerepo,
        disablerepo=disablerepo,
        disableexcludes=disableexcludes,
        branch=branch,
        setopt=setopt,
    )
    try:
        wanted = selection.desired_packages(ctx, name, version, pkgs, normalize=normalize)
        wanted = selection.providers(ctx, wanted) if resolve_capabilities else wanted
        targets = _missing(ctx, wanted, ignore_epoch)
    except (ValueError, CommandError) as error:
        return Plan.failed(str(error))
    if not targets:
        exact = " (matching specified versions)" if any(wanted.values()) else ""
        return Plan.unchanged(f"All specified packages{exact} are already downloaded")

    def work() -> Outcome:
        changes = ctx.call(
            "pkg.install",
            pkgs=[{package: wanted[package]} for package in targets],
            downloadonly=True,
            ignore_epoch=bool(ignore_epoch),
            **options,
        )
        if failed := _missing(ctx, {package: wanted[package] for package in targets}, ignore_epoch):
            names = ", ".join(comments.shown(package, wanted[package]) for package in failed)
            return Outcome(f"The following packages failed to download: {names}", changes, ok=False)
        return Outcome("" if changes else f"Packages downloaded: {', '.join(targets)}", changes)

    step = Step(f"fetch {', '.join(targets)}", lambda: actions.run_guarded(work, "downloading package(s)"))
    return Plan.change(f"The following packages would be downloaded: {', '.join(targets)}", [step])


def patch_installed(
    ctx: Context,
    name: str,
    advisory_ids: object = None,
    downloadonly: bool | None = None,
    fromrepo: str | None = None,
    enablerepo: object = None,
    disablerepo: object = None,
    disableexcludes: str | None = None,
    branch: str | None = None,
    setopt: object = None,
    skip_verify: bool | None = None,
) -> Plan:
    """Install the packages of advisories: ``name``, or the list ``advisory_ids`` (RPM).

    downloadonly
        True: only download the package files
    """
    options = selection.given(
        fromrepo=fromrepo,
        skip_verify=skip_verify,
        enablerepo=enablerepo,
        disablerepo=disablerepo,
        disableexcludes=disableexcludes,
        branch=branch,
        setopt=setopt,
    )
    return _patched(ctx, "patch_installed", name, advisory_ids, options, downloadonly=bool(downloadonly))


def patch_downloaded(
    ctx: Context,
    name: str,
    advisory_ids: object = None,
    fromrepo: str | None = None,
    enablerepo: object = None,
    disablerepo: object = None,
    disableexcludes: str | None = None,
    branch: str | None = None,
    setopt: object = None,
    skip_verify: bool | None = None,
) -> Plan:
    """Download the package files of advisories: ``name``, or the list ``advisory_ids`` (RPM)."""
    options = selection.given(
        fromrepo=fromrepo,
        skip_verify=skip_verify,
        enablerepo=enablerepo,
        disablerepo=disablerepo,
        disableexcludes=disableexcludes,
        branch=branch,
        setopt=setopt,
    )
    return _patched(ctx, "patch_downloaded", name, advisory_ids, options, downloadonly=True)


def _patched(
    ctx: Context, function: str, name: str, advisory_ids: object, options: dict[str, object], *, downloadonly: bool
) -> Plan:
    if "pkg.list_patches" not in ctx.functions:
        return Plan.failed(f"The pkg.{function} state is not available on this platform")
    if advisory_ids is not None and not isinstance(advisory_ids, list):
        return Plan.failed("advisory_ids must be a list")
    if advisory_ids == []:
        return Plan.unchanged("No advisory ids provided")
    try:
        there = ctx.call("pkg.list_installed_patches")
    except CommandError as error:
        return Plan.failed(str(error))
    targets = [str(each) for each in advisory_ids or [name] if str(each) not in there]
    if not targets:
        subject = "All specified advisory patches are" if advisory_ids else f"Advisory patch {name} is"
        return Plan.unchanged(f"{subject} already installed")

    def work() -> Outcome:
        changes = ctx.call("pkg.install", advisory_ids=targets, downloadonly=downloadonly, **options)
        done = "downloaded" if downloadonly else "installed"
        comment = "" if changes else f"Advisory patch is not needed or related packages are already {done}"
        return Outcome(comment, changes)

    step = Step(f"install {', '.join(targets)}", lambda: actions.run_guarded(work, "downloading package(s)"))
    return Plan.change(f"The following advisory patches would be downloaded: {', '.join(targets)}", [step])


def _missing(ctx: Context, wanted: dict[str, str | None], ignore_epoch: bool | None) -> list[str]:
    """List of the packages of which the package manager's cache has no file of a wanted version."""
    there = ctx.call("pkg.list_downloaded")
    return [
        package
        for package, version in wanted.items()
        if not selection.satisfied(ctx, list(there.get(package, ())), version, ignore_epoch, newer=False)
    ]
