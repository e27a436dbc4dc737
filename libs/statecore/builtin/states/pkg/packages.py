"""States of single packages: installed, latest, removed, purged, uptodate, held and unheld."""

from __future__ import annotations

from statecore.builtin.states.pkg import actions, comments, selection
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Outcome, Plan, Step


def installed(
    ctx: Context,
    name: str,
    version: object = None,
    refresh: bool | None = None,
    fromrepo: str | None = None,
    skip_verify: bool = False,
    skip_suggestions: bool = False,
    pkgs: object = None,
    sources: object = None,
    allow_updates: bool = False,
    pkg_verify: object = False,
    normalize: bool = True,
    ignore_epoch: bool | None = None,
    reinstall: bool = False,
    update_holds: bool = False,
    hold: bool | None = None,
    install_recommends: bool | None = None,
    only_upgrade: bool = False,
    force_conf_new: bool = False,
    cache_valid_time: float = 0,
    debconf: str | None = None,
    resolve_capabilities: bool = False,
    report_reboot_exit_codes: bool = True,
    enablerepo: object = None,
    disablerepo: object = None,
    disableexcludes: str | None = None,
    branch: str | None = None,
    setopt: object = None,
) -> Plan:
    """Install packages.

    version
        exact version, a glob (``1.22*``), conditions (``>=1.2, <2``) or ``latest``
    pkgs, sources
        list of names or of {name: version}; list of {name: package file}
    refresh
        True or False: fetch the package lists before, or do not. Default: once in a run.
    hold
        True: hold the packages at their version afterwards. False: release them.
    update_holds
        True: release held packages during the installation (RPM; APT always does this)
    reinstall
        True: reinstall packages that are already installed
    pkg_verify
        True: reinstall packages whose files were altered (RPM). Or a list with ``ignore_types`` (config, doc, ghost,
        license, readme) and ``verify_options`` (options of rpm -V).
    allow_updates
        True: a newer version than ``version`` is accepted
    resolve_capabilities
        True: names may be capabilities that packages provide (RPM)
    enablerepo, disablerepo, disableexcludes, branch, setopt
        repositories to use; dnf's options of these names
    debconf
        file with answers to the packages' questions (APT)
    report_reboot_exit_codes
        no effect; for Windows only
    """
    try:
        verification = selection.PackageVerification.of(pkg_verify)
    except ValueError as error:
        return Plan.failed(str(error))
    if refused := selection.refused(ctx, pkgs, sources, verify=verification is not None, resolve=resolve_capabilities):
        return refused
    if isinstance(pkgs, list) and not pkgs:
        return Plan.unchanged("No packages to install provided")
    repositories = selection.given(
        enablerepo=enablerepo, disablerepo=disablerepo, disableexcludes=disableexcludes, branch=branch, setopt=setopt
    )
    try:
        desired = (
            selection.package_files(sources)
            if sources
            else selection.desired_packages(ctx, name, version, pkgs, normalize=normalize)
        )
        if not sources:
            if resolve_capabilities:
                desired = selection.providers(ctx, desired)
            desired = selection.resolved(
                ctx, desired, refresh=selection.refresh_now(ctx, refresh), fromrepo=fromrepo, **repositories
            )
    except (ValueError, CommandError) as error:
        return Plan.failed(str(error))
    want = selection.Want(
        desired=desired,
        files=bool(sources),
        ignore_epoch=ignore_epoch,
        newer=allow_updates,
        reinstall=reinstall,
        refresh=refresh,
        hold=hold,
        verification=verification,
        options={
            **repositories,
            **selection.given(debconf=debconf),
            "update_holds": update_holds,
            "fromrepo": fromrepo,
            "skip_verify": skip_verify,
            "install_recommends": install_recommends,
            "only_upgrade": only_upgrade,
            "force_conf_new": force_conf_new,
            "cache_valid_time": cache_valid_time,
        },
    )
    return actions.install(ctx, want)


