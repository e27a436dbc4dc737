"""Names, documentation and signatures of the functions and modules that this minion has: Salt's ``sys`` execution
module.

A pattern is a module (``test``), a function (``test.ping``) or a glob (``test.*``). Without a pattern all are returned.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, NoReturn

from statecore.model.context import Context
from statecore.model.errors import CommandError

#: reStructuredText directive -> text in a terminal, as in Salt.
_PLAIN = (
    (re.compile(r" *\.\. code-block:: \S+\n{1,2}"), ""),
    (re.compile(r"\.\. note::"), "Note:"),
    (re.compile(r"\.\. warning::"), "Warning:"),
    (re.compile(r"\.\. versionadded::"), "New in version"),
    (re.compile(r"\.\. versionchanged::"), "Changed in version"),
)

#: Characters that make a pattern a glob.
_GLOB = re.compile(r"[*?\[]")

#: Types of every argument in a schema: signatures have no better information.
_TYPES = ("boolean", "integer", "number", "string")


def list_functions(ctx: Context, *args: str, **kwargs: object) -> list[str]:
    """Return the names of the execution functions of the named modules (``sys``), or those that match globs
    (``sys.list_*``).

    CLI Example:

        salt '*' sys.list_functions sys
    """
    return _functions(ctx, "modules", args)


def list_state_functions(ctx: Context, *args: str, **kwargs: object) -> list[str]:
    """Return the names of the state functions of the named modules, or those that match globs."""
    return _functions(ctx, "states", args)


def list_returner_functions(ctx: Context, *args: str, **kwargs: object) -> list[str]:
    """Return the names of the returners' functions of the named modules, or those that match globs."""
    return _functions(ctx, "returners", args)


def list_runner_functions(ctx: Context, *args: str, **kwargs: object) -> NoReturn:
    """Raise CommandError: runners exist only on the master, where ``salt-run`` lists them."""
    _refuse_runners()


def list_modules(ctx: Context, *args: str) -> list[str]:
    """Return the names of all execution modules, or those that match globs."""
    return _modules(ctx, "modules", args)


def list_state_modules(ctx: Context, *args: str) -> list[str]:
    """Return the names of all state modules, or those that match globs."""
    return _modules(ctx, "states", args)


def list_returners(ctx: Context, *args: str) -> list[str]:
    """Return the names of all returners, or those that match globs."""
    return _modules(ctx, "returners", args)


def list_runners(ctx: Context, *args: str) -> NoReturn:
    """Raise CommandError: runners exist only on the master, where ``salt-run`` lists them."""
    _refuse_runners()


def list_renderers(ctx: Context, *args: str) -> list[str]:
    """Return the names of all renderers, or those that match globs."""
    return [name for name in ctx.catalog.names("renderers") if not args or any(fnmatchcase(name, arg) for arg in args)]


def doc(ctx: Context, *args: str) -> dict[str, str | None]:
    """Return a map of execution function to its documentation (None without one), for the named modules, functions or
    globs, or for all.

    CLI Example:

        salt '*' sys.doc test.ping
    """
    return _docs(ctx, "modules", args)


def state_doc(ctx: Context, *args: str) -> dict[str, str | None]:
    """Return a map of state function, or state module, to its documentation (None without one), for the named modules,
    functions or globs, or for all.
    """
    found: dict[str, str | None] = {}
    for name in _wanted(ctx, "states", args):
        module = name.partition(".")[0]
        if module not in found:
            found[module] = _plain(ctx.catalog.doc(module, "states"))
        found[name] = _plain(ctx.catalog.doc(name, "states"))
    return found


def returner_doc(ctx: Context, *args: str) -> dict[str, str | None]:
    """Return a map of returner function to its documentation (None without one), for the named modules, functions or
    globs, or for all.
    """
    return _docs(ctx, "returners", args)


def renderer_doc(ctx: Context, *args: str) -> dict[str, str | None]:
    """Return a map of renderer to its documentation (None without one), for the named renderers or globs, or for all."""
    return {name: _plain(ctx.catalog.doc(name, "renderers")) for name in list_renderers(ctx, *args)}


def runner_doc(ctx: Context, *args: str) -> NoReturn:
    """Raise CommandError: runners exist only on the master."""
    _refuse_runners()


def argspec(ctx: Context, module: str = "") -> dict[str, dict[str, object] | None]:
    """Return a map of execution function to its signature (a map with args, defaults, varargs and kwargs), for a
    module, or for the functions that match a glob or name.

    CLI Example:

        salt '*' sys.argspec 'pkg.*'
    """
    return _argspecs(ctx, "modules", module)


