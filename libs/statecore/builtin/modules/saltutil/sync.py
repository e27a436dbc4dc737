"""Functions of ``saltutil`` that fetch users' modules from the state tree."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from statecore.builtin.modules.saltutil.refresh import refresh_grains
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.sources.extension_modules import MODULE_FILES, sync

#: Kinds of users' modules that ``sync_all`` fetches, in Salt's order, each from ``salt://_<kind>``.
KINDS = (
    *("clouds", "beacons", "modules", "states", "sdb", "grains", "renderers", "returners", "output", "utils"),
    *("log_handlers", "executors", "proxymodules", "engines", "thorium", "serializers", "matchers", "resources"),
    *("pillar", "tops", "wrapper"),
)


def list_extmods(ctx: Context) -> dict[str, list[str]]:
    """Return the users' modules on this minion: a map of kind (``modules``, ``states``, ...) to names."""
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
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
    clean_pillar_cache: bool = False,
) -> dict[str, list[str]]:
    """Fetch users' modules of every kind from ``salt://_modules``, ``salt://_states`` and so on. Return a map of kind
    to the names of its new or changed modules.

    Modules that no longer exist in the tree are deleted.

    CLI Example:

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
    ctx: Context, kind: str, saltenv: str | list[str] | None, refresh: bool, whitelist: object, blacklist: object
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
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_modules``. Return the names of the new and changed ones."""
    return _one(ctx, "modules", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_states(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_states``. Return the names of the new and changed ones."""
    return _one(ctx, "states", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_grains(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
    clean_pillar_cache: bool = False,
) -> list[str]:
    """Fetch users' modules from ``salt://_grains``. Return the names of the new and changed ones."""
    return _one(ctx, "grains", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_renderers(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_renderers``. Return the names of the new and changed ones."""
    return _one(ctx, "renderers", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_returners(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_returners``. Return the names of the new and changed ones."""
    return _one(ctx, "returners", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_utils(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_utils``. Return the names of the new and changed ones."""
    return _one(ctx, "utils", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_output(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_output``. Return the names of the new and changed ones."""
    return _one(ctx, "output", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_matchers(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_matchers``. Return the names of the new and changed ones."""
    return _one(ctx, "matchers", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_executors(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_executors``. Return the names of the new and changed ones."""
    return _one(ctx, "executors", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_beacons(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_beacons``. Return the names of the new and changed ones."""
    return _one(ctx, "beacons", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_sdb(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_sdb``. Return the names of the new and changed ones."""
    return _one(ctx, "sdb", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_clouds(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_clouds``. Return the names of the new and changed ones."""
    return _one(ctx, "clouds", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_log_handlers(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_log_handlers``. Return the names of the new and changed ones."""
    return _one(ctx, "log_handlers", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_proxymodules(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_proxymodules``. Return the names of the new and changed ones."""
    return _one(ctx, "proxymodules", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_engines(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_engines``. Return the names of the new and changed ones."""
    return _one(ctx, "engines", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_thorium(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_thorium``. Return the names of the new and changed ones."""
    return _one(ctx, "thorium", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_serializers(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_serializers``. Return the names of the new and changed ones."""
    return _one(ctx, "serializers", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_pillar(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
    clean_pillar_cache: bool = False,
) -> list[str]:
    """Fetch users' modules from ``salt://_pillar``. Return the names of the new and changed ones."""
    return _one(ctx, "pillar", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_tops(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_tops``. Return the names of the new and changed ones."""
    return _one(ctx, "tops", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_resources(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_resources``. Return the names of the new and changed ones."""
    return _one(ctx, "resources", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def sync_wrapper(
    ctx: Context,
    saltenv: str | list[str] | None = None,
    refresh: bool = True,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
) -> list[str]:
    """Fetch users' modules from ``salt://_wrapper``. Return the names of the new and changed ones."""
    return _one(ctx, "wrapper", saltenv, refresh, extmod_whitelist, extmod_blacklist)


def _sync(ctx: Context, kind: str, envs: Iterable[str], whitelist: object, blacklist: object) -> list[str]:
    return sync(ctx.files, _extension_dir(ctx), kind, envs, ctx.opts, whitelist, blacklist)


def _environments(ctx: Context, saltenv: str | list[str] | None) -> list[str]:
    """Return the saltenvs to fetch users' modules from: those given, by default those in which the top file names this
    minion, else ["base"].
    """
    if saltenv:
        return saltenv.split(",") if isinstance(saltenv, str) else list(saltenv)
    top = ctx.state_system.show_top({})
    return list(top) if isinstance(top, dict) and top else ["base"]


def _extension_dir(ctx: Context) -> Path:
    directory = ctx.opts.get("extension_modules")
    if not directory:
        raise CommandError("There is no directory for users' modules: set 'extension_modules' or 'cachedir'")
    return Path(str(directory))
