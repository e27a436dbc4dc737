"""What the minion reads anew."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

from statecore.model.context import Context

log = logging.getLogger(__name__)

#: Directories below the cache directory that can be had again from the master.
_CACHES = ("files", "localfiles", "extrn_files", "accumulator")


def refresh_pillar(ctx: Context, wait: bool = False, timeout: int = 30, clean_cache: bool = True) -> bool:
    """The next job sees freshly compiled pillar.

    CLI Example:

        salt '*' saltutil.refresh_pillar
    """
    return ctx.minion.refresh_pillar()


def refresh_grains(ctx: Context, refresh_pillar: bool = True, clean_pillar_cache: bool = False) -> bool:
    """The next job sees freshly gathered grains, and pillar compiled from them."""
    done = ctx.minion.refresh_grains()
    if refresh_pillar:
        ctx.minion.refresh_pillar()
    return done


def refresh_modules(ctx: Context, **kwargs: Any) -> bool:
    """The next job sees the modules that are on disk now."""
    return ctx.minion.refresh_modules()


def refresh_matchers(ctx: Context) -> bool:
    """The next job sees the matchers that are on disk now."""
    return ctx.minion.refresh_modules()


def refresh_beacons(ctx: Context, **kwargs: Any) -> bool:
    """Beacons begin anew, with the modules that are on disk now."""
    return ctx.minion.refresh_modules()


def clear_cache(ctx: Context) -> bool:
    """Removes cached files that can be had again from the master. False where one cannot be removed; the log says why."""
    cache = str(ctx.opts.get("cachedir") or "")
    left: list[str] = []

    def kept(_: Any, path: str, error: tuple[Any, BaseException, Any]) -> None:
        if not isinstance(error[1], FileNotFoundError):
            left.append(path)
            log.error("%s cannot be removed: %s", path, error[1])

    for name in _CACHES if cache else ():
        shutil.rmtree(Path(cache) / name, onerror=kept)
    return not left
