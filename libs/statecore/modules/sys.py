"""What the loader knows: functions, modules, documentation, signatures (Salt's ``sys`` module)."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from statecore.context import Context


def list_functions(ctx: Context, *args: str, **kwargs: Any) -> list[str]:
    """Execution functions, of the modules named (``sys``), or matching globs (``sys.list_*``).

    CLI Example:

        salt '*' sys.list_functions sys
    """
    return _functions(ctx, "modules", args)


def list_state_functions(ctx: Context, *args: str, **kwargs: Any) -> list[str]:
    """State functions, of the modules named or matching globs."""
    return _functions(ctx, "states", args)


def list_modules(ctx: Context, *args: str) -> list[str]:
    """Execution modules, all or those that match globs."""
    return _modules(ctx, "modules", args)


def list_state_modules(ctx: Context, *args: str) -> list[str]:
    """State modules, all or those that match globs."""
    return _modules(ctx, "states", args)


def list_renderers(ctx: Context, *args: str) -> list[str]:
    """Renderers, all or those that match globs."""
    return [name for name in ctx.catalog.names("renderers") if not args or any(fnmatchcase(name, arg) for arg in args)]


def doc(ctx: Context, *args: str) -> dict[str, str | None]:
    """Documentation of execution functions: of modules, functions, or globs; all of it without arguments.

    CLI Example:

        salt '*' sys.doc test.ping
    """
    return {name: ctx.catalog.doc(name) for name in _wanted(ctx, "modules", args)}


def state_doc(ctx: Context, *args: str) -> dict[str, str | None]:
    """Documentation of state functions, with that of their modules."""
    found: dict[str, str | None] = {}
    for name in _wanted(ctx, "states", args):
        module = name.partition(".")[0]
        if module not in found:
            found[module] = ctx.catalog.doc(module, "states")
        found[name] = ctx.catalog.doc(name, "states")
    return found


def argspec(ctx: Context, module: str = "") -> dict[str, dict[str, Any] | None]:
    """Signatures of the functions of a module, or of those that match a glob or name."""
    return _argspecs(ctx, "modules", module)


def state_argspec(ctx: Context, module: str = "") -> dict[str, dict[str, Any] | None]:
    """Signatures of state functions, as ``argspec``."""
    return _argspecs(ctx, "states", module)


def reload_modules(ctx: Context) -> bool:
    """The next job sees the modules that are on disk now."""
    return ctx.minion.refresh_modules()


def _functions(ctx: Context, kind: str, patterns: tuple[str, ...]) -> list[str]:
    names = ctx.catalog.names(kind)
    if not patterns:
        return sorted(names)
    return sorted(name for name in names if any(_listed(name, pattern) for pattern in patterns))


def _listed(name: str, pattern: str) -> bool:
    if "*" in pattern or "." in pattern:
        return fnmatchcase(name, pattern)
    return name.partition(".")[0] == pattern


def _modules(ctx: Context, kind: str, patterns: tuple[str, ...]) -> list[str]:
    modules = sorted({name.partition(".")[0] for name in ctx.catalog.names(kind)})
    return [module for module in modules if not patterns or any(fnmatchcase(module, each) for each in patterns)]


def _wanted(ctx: Context, kind: str, patterns: tuple[str, ...]) -> list[str]:
    names = ctx.catalog.names(kind)
    if not patterns:
        return names
    return [name for name in names if any(_documented(name, pattern) for pattern in patterns)]


def _documented(name: str, pattern: str) -> bool:
    if "*" in pattern:
        return fnmatchcase(name, pattern)
    return name == pattern or name.startswith(pattern if pattern.endswith(".") else f"{pattern}.")


def _argspecs(ctx: Context, kind: str, pattern: str) -> dict[str, dict[str, Any] | None]:
    return {name: ctx.catalog.argspec(name, kind) for name in ctx.catalog.names(kind) if _listed(name, pattern)}
