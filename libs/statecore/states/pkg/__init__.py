"""Packages as states (Salt's ``pkg`` state). Reading asks ``pkg`` what is there and what could be; the steps call it again.

The package lists are fetched once in a run, before the first installation (``mod_init``), as ``refresh`` allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statecore.context import Context
from statecore.errors import CommandError, NotAvailable
from statecore.states.pkg import comments, doing, wishes
from statecore.types import Low, Outcome, Plan, Step


def available(ctx: Context) -> str | None:
    """None where the host has a package manager that a ``pkg`` module serves."""
    try:
        ctx.functions["pkg.install"]
    except NotAvailable as missing:
        return f"pkg module could not be loaded: {missing}"
    return None


def installed(
    ctx: Context,
    name: str,
    version: Any = None,
    refresh: bool | None = None,
    fromrepo: str | None = None,
    skip_verify: bool = False,
    skip_suggestions: bool = False,
    pkgs: Any = None,
    sources: Any = None,
    allow_updates: bool = False,
    pkg_verify: Any = False,
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
) -> Plan:
    """Packages that are to be installed.

    version
        exact, a glob (``1.22*``), conditions (``>=1.2, <2``) or ``latest``
    pkgs, sources
        a list of names and {name: version}; a list of {name: file}
    hold
        True keeps them at their version from then on, False lets go of them
    """
    if refused := wishes.refused(pkgs, sources, pkg_verify, debconf):
        return refused
    if isinstance(pkgs, list) and not pkgs:
        return Plan.unchanged("No packages to install provided")
    try:
        desired = (
            wishes.packed(sources)
            if sources
            else wishes.desired_packages(ctx, name, version, pkgs, normalize=normalize)
        )
        if not sources:
            desired = wishes.resolved(ctx, desired, refresh=wishes.refresh_now(ctx, refresh), fromrepo=fromrepo)
    except (ValueError, CommandError) as error:
        return Plan.failed(str(error))
    want = wishes.Want(
        desired=desired,
        files=bool(sources),
        ignore_epoch=ignore_epoch,
        newer=allow_updates,
        reinstall=reinstall,
        refresh=refresh,
        hold=hold,
        options={
            "fromrepo": fromrepo,
            "skip_verify": skip_verify,
            "install_recommends": install_recommends,
            "only_upgrade": only_upgrade,
            "force_conf_new": force_conf_new,
            "cache_valid_time": cache_valid_time,
        },
    )
    return doing.install(ctx, want)


def latest(
    ctx: Context,
    name: str,
    refresh: bool | None = None,
    fromrepo: str | None = None,
    skip_verify: bool = False,
    pkgs: Any = None,
    watch_flags: bool = True,
    install_recommends: bool | None = None,
    only_upgrade: bool = False,
    force_conf_new: bool = False,
    cache_valid_time: float = 0,
) -> Plan:
    """Packages that are to be installed in the newest version that the repositories have."""
    if isinstance(pkgs, list) and not pkgs:
        return Plan.unchanged("No packages to install provided")
    try:
        names = list(wishes.desired_packages(ctx, name, None, pkgs, normalize=True))
    except (ValueError, CommandError) as error:
        return Plan.failed(str(error))
    try:
        newest = wishes.mapped(
            names, ctx.call("pkg.latest_version", *names, fromrepo=fromrepo, refresh=wishes.refresh_now(ctx, refresh))
        )
    except CommandError as error:
        return Plan.failed(
            f"An error was encountered while checking the newest available version of package(s): {error}"
        )
    now = wishes.mapped(names, ctx.call("pkg.version", *names))
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
    step = Step(f"install {', '.join(targets)}", lambda: doing.told(work, "installing package(s)"))
    return Plan.change("\n".join(would), [step], predicted)


def removed(
    ctx: Context,
    name: str,
    version: Any = None,
    pkgs: Any = None,
    normalize: bool = True,
    ignore_epoch: bool | None = None,
) -> Plan:
    """Packages that are not to be installed; their configuration files stay."""
    try:
        wanted = wishes.desired_packages(ctx, name, version, pkgs, normalize=normalize)
    except (ValueError, CommandError) as error:
        return Plan.failed(str(error))
    targets = wishes.there(ctx, wanted, ignore_epoch)
    if not targets:
        exact = " (matching specified versions)" if any(wanted.values()) else ""
        return Plan.unchanged(f"All specified packages{exact} are already absent")
    return doing.uninstall(ctx, "remove", wanted, targets)


def purged(
    ctx: Context,
    name: str,
    version: Any = None,
    pkgs: Any = None,
    normalize: bool = True,
    ignore_epoch: bool | None = None,
) -> Plan:
    """Packages that are not to be installed, nor their configuration files to be left."""
    try:
        wanted = wishes.desired_packages(ctx, name, version, pkgs, normalize=normalize)
    except (ValueError, CommandError) as error:
        return Plan.failed(str(error))
    left = ctx.call("pkg.list_pkgs", removed=True)
    targets = sorted({*wishes.there(ctx, wanted, ignore_epoch), *(package for package in wanted if package in left)})
    if not targets:
        return Plan.unchanged("None of the targeted packages are installed or partially installed")
    return doing.uninstall(ctx, "purge", wanted, targets)


def uptodate(
    ctx: Context,
    name: str,
    refresh: bool = False,
    pkgs: Any = None,
    dist_upgrade: bool = True,
    fromrepo: str | None = None,
    cache_valid_time: float = 0,
    force_conf_new: bool = False,
) -> Plan:
    """Nothing is to be left that could be upgraded; ``pkgs``: among these."""
    if not isinstance(refresh, bool):
        return Plan.failed("refresh must be either True or False")
    source = {"fromrepo": fromrepo, "cache_valid_time": cache_valid_time}
    try:
        upgrades = ctx.call("pkg.list_upgrades", refresh=refresh, dist_upgrade=dist_upgrade, **source)
    except CommandError as error:
        return Plan.failed(str(error))
    chosen = {package: new for package, new in upgrades.items() if not isinstance(pkgs, list) or package in pkgs}
    if not chosen:
        return Plan.unchanged("System is already up-to-date")
    now = wishes.mapped(list(chosen), ctx.call("pkg.version", *chosen))

    def work() -> Outcome:
        changes = ctx.call(
            "pkg.upgrade", refresh=False, dist_upgrade=dist_upgrade, pkgs=pkgs, force_conf_new=force_conf_new
        )
        missing = [package for package in chosen if isinstance(pkgs, list) and package not in changes]
        if missing:
            return Outcome(f"The following package(s) failed to update: {', '.join(missing)}", changes, ok=False)
        return Outcome("Upgrade ran successfully", changes)

    step = Step("upgrade packages", lambda: doing.told(work, "updating packages"))
    predicted = {package: {"new": new, "old": now[package]} for package, new in chosen.items()}
    return Plan.change("System update will be performed", [step], predicted)


def held(ctx: Context, name: str, version: Any = None, pkgs: Any = None, replace: bool = False) -> Plan:
    """Packages that are kept as they are; ``replace``: and no others."""
    if isinstance(pkgs, list) and not pkgs and not replace:
        return Plan.unchanged("No packages to be held provided")
    wanted = list(wishes.desired_packages(ctx, name, version, pkgs, normalize=True))
    now = ctx.call("pkg.get_selections", state="hold")["hold"]
    more = [package for package in wanted if package not in now]
    fewer = [package for package in now if replace and package not in wanted]
    would = [f"The following package would be held: {package}" for package in more]
    steps = [Step(f"hold {package}", doing.holding(ctx, "hold", package)) for package in more]
    return doing.holds(ctx, fewer, would, steps)


def unheld(ctx: Context, name: str, version: Any = None, pkgs: Any = None, all: bool = False) -> Plan:
    """Packages that may be changed again; ``all``: every one that is held."""
    if isinstance(pkgs, list) and not pkgs and not all:
        return Plan.unchanged("No packages to be unheld provided")
    wanted = list(wishes.desired_packages(ctx, name, version, pkgs, normalize=True))
    now = ctx.call("pkg.get_selections", state="hold")["hold"]
    return doing.holds(ctx, [package for package in now if all or package in wanted], [], [])


def mod_init(ctx: Context, low: Low) -> bool:
    """Before the first state of the run that installs: the package lists are to be fetched."""
    if low["fun"] not in ("installed", "latest"):
        return False
    ctx.scratch[wishes.REFRESH_DUE] = True
    return True


def mod_watch(ctx: Context, name: str, sfun: str = "", **arguments: Any) -> Plan:
    """Something watched has changed: the state is looked at again."""
    again = _ON_CHANGE.get(sfun)
    if again is None:
        return Plan.failed(f"pkg.{sfun} does not work with the watch requisite")
    return again(ctx, name, **arguments)


_ON_CHANGE: Mapping[str, Callable[..., Plan]] = {
    "installed": installed,
    "latest": latest,
    "removed": removed,
    "purged": purged,
}


def mod_aggregate(ctx: Context, low: Low, chunks: Sequence[Low], running: Mapping[str, Any]) -> Low:
    """Gathers the packages of like chunks that are ready to run into one call of the package manager."""
    if low.get("fun") not in _ON_CHANGE:
        return low
    key = "sources" if "sources" in low else "pkgs"
    gathered: list[Any] = []
    for chunk in chunks:
        alike = all(chunk.get(part) == low.get(part) for part in ("state", "fun", "fromrepo"))
        if not alike or chunk.get("__agg__") or "hold" in chunk or ("sources" in chunk) != (key == "sources"):
            continue
        gathered += chunk.get(key) or [{chunk["name"]: chunk["version"]} if chunk.get("version") else chunk["name"]]
        chunk["__agg__"] = True
    own = low.get(key) or [{low["name"]: low["version"]} if low.get("version") else low["name"]]
    both = [*own, *gathered]
    distinct = [each for number, each in enumerate(both) if each not in both[:number]]
    return {**low, key: distinct} if gathered else low
