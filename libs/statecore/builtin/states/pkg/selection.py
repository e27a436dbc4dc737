"""What a pkg state is asked for, and whether the host has it already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Plan
from statecore.system.packages import package_versions

#: In ctx.scratch: the package lists are to be fetched before the next installation. The pkg module takes it out again.
REFRESH_DUE = "pkg.refresh_due"


@dataclass(frozen=True, slots=True)
class PackageVerification:
    """How files of packages are looked at (``pkg_verify``)."""

    ignore_types: tuple[str, ...] = ()
    #: Of rpm -V, without their dashes.
    options: tuple[str, ...] = ()

    @classmethod
    def of(cls, value: Any) -> PackageVerification | None:
        """True, or a list of {"ignore_types": [...]} and {"verify_options": [...]}. Raises ValueError."""
        if not isinstance(value, list):
            if value not in (None, True, False):
                raise ValueError(
                    f"pkg_verify is True, False, or a list of ignore_types and verify_options, not {value!r}"
                )
            return cls() if value else None
        known: dict[str, tuple[str, ...]] = {"ignore_types": (), "verify_options": ()}
        for row in value:
            for key, listed in row.items() if isinstance(row, Mapping) else [(str(row), None)]:
                if key not in known or not isinstance(listed, list):
                    raise ValueError(f"pkg_verify: {key} is no list of ignore_types or verify_options")
                known[key] = tuple(map(str, listed))
        return cls(known["ignore_types"], known["verify_options"])

    def altered(self, ctx: Context, package: str) -> dict[str, Any]:
        """Files of the package that are not as they were installed -> what differs. Raises CommandError."""
        found: dict[str, Any] = ctx.call(
            "pkg.verify", package, ignore_types=list(self.ignore_types), verify_options=list(self.options)
        )
        return found


@dataclass(frozen=True, slots=True)
class Want:
    """What ``installed`` is asked for."""

    #: Package -> version, conditions, None for any; with ``files`` -> the place of its file.
    desired: Mapping[str, str | None]
    files: bool
    ignore_epoch: bool | None
    #: A single exact version may be exceeded.
    newer: bool
    reinstall: bool
    refresh: bool | None
    hold: bool | None
    #: None: packages are not verified.
    verification: PackageVerification | None
    #: Arguments of ``pkg.install``.
    options: Mapping[str, Any]

    @property
    def versions(self) -> dict[str, str | None]:
        """Package -> version wanted; that of a file is not known before it is installed."""
        return dict.fromkeys(self.desired) if self.files else dict(self.desired)

    def fulfilled(self, ctx: Context) -> set[str]:
        """The packages that are there, in a wanted version."""
        now = ctx.call("pkg.list_pkgs", versions_as_list=True)
        return {
            package
            for package, version in self.versions.items()
            if satisfied(ctx, now.get(package), version, self.ignore_epoch, newer=self.newer)
        }


def refused(ctx: Context, pkgs: Any, sources: Any, *, verify: bool, resolve: bool) -> Plan | None:
    """The failure that arguments are, None where they can be done."""
    if pkgs and sources:
        return Plan.failed('Only one of "pkgs" and "sources" is permitted.')
    if verify and "pkg.verify" not in ctx.functions:
        return Plan.failed("pkg.verify not implemented")
    if resolve and "pkg.resolve_capabilities" not in ctx.functions:
        return Plan.failed(
            "not supported: resolve_capabilities; the host's package manager knows packages by name alone"
        )
    return None


def given(**options: Any) -> dict[str, Any]:
    """The options that somebody gave."""
    return {name: value for name, value in options.items() if value is not None}


def providers(ctx: Context, desired: Mapping[str, str | None]) -> dict[str, str | None]:
    """What packages provide made the packages that provide it."""
    named = ctx.call("pkg.resolve_capabilities", list(desired))
    return dict(zip(named, desired.values(), strict=True))


def held(ctx: Context) -> list[str]:
    """Packages that are held, by what the host's package manager has for it. Raises CommandError, InvocationError."""
    if "pkg.list_holds" in ctx.functions:
        return list(ctx.call("pkg.list_holds", full=False))
    if "pkg.get_selections" not in ctx.functions:
        raise CommandError("the host's package manager cannot hold packages")
    return list(ctx.call("pkg.get_selections", state="hold")["hold"])


