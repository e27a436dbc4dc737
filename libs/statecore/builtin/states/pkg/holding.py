"""Packages that are kept at the version that they have."""

from __future__ import annotations

from typing import Any

from statecore.builtin.states.pkg import doing, wishes
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Plan, Step


def held(ctx: Context, name: str, version: Any = None, pkgs: Any = None, replace: bool = False) -> Plan:
    """Packages that are kept as they are; ``replace``: and no others. A version counts for nothing, as in Salt."""
    if isinstance(pkgs, list) and not pkgs and not replace:
        return Plan.unchanged("No packages to be held provided")
    try:
        wanted = list(wishes.desired_packages(ctx, name, version, pkgs, normalize=True))
        now = wishes.held(ctx)
    except (ValueError, CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    more = [package for package in wanted if package not in now]
    fewer = [package for package in now if replace and package not in wanted]
    would = [f"The following package would be held: {package}" for package in more]
    steps = [Step(f"hold {package}", doing.holding(ctx, "hold", package)) for package in more]
    return doing.holds(ctx, fewer, would, steps)


def unheld(ctx: Context, name: str, version: Any = None, pkgs: Any = None, all: bool = False) -> Plan:
    """Packages that may be changed again; ``all``: every one that is held."""
    if isinstance(pkgs, list) and not pkgs and not all:
        return Plan.unchanged("No packages to be unheld provided")
    try:
        wanted = list(wishes.desired_packages(ctx, name, version, pkgs, normalize=True))
        now = wishes.held(ctx)
    except (ValueError, CommandError, InvocationError) as error:
        return Plan.failed(str(error))
    return doing.holds(ctx, [package for package in now if all or package in wanted], [], [])
