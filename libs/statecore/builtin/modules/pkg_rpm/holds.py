"""Functions of ``pkg`` that hold packages at their versions on a host with rpm."""

from __future__ import annotations

from typing import Any

from statecore.builtin.modules.pkg_rpm import locks
from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.system.packages import package_requests


def list_holds(ctx: Context, pattern: str | None = None, full: bool = True) -> list[str]:
    """Return the version locks of packages as versionlock writes them (``bash-0:5.1.8-6.el9.*``); with ``full=False``
    the names of the locked packages.
    """
    _check(ctx)
    return [lock.text for lock in locks.read(ctx)] if full else locks.names(ctx)


def hold(
    ctx: Context, name: str | None = None, pkgs: object = None, sources: object = None, **kwargs: object
) -> dict[str, Any]:
    """Hold packages at their versions. Return a map of package to a map with name, changes, result and comment."""
    _check(ctx)
    held = locks.names(ctx)
    answers = {}
    for package in package_requests.named(name, pkgs, sources):
        errors = [] if package in held else locks.add(ctx, package)
        done = not errors and package not in held
        said = "is already set to be" if package in held else "was unable to be" if errors else "is now being"
        answers[package] = {
            "name": package,
            "changes": {"new": "hold", "old": ""} if done else {},
            "result": not errors,
            "comment": f"Package {package} {said} held.{''.join(f' {error}' for error in errors)}",
        }
    return answers


def unhold(
    ctx: Context, name: str | None = None, pkgs: object = None, sources: object = None, **kwargs: object
) -> dict[str, Any]:
    """End the hold of packages, so that dnf may change them again. Return a map of package to a map with name, changes,
    result and comment.
    """
    _check(ctx)
    held = locks.names(ctx)
    answers = {}
    for package in package_requests.named(name, pkgs, sources):
        errors = locks.remove(ctx, package) if package in held else []
        done = not errors and package in held
        said = "was unable to be unheld" if errors else "is no longer held" if done else "is not being held"
        answers[package] = {
            "name": package,
            "changes": {"new": "", "old": "hold"} if done else {},
            "result": not errors,
            "comment": f"Package {package} {said}.{''.join(f' {error}' for error in errors)}",
        }
    return answers


def _check(ctx: Context) -> None:
    if why := locks.missing(ctx.host):
        raise InvocationError(why)