def desired_packages(ctx: Context, name: str, version: Any, pkgs: Any, *, normalize: bool) -> dict[str, str | None]:
    """Package -> version wanted, None for any. Raises ValueError with Salt's comment."""
    rows = [{name: version}] if not pkgs else list(pkgs.items()) if isinstance(pkgs, Mapping) else pkgs
    if not isinstance(rows, list):
        raise ValueError("Invalidly formatted 'pkgs' parameter. See minion log.")
    found: dict[str, str | None] = {}
    for row in rows:
        pairs = row.items() if isinstance(row, Mapping) else [row if isinstance(row, tuple) else (row, None)]
        for package, wanted in pairs:
            plain = str(package)
            if normalize and "pkg.normalize_name" in ctx.functions:
                plain = ctx.call("pkg.normalize_name", plain)
            if plain in found and found[plain] != wanted:
                raise ValueError(f"package {plain} is listed twice, with different versions: {pkgs}")
            found[plain] = None if wanted in (None, "") else str(wanted)
    return found


def packed(sources: Any) -> dict[str, str | None]:
    if not isinstance(sources, list) or not all(isinstance(row, Mapping) and len(row) == 1 for row in sources):
        raise ValueError("Invalidly formatted 'sources' parameter. See minion log.")
    return {str(package): str(place) for row in sources for package, place in row.items()}


def resolved(ctx: Context, desired: Mapping[str, str | None], *, refresh: bool, **source: Any) -> dict[str, Any]:
    """``latest`` made a version: the newest, else the one that is installed; None where there is neither."""
    wants = [package for package, version in desired.items() if version == "latest"]
    if not wants:
        return dict(desired)
    newest = mapped(wants, ctx.call("pkg.latest_version", *wants, refresh=refresh, **source))
    now = mapped(wants, ctx.call("pkg.version", *wants))
    return {**desired, **{package: newest.get(package) or now.get(package) or None for package in wants}}


def satisfied(ctx: Context, versions: Any, wanted: str | None, ignore_epoch: bool | None, *, newer: bool) -> bool:
    """Whether one of the installed versions is a wanted one. ``newer``: a single exact version may be exceeded."""
    if not versions or not wanted:
        return bool(versions)
    conditions = package_versions.conditions(wanted)
    if newer and len(conditions) == 1 and conditions[0][0] == "==":
        wanted = f">={conditions[0][1]}"

    def order(left: str, right: str, /, *, ignore_epoch: bool = False) -> int:
        return int(ctx.call("pkg.version_cmp", left, right, ignore_epoch=ignore_epoch))

    return any(package_versions.fulfils(each, wanted, ignore_epoch=ignore_epoch, order=order) for each in versions)


def there(ctx: Context, wanted: Mapping[str, str | None], ignore_epoch: bool | None) -> list[str]:
    now = ctx.call("pkg.list_pkgs", versions_as_list=True)
    return sorted(
        package
        for package, version in wanted.items()
        if satisfied(ctx, now.get(package), version, ignore_epoch, newer=False)
    )


def refresh_now(ctx: Context, refresh: bool | None) -> bool:
    return bool(refresh) or (refresh is not False and bool(ctx.scratch.get(REFRESH_DUE)))


def mapped(names: Sequence[str], answer: Any) -> dict[str, str]:
    """What ``pkg.version`` and its kin say, as a map also for one package."""
    return dict(answer) if isinstance(answer, Mapping) else {names[0]: answer}
