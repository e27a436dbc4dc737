"""Users' modules, fetched from the state tree."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from statecore.builtin.modules.saltutil.refresh import refresh_grains
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.sources.extension_modules import MODULE_FILES, sync

#: Kinds of users' modules that ``sync_all`` fetches, in Salt's order; ``salt://_<kind>`` each.
KINDS = (
    *("clouds", "beacons", "modules", "states", "sdb", "grains", "renderers", "returners", "output", "utils"),
    *("log_handlers", "executors", "proxymodules", "engines", "thorium", "serializers", "matchers", "resources"),
    *("pillar", "tops", "wrapper"),
)


def list_extmods(ctx: Context) -> dict[str, list[str]]:
    """Kind -> names of the users' modules on this minion."""
    root = _extension_dir(ctx)
    found = {
        directory.name: sorted({path.stem for path in directory.rglob("*") if path.suffix in MODULE_FILES})
        for directory in sorted(root.iterdir() if root.is_dir() else ())
        if directory.is_dir()
    }
    return {kind: names for kind, names in found.items() if names}


def sync_all(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
    clean_pillar_cache: bool = False,
) -> dict[str, list[str]]:
    """Fetches users' modules of every kind from ``salt://_modules``, ``_states``, ...; kind -> those new or changed.

    Files that are gone from the tree are removed. CLI Example:

        salt '*' saltutil.sync_all
    """
    envs = _environments(ctx, saltenv)
    fetched = {kind: _sync(ctx, kind, envs, extmod_whitelist, extmod_blacklist) for kind in KINDS}
    if refresh:
        ctx.minion.refresh_modules()
        if fetched["grains"]:
            refresh_grains(ctx)
        else:
            ctx.minion.refresh_pillar()
    return fetched


def _one(
    ctx: Context, kind: str, saltenv: str | list[str] | None, refresh: bool, whitelist: Any, blacklist: Any
) -> list[str]:
    fetched = _sync(ctx, kind, _environments(ctx, saltenv), whitelist, blacklist)
    if refresh:
        ctx.minion.refresh_modules()
        if kind == "grains":
            refresh_grains(ctx)
        elif kind == "pillar":
            ctx.minion.refresh_pillar()
    return fetched


def sync_modules(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_modules``; those new or changed."""
    return _one(ctx, "modules", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_states(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_states``; those new or changed."""
    return _one(ctx, "states", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_grains(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
    clean_pillar_cache: bool = False,
) -> list[str]:
    """Fetches ``salt://_grains``; those new or changed."""
    return _one(ctx, "grains", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_renderers(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_renderers``; those new or changed."""
    return _one(ctx, "renderers", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_returners(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_returners``; those new or changed."""
    return _one(ctx, "returners", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_utils(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_utils``; those new or changed."""
    return _one(ctx, "utils", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_output(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_output``; those new or changed."""
    return _one(ctx, "output", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_matchers(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_matchers``; those new or changed."""
    return _one(ctx, "matchers", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_executors(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_executors``; those new or changed."""
    return _one(ctx, "executors", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_beacons(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_beacons``; those new or changed."""
    return _one(ctx, "beacons", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_sdb(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_sdb``; those new or changed."""
    return _one(ctx, "sdb", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_clouds(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_clouds``; those new or changed."""
    return _one(ctx, "clouds", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_log_handlers(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_log_handlers``; those new or changed."""
    return _one(ctx, "log_handlers", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_proxymodules(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_proxymodules``; those new or changed."""
    return _one(ctx, "proxymodules", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_engines(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_engines``; those new or changed."""
    return _one(ctx, "engines", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_thorium(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_thorium``; those new or changed."""
    return _one(ctx, "thorium", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_serializers(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_serializers``; those new or changed."""
    return _one(ctx, "serializers", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_pillar(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
    clean_pillar_cache: bool = False,
) -> list[str]:
    """Fetches ``salt://_pillar``; those new or changed."""
    return _one(ctx, "pillar", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_tops(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_tops``; those new or changed."""
    return _one(ctx, "tops", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_resources(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_resources``; those new or changed."""
    return _one(ctx, "resources", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_wrapper(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: Any = None,
    extmod_blacklist: Any = None,
) -> list[str]:
    """Fetches ``salt://_wrapper``; those new or changed."""
    return _one(ctx, "wrapper", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def _sync(ctx: Context, kind: str, envs: Iterable[str], whitelist: Any, blacklist: Any) -> list[str]:
    return sync(ctx.files, _extension_dir(ctx), kind, envs, ctx.opts, whitelist, blacklist)


def _environments(ctx: Context, saltenv: str | list[str] | None) -> list[str]:
    """The environments asked for; without any, those that the top file gives this minion, else base."""
    if saltenv:
        return saltenv.split(",") if isinstance(saltenv, str) else list(saltenv)
    top = ctx.state_system.show_top({})
    return list(top) if isinstance(top, dict) and top else ["base"]


def _extension_dir(ctx: Context) -> Path:
    directory = ctx.opts.get("extension_modules")
    if not directory:
        raise CommandError("There is no place for users' modules: set 'extension_modules' or 'cachedir'")
    return Path(str(directory))
