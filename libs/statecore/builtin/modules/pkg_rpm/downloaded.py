"""Package files that dnf has fetched on a host. Behind the ``pkg`` module."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from statecore.builtin.modules.pkg_rpm import records, rpm
from statecore.model.context import Context

_CACHES = ("/var/cache/dnf", "/var/cache/libdnf5", "/var/cache/yum")


def files(ctx: Context) -> dict[str, Any]:
    """Package -> version -> {"path", "size" in bytes, "creation_date_time", "creation_date_time_t" in seconds since 1970}."""
    places = {}
    for cache in _CACHES:
        top = ctx.host.path(cache)
        for path in sorted(top.rglob("*.rpm")) if top.is_dir() else ():
            if path.is_file() and not path.is_symlink():
                places[f"{cache}/{path.relative_to(top)}"] = path
    if not places:
        return {}
    found: dict[str, Any] = {}
    packages = rpm.file_packages(ctx.host, list(places), records.architecture(ctx))
    for (place, path), package in zip(places.items(), packages, strict=True):
        state = path.stat()
        found.setdefault(package.name, {})[package.full_version] = {
            "path": place,
            "size": state.st_size,
            "creation_date_time_t": int(state.st_ctime),
            "creation_date_time": datetime.fromtimestamp(int(state.st_ctime)).isoformat(),
        }
    return found
