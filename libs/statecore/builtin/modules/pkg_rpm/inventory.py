"""Packages that rpm has installed, and the package files in dnf's cache. Helpers of ``pkg``.

The installed packages are read again only if rpm's database changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from statecore.builtin.modules.pkg_rpm import rpm
from statecore.model.context import Context

_KNOWN = "pkg.list_pkgs"
_ARCHITECTURE = "pkg.architecture"


def architecture(ctx: Context) -> str:
    """Return the architecture of the host's own packages, such as "x86_64"."""
    if _ARCHITECTURE not in ctx.scratch:
        known = ctx.grains.get("osarch") or rpm.run(ctx.host, ["rpm", "--eval", "%{_host_cpu}"]).stdout.strip()
        ctx.scratch[_ARCHITECTURE] = known
    return str(ctx.scratch[_ARCHITECTURE])


def packages(ctx: Context) -> Mapping[str, list[rpm.RpmPackage]]:
    """Return a map of package name to the list of RpmPackage of this name that rpm has installed. Some packages are
    installed in several versions.
    """
    state = rpm.state(ctx.host)
    known: tuple[object, Mapping[str, list[rpm.RpmPackage]]] | None = ctx.scratch.get(_KNOWN)
    if known is None or known[0] != state or not state:
        found: dict[str, list[rpm.RpmPackage]] = {}
        for package in rpm.packages(ctx.host, architecture(ctx)):
            found.setdefault(package.name, []).append(package)
        known = ctx.scratch[_KNOWN] = (state, found)
    return known[1]


def versions(ctx: Context) -> dict[str, list[str]]:
    """Return a map of package name to its installed versions, oldest first."""
    return {
        name: rpm.sorted_versions([package.full_version for package in found]) for name, found in packages(ctx).items()
    }


def version_texts(ctx: Context) -> dict[str, str]:
    """Return a map of package name to its installed versions as one text, joined by commas."""
    return {name: ",".join(found) for name, found in versions(ctx).items()}


def plain_name(ctx: Context, name: str) -> str:
    """Return a package name without its architecture, if that is the host's own."""
    plain, named = rpm.split_name(name)
    return name if named is None else rpm.resolved_name(plain, named, architecture(ctx))


_CACHES = ("/var/cache/dnf", "/var/cache/libdnf5", "/var/cache/yum")


def files(ctx: Context) -> dict[str, dict[str, dict[str, str | int]]]:
    """Return the package files in dnf's cache, as ``files_below`` does."""
    return files_below(ctx, _CACHES)


def files_below(ctx: Context, folders: Sequence[str]) -> dict[str, dict[str, dict[str, str | int]]]:
    """Return the package files in these folders of the host and below: a map of package to a map of version to a map
    that describes the file.

    The keys of that map are "path", "size" in bytes, "creation_date_time", and "creation_date_time_t" in
    seconds since 1970.
    """
    found_paths = {}
    for folder in folders:
        top = ctx.host.path(folder)
        for path in sorted(top.rglob("*.rpm")) if top.is_dir() else ():
            if path.is_file() and not path.is_symlink():
                found_paths[f"{folder}/{path.relative_to(top)}"] = path
    if not found_paths:
        return {}
    found: dict[str, dict[str, dict[str, str | int]]] = {}
    packages = rpm.file_packages(ctx.host, list(found_paths), architecture(ctx))
    for (name, path), package in zip(found_paths.items(), packages, strict=True):
        state = path.stat()
        found.setdefault(package.name, {})[package.full_version] = {
            "path": name,
            "size": state.st_size,
            "creation_date_time_t": int(state.st_ctime),
            "creation_date_time": datetime.fromtimestamp(int(state.st_ctime)).isoformat(),
        }
    return found