def state_argspec(ctx: Context, module: str = "") -> dict[str, dict[str, object] | None]:
    """Return a map of state function to its signature (a map with args, defaults, varargs and kwargs), selected as in
    ``sys.argspec``.
    """
    return _argspecs(ctx, "states", module)


def returner_argspec(ctx: Context, module: str = "") -> dict[str, dict[str, object] | None]:
    """Return a map of returner function to its signature (a map with args, defaults, varargs and kwargs), selected as
    in ``sys.argspec``.
    """
    return _argspecs(ctx, "returners", module)


def runner_argspec(ctx: Context, module: str = "") -> NoReturn:
    """Raise CommandError: runners exist only on the master."""
    _refuse_runners()


def state_schema(ctx: Context, module: str = "") -> list[dict[str, object]]:
    """Return a list with a JSON Schema (draft 4) for each state function of a module, or for those that match a glob or
    name.

    CLI Example:

        salt '*' sys.state_schema pkg.installed
    """
    return [_schema(name, spec or {}) for name, spec in state_argspec(ctx, module).items()]


def reload_modules(ctx: Context) -> bool:
    """Load the minion's modules again from disk; the next job gets the new modules. Return whether this succeeded."""
    return ctx.minion.refresh_modules()


def _refuse_runners() -> NoReturn:
    raise CommandError("Runners exist only on the master: use `salt-run` there.")


def _plain(text: str | None) -> str | None:
    for mark, shown in _PLAIN if text else ():
        text = mark.sub(shown, text or "")
    return text


def _docs(ctx: Context, kind: str, patterns: Sequence[str]) -> dict[str, str | None]:
    return {name: _plain(ctx.catalog.doc(name, kind)) for name in _wanted(ctx, kind, patterns)}


def _schema(name: str, spec: dict[str, Any]) -> dict[str, object]:
    arguments, defaults = spec.get("args") or [], spec.get("defaults") or []
    given = dict(zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True))
    return {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "title": name,
        "description": name,
        "type": "object",
        "properties": {each: {"oneOf": [_item(kind, each, given.get(each)) for kind in _TYPES]} for each in arguments},
        "x-ordering": arguments,
        "additionalProperties": False,
    }


def _item(kind: str, name: str, default: object) -> dict[str, object]:
    item: dict[str, object] = {"type": kind, "title": name, "description": name}
    return item if default is None else {**item, "default": default}


def _functions(ctx: Context, kind: str, patterns: tuple[str, ...]) -> list[str]:
    names = _names(ctx, kind, patterns)
    if not patterns:
        return sorted(names)
    return sorted(name for name in names if any(_listed(name, pattern) for pattern in patterns))


def _names(ctx: Context, kind: str, patterns: Sequence[str]) -> list[str]:
    """Return the names of all functions that may match one of the patterns. To import every module takes seconds."""
    modules = {pattern.partition(".")[0] for pattern in patterns}
    if not modules or any(not module or _GLOB.search(module) for module in modules):
        return ctx.catalog.names(kind)
    return sorted(name for module in modules for name in ctx.catalog.names(kind, module))


def _listed(name: str, pattern: str) -> bool:
    if "*" in pattern or "." in pattern:
        return fnmatchcase(name, pattern)
    return not pattern or name.partition(".")[0] == pattern


def _modules(ctx: Context, kind: str, patterns: tuple[str, ...]) -> list[str]:
    modules = sorted({name.partition(".")[0] for name in ctx.catalog.names(kind)})
    return [module for module in modules if not patterns or any(fnmatchcase(module, each) for each in patterns)]


def _wanted(ctx: Context, kind: str, patterns: Sequence[str]) -> list[str]:
    names = _names(ctx, kind, patterns)
    if not patterns:
        return names
    return [name for name in names if any(_documented(name, pattern) for pattern in patterns)]


def _documented(name: str, pattern: str) -> bool:
    if "*" in pattern:
        return fnmatchcase(name, pattern)
    return name == pattern or name.startswith(pattern if pattern.endswith(".") else f"{pattern}.")


def _argspecs(ctx: Context, kind: str, pattern: str) -> dict[str, dict[str, object] | None]:
    return {name: ctx.catalog.argspec(name, kind) for name in _names(ctx, kind, [pattern]) if _listed(name, pattern)}
