"""The packages and versions that a ``pkg`` state wants, and the check which of them the host already has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Plan
from statecore.system.packages import package_versions

#: Key in ``ctx.scratch``: fetch the package lists before the next installation. The ``pkg`` module removes it.
REFRESH_DUE = "pkg.refresh_due"


@dataclass(frozen=True, slots=True)
class PackageVerification:
    """Settings for the verification of the files of installed packages (``pkg_verify``)."""

    ignore_types: tuple[str, ...] = ()
    #: Options of rpm -V, without leading dashes.
    options: tuple[str, ...] = ()

    @classmethod
    def of(cls, value: object) -> PackageVerification | None:
        """Return the settings that the argument ``pkg_verify`` describes; None if it requests no verification.

        The argument is True, False, or a list of {"ignore_types": [...]} and {"verify_options": [...]}. Raises ValueError for
        any other value.
        """
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
                    raise ValueError(f"pkg_verify: {key} must be a list named ignore_types or verify_options")
                known[key] = tuple(map(str, listed))
        return cls(known["ignore_types"], known["verify_options"])

    def altered(self, ctx: Context, package: str) -> dict[str, Mapping[str, object]]:
        """Map of the path of each file of ``package`` that changed since the installation to its differing attributes.
        Raise CommandError if the package cannot be verified.
        """
        found: dict[str, Mapping[str, object]] = ctx.call(
            "pkg.verify", package, ignore_types=list(self.ignore_types), verify_options=list(self.options)
        )
        return found


@dataclass(frozen=True, slots=True)
class Want:
    """The checked arguments of ``pkg.installed``: the packages with their versions, and the installation options."""

    #: Package -> version or conditions, None for any version; with ``files`` -> URL or path of the package file.
    desired: Mapping[str, str | None]
    files: bool
    ignore_epoch: bool | None
    #: True: a version above a single exact version is accepted.
    newer: bool
    reinstall: bool
    refresh: bool | None
    hold: bool | None
    #: How to verify installed packages; None: do not.
    verification: PackageVerification | None
    #: Further arguments of ``pkg.install``.
    options: Mapping[str, object]

    @property
    def versions(self) -> dict[str, str | None]:
        """Map of package to wanted version; None for a package file, whose version is unknown before the installation."""
        return dict.fromkeys(self.desired) if self.files else dict(self.desired)

    def fulfilled(self, ctx: Context) -> set[str]:
        """Set of the packages that are installed in a wanted version."""
        now = ctx.call("pkg.list_pkgs", versions_as_list=True)
        return {
            package
            for package, version in self.versions.items()
            if satisfied(ctx, now.get(package), version, self.ignore_epoch, newer=self.newer)
        }


def refused(ctx: Context, pkgs: object, sources: object, *, verify: bool, resolve: bool) -> Plan | None:
    """Return a failed plan if arguments exclude each other or the package manager lacks a function; else None."""
    if pkgs and sources:
        return Plan.failed('Only one of "pkgs" and "sources" is permitted.')
    if verify and "pkg.verify" not in ctx.functions:
        return Plan.failed("pkg.verify not implemented")
    if resolve and "pkg.resolve_capabilities" not in ctx.functions:
        return Plan.failed(
            "not supported: resolve_capabilities; the host's package manager finds packages by name only"
        )
    return None


def given(**options: object) -> dict[str, object]:
    """Return the given keyword arguments without those whose value is None."""
    return {name: value for name, value in options.items() if value is not None}


def providers(ctx: Context, desired: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the wanted packages ({package: version}) with each capability replaced by the package that provides it."""
    named = ctx.call("pkg.resolve_capabilities", list(desired), resolve_capabilities=True)
    return dict(zip(named, desired.values(), strict=True))


def held(ctx: Context) -> list[str]:
    """List of the packages that are held. Raises CommandError, or InvocationError if the package manager cannot hold
    packages.
    """
    if "pkg.list_holds" in ctx.functions:
        return list(ctx.call("pkg.list_holds", full=False))
    if "pkg.get_selections" not in ctx.functions:
        raise CommandError("the host's package manager cannot hold packages")
    return list(ctx.call("pkg.get_selections", state="hold")["hold"])


def desired_packages(
    ctx: Context, name: str, version: object, pkgs: object, *, normalize: bool
) -> dict[str, str | None]:
    """Map of package to wanted version, None for any version, from the arguments of a ``pkg`` state. Raises ValueError
    with Salt's comment.
    """
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


def package_files(sources: object) -> dict[str, str | None]:
    """Return the ``sources`` argument of a ``pkg`` state as a map of package to package file. Raises ValueError with
    Salt's comment.
    """
    if not isinstance(sources, list) or not all(isinstance(row, Mapping) and len(row) == 1 for row in sources):
        raise ValueError("Invalidly formatted 'sources' parameter. See minion log.")
    return {str(package): str(place) for row in sources for package, place in row.items()}


def resolved(
    ctx: Context, desired: Mapping[str, str | None], *, refresh: bool, **source: object
) -> dict[str, str | None]:
    """Return the wanted packages ({package: version}) with the version ``latest`` replaced by the newest available
    version, else by the installed one; None if there is neither.
    """
    wants = [package for package, version in desired.items() if version == "latest"]
    if not wants:
        return dict(desired)
    newest = mapped(wants, ctx.call("pkg.latest_version", *wants, refresh=refresh, **source))
    now = mapped(wants, ctx.call("pkg.version", *wants))
    return {**desired, **{package: newest.get(package) or now.get(package) or None for package in wants}}


def satisfied(
    ctx: Context, versions: Sequence[str] | None, wanted: str | None, ignore_epoch: bool | None, *, newer: bool
) -> bool:
    """Return True if one of a package's installed versions is wanted. ``newer``: a version above a single exact version
    is accepted too.
    """
    if not versions or not wanted:
        return bool(versions)
    conditions = package_versions.conditions(wanted)
    if newer and len(conditions) == 1 and conditions[0][0] == "==":
        wanted = f">={conditions[0][1]}"

    def order(left: str, right: str, /, *, ignore_epoch: bool = False) -> int:
        return int(ctx.call("pkg.version_cmp", left, right, ignore_epoch=ignore_epoch))

    return any(package_versions.fulfils(each, wanted, ignore_epoch=ignore_epoch, order=order) for each in versions)


def installed_as_wanted(ctx: Context, wanted: Mapping[str, str | None], ignore_epoch: bool | None) -> list[str]:
    """List of the wanted packages that are installed in a wanted version, sorted."""
    now = ctx.call("pkg.list_pkgs", versions_as_list=True)
    return sorted(
        package
        for package, version in wanted.items()
        if satisfied(ctx, now.get(package), version, ignore_epoch, newer=False)
    )


def refresh_now(ctx: Context, refresh: bool | None) -> bool:
    """Return True if a ``pkg`` state must fetch the package lists now: it requests this, or ``mod_init`` requested it
    and ``refresh`` is not False.
    """
    return bool(refresh) or (refresh is not False and bool(ctx.scratch.get(REFRESH_DUE)))


def mapped(names: Sequence[str], answer: object) -> dict[str, str]:
    """Return the result of ``pkg.version`` or ``pkg.latest_version`` as a map of package to version.

    For one package these functions return only a text.
    """
    return dict(answer) if isinstance(answer, Mapping) else {names[0]: str(answer)}