def latest(
    ctx: Context,
    name: str,
    refresh: bool | None = None,
    fromrepo: str | None = None,
    skip_verify: bool = False,
    pkgs: object = None,
    watch_flags: bool = True,
    install_recommends: bool | None = None,
    only_upgrade: bool = False,
    force_conf_new: bool = False,
    cache_valid_time: float = 0,
    resolve_capabilities: bool = False,
    enablerepo: object = None,
    disablerepo: object = None,
    disableexcludes: str | None = None,
    branch: str | None = None,
    setopt: object = None,
) -> Plan:
    """Install the newest version of packages that the repositories offer.

    watch_flags
        no effect; for Gentoo only
    resolve_capabilities, enablerepo, disablerepo, disableexcludes, branch, setopt
        as in ``pkg.installed``
    """
    if isinstance(pkgs, list) and not pkgs:
        return Plan.unchanged("No packages to install provided")
    if refused := selection.refused(ctx, pkgs, None, verify=False, resolve=resolve_capabilities):
        return refused
    repositories = selection.given(
        enablerepo=enablerepo, disablerepo=disablerepo, disableexcludes=disableexcludes, branch=branch, setopt=setopt
    )
    try:
        desired = selection.desired_packages(ctx, name, None, pkgs, normalize=True)
        names = list(selection.providers(ctx, desired) if resolve_capabilities else desired)
    except (ValueError, CommandError) as error:
        return Plan.failed(str(error))
    try:
        newest = selection.mapped(
            names,
            ctx.call(
                "pkg.latest_version",
                *names,
                fromrepo=fromrepo,
                refresh=selection.refresh_now(ctx, refresh),
                **repositories,
            ),
        )
    except CommandError as error:
        return Plan.failed(
            f"An error was encountered while checking the newest available version of package(s): {error}"
        )
    now = selection.mapped(names, ctx.call("pkg.version", *names))
    unknown = [package for package in names if not newest[package] and not now[package]]
    if unknown:
        return Plan.failed(" ".join(f"No information found for '{package}'." for package in unknown))
    targets = {package: newest[package] for package in names if newest[package]}
    current = [package for package in names if package not in targets]
    if not targets:
        return Plan.unchanged(comments.all_current(names))

    def work() -> Outcome:
        changes = ctx.call(
            "pkg.install",
            pkgs=list(targets),
            fromrepo=fromrepo,
            skip_verify=skip_verify,
            install_recommends=install_recommends,
            only_upgrade=only_upgrade,
            force_conf_new=force_conf_new,
            cache_valid_time=cache_valid_time,
            **repositories,
        )
        return comments.latest_outcome(targets, current, changes)

    would = ["The following packages would be installed/upgraded: " + ", ".join(sorted(targets))]
    if current:
        shown = ", ".join(f"{package} ({now[package]})" for package in sorted(current))
        few = len(current) <= comments.FEW
        would.append(
            f"The following packages are already up-to-date: {shown}"
            if few
            else f"{len(current)} packages are already up-to-date"
        )
    predicted = {package: {"new": new, "old": now[package]} for package, new in targets.items()}
    step = Step(f"install {', '.join(targets)}", lambda: actions.run_guarded(work, "installing package(s)"))
    return Plan.change("\n".join(would), [step], predicted)


def removed(
    ctx: Context,
    name: str,
    version: object = None,
    pkgs: object = None,
    normalize: bool = True,
    ignore_epoch: bool | None = None,
) -> Plan:
    """Remove packages, but keep their configuration files. Packages that are not installed are ignored."""
    try:
        wanted = selection.desired_packages(ctx, name, version, pkgs, normalize=normalize)
    except (ValueError, CommandError) as error:
        return Plan.failed(str(error))
    targets = selection.installed_as_wanted(ctx, wanted, ignore_epoch)
    if not targets:
        exact = " (matching specified versions)" if any(wanted.values()) else ""
        return Plan.unchanged(f"All specified packages{exact} are already absent")
    return actions.uninstall(ctx, "remove", wanted, targets)


def purged(
    ctx: Context,
    name: str,
    version: object = None,
    pkgs: object = None,
    normalize: bool = True,
    ignore_epoch: bool | None = None,
) -> Plan:
    """Remove packages and their configuration files, also those files that an earlier removal left.

    Packages that are neither installed nor partly removed are ignored.
    """
    try:
        wanted = selection.desired_packages(ctx, name, version, pkgs, normalize=normalize)
    except (ValueError, CommandError) as error:
        return Plan.failed(str(error))
    left = ctx.call("pkg.list_pkgs", removed=True)
    targets = sorted(
        {*selection.installed_as_wanted(ctx, wanted, ignore_epoch), *(package for package in wanted if package in left)}
    )
    if not targets:
        return Plan.unchanged("None of the targeted packages are installed or partially installed")
    return actions.uninstall(ctx, "purge", wanted, targets)


