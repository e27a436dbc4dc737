"""Package files that APT has fetched."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from statecore.model.context import Context

_ARCHIVES = "/var/cache/apt/archives"


def list_downloaded(ctx: Context, **kwargs: Any) -> dict[str, Any]:
    """Package files that APT has fetched: package -> version -> path, size in bytes and time.

    CLI Example:

        salt '*' pkg.list_downloaded
    """
    found: dict[str, Any] = {}
    place = ctx.host.path(_ARCHIVES)
    for path in sorted(place.glob("*.deb")) if place.is_dir() else ():
        # APT's own names: name_version_architecture.deb, the colon of an epoch as %3a.
        parts = path.stem.split("_")
        if len(parts) != 3 or path.is_symlink():
            continue
        state = path.stat()
        found.setdefault(parts[0], {})[unquote(parts[1])] = {
            "path": f"{_ARCHIVES}/{path.name}",
            "size": state.st_size,
            "creation_date_time_t": int(state.st_ctime),
            "creation_date_time": datetime.fromtimestamp(int(state.st_ctime), UTC).replace(tzinfo=None).isoformat(),
        }
    return found
