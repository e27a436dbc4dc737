"""Differences between files of the host and of their packages, for ``pkg.diff`` with dnf and zypper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from statecore.model.context import Context
from statecore.model.errors import CommandError


def differences(
    ctx: Context, paths: Sequence[str], fetch: Callable[[Sequence[str]], Mapping[str, str]], **options: object
) -> dict[str, str]:
    """Return a map of path to the differences as text, or "Unchanged", "Not managed" (no package has the file) or "N/A"
    (there is no such file).

    ``fetch`` downloads packages, and returns a map of package to the path of its file, with ``_error`` if some failed;
    ``options`` are those of ``lowpkg.owner``. Raise CommandError for a package that cannot be downloaded.
    """
    found: dict[str, str] = {}
    owners: dict[str, list[str]] = {}
    for path in paths:
        package = str(ctx.call("lowpkg.owner", path, **options))
        if package:
            owners.setdefault(package, []).append(path)
        else:
            found[path] = "Not managed" if ctx.host.path(path).exists() else "N/A"
    local = fetch(list(owners)) if owners else {}
    for package, owned in owners.items():
        if package not in local:
            raise CommandError(local["_error"])
        for path in owned:
            found[path] = ctx.call("lowpkg.diff", local[package], path) or "Unchanged"
    return found
