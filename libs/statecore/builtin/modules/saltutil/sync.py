"""Functions of ``saltutil`` that fetch users' modules from the state tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from statecore.builtin.modules.saltutil.minion_data import refresh_grains
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
    """Return the users' modules on this minion: a map of kind (``modules``, ``states``, ...) to the list of module
    names.
    """
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
    """Fetch users' modules of one kind, and with ``refresh`` load them. Return the names of the new and changed
    ones.
    """
    fetched = _sync(ctx, kind, _environments(ctx, saltenv), whitelist, blacklist)
    if refresh:
        ctx.minion.refresh_modules()
        if kind == "grains":
            refresh_grains(ctx)
        elif kind == "pillar":
            ctx.minion.refresh_pillar()
    return fetched


def _sync_function(kind: str) -> Callable[..., list[str]]:
    """Return the execution function ``sync_KIND``, which fetches the users' modules of one kind."""

    def sync_kind(
        ctx: Context,
        saltenv: str | list[str] | None = None,
        refresh: bool = True,
        extmod_whitelist: object = None,
        extmod_blacklist: object = None,
    ) -> list[str]:
        return _one(ctx, kind, saltenv, refresh, extmod_whitelist, extmod_blacklist)

    sync_kind.__name__ = sync_kind.__qualname__ = f"sync_{kind}"
    sync_kind.__doc__ = f"Fetch users' modules from ``salt://_{kind}``. Return the names of the new and changed ones."
    return sync_kind


sync_modules = _sync_function("modules")
sync_states = _sync_function("states")
sync_renderers = _sync_function("renderers")
sync_returners = _sync_function("returners")
sync_utils = _sync_function("utils")
sync_output = _sync_function("output")
sync_matchers = _sync_function("matchers")
sync_executors = _sync_function("executors")
sync_beacons = _sync_function("beacons")
sync_sdb = _sync_function("sdb")
sync_clouds = _sync_function("clouds")
sync_log_handlers = _sync_function("log_handlers")
sync_proxymodules = _sync_function("proxymodules")
sync_engines = _sync_function("engines")
sync_thorium = _sync_function("thorium")
sync_serializers = _sync_function("serializers")
sync_tops = _sync_function("tops")
sync_resources = _sync_function("resources")
sync_wrapper = _sync_function("wrapper")


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