def uptodate(
    ctx: Context,
    name: str,
    refresh: bool = False,
    pkgs: object = None,
    dist_upgrade: bool | None = None,
    fromrepo: str | None = None,
    cache_valid_time: float | None = None,
    force_conf_new: bool | None = None,
    skip_verify: bool | None = None,
    enablerepo: object = None,
    disablerepo: object = None,
    disableexcludes: str | None = None,
    branch: str | None = None,
    setopt: object = None,
    security: bool | None = None,
    exclude: str | None = None,
    minimal: bool | None = None,
    obsoletes: bool | None = None,
    resolve_capabilities: bool = False,
) -> Plan:
    """Upgrade all installed packages, or those of the list ``pkgs``.

    dist_upgrade, cache_valid_time, force_conf_new
        for APT only, but zypper has ``dist_upgrade``, too. APT with ``dist_upgrade: False``: the upgrade neither installs nor
        removes other packages.
    enablerepo, disablerepo, disableexcludes, branch, setopt, security, exclude
        select the upgrades; dnf's options of these names
    minimal, obsoletes
        as in ``pkg.upgrade``
    """
    if not isinstance(refresh, bool):
        return Plan.failed("refresh must be either True or False")
    if refused := selection.refused(ctx, pkgs, None, verify=False, resolve=resolve_capabilities):
        return refused
    chosen_by = selection.given(
        # zypper's dist-upgrade also downgrades and changes vendors: only for those who ask for it.
        dist_upgrade=ctx.grains.get("os_family") != "Suse" or None if dist_upgrade is None else dist_upgrade,
        fromrepo=fromrepo,
        cache_valid_time=cache_valid_time,
        enablerepo=enablerepo,
        disablerepo=disablerepo,
        disableexcludes=disableexcludes,
        branch=branch,
        setopt=setopt,
        security=security,
        exclude=exclude,
    )
    done_by = selection.given(
        force_conf_new=force_conf_new, skip_verify=skip_verify, minimal=minimal, obsoletes=obsoletes, **chosen_by
    )
    try:
        upgrades = ctx.call("pkg.list_upgrades", refresh=refresh, **chosen_by)
        names = pkgs
        if isinstance(pkgs, list) and resolve_capabilities:
            names = list(selection.providers(ctx, dict.fromkeys(map(str, pkgs))))
    except CommandError as error:
        return Plan.failed(str(error))
    chosen = {package: new for package, new in upgrades.items() if not isinstance(names, list) or package in names}
    if not chosen:
        return Plan.unchanged("System is already up-to-date")
    now = selection.mapped(list(chosen), ctx.call("pkg.version", *chosen))

    def work() -> Outcome:
        changes = ctx.call("pkg.upgrade", refresh=False, pkgs=names, **done_by)
        missing = [package for package in chosen if isinstance(names, list) and package not in changes]
        if missing:
            return Outcome(f"The following package(s) failed to update: {', '.join(missing)}", changes, ok=False)
        return Outcome("Upgrade ran successfully", changes)

    step = Step("upgrade packages", lambda: actions.run_guarded(work, "updating packages"))
    predicted = {package: {"new": new, "old": now[package]} for package, new in chosen.items()}
    return Plan.change("System update will be performed", [step], predicted)


def held(ctx: Context, name: str, version: object = None, pkgs: object = None, replace: bool = False) -> Plan:
    """Hold packages at their installed version.

    ``replace``: release all other packages. A version is ignored, as in Salt.
    """
    if isinstance(pkgs, list) and not pkgs and not replace:
        return Plan.unchanged("No packages to be held provided")
    try:
        wanted = list(selection.desired_packages(ctx, name, version, pkgs, normalize=True))
        now = selection.held(ctx)
    except (ValueError, CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    more = [package for package in wanted if package not in now]
    fewer = [package for package in now if replace and package not in wanted]
    would = [f"The following package would be held: {package}" for package in more]
    steps = [Step(f"hold {package}", actions.holding(ctx, "hold", package)) for package in more]
    return actions.holds(ctx, fewer, would, steps)


def unheld(ctx: Context, name: str, version: object = None, pkgs: object = None, all: bool = False) -> Plan:
    """Release held packages, so that they can be upgraded. ``all``: release every held package."""
    if isinstance(pkgs, list) and not pkgs and not all:
        return Plan.unchanged("No packages to be unheld provided")
    try:
        wanted = list(selection.desired_packages(ctx, name, version, pkgs, normalize=True))
        now = selection.held(ctx)
    except (ValueError, CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    return actions.holds(ctx, [package for package in now if all or package in wanted], [], [])
