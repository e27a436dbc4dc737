"""Events from the minion to the master's event bus: Salt's ``event`` execution module."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system import minion_bus

#: Tag that Salt's modules fire to refresh their own minion -> the refresh.
_REFRESHES: Mapping[str, Callable[[Context], bool]] = {
    "pillar_refresh": lambda ctx: ctx.minion.refresh_pillar(),
    "grains_refresh": lambda ctx: ctx.minion.refresh_grains(),
    "module_refresh": lambda ctx: ctx.minion.refresh_modules(),
    "beacons_refresh": lambda ctx: ctx.minion.refresh_modules(),
}


def send(
    ctx: Context,
    tag: str,
    data: Mapping[str, object] | None = None,
    preload: object = None,
    with_env: bool | list[str] = False,
    with_grains: bool | list[str] = False,
    with_pillar: bool | list[str] = False,
    with_env_opts: bool = False,
    **kwargs: object,
) -> bool:
    """Send an event to the master's event bus. Return True if the minion handed the event over.

    The event's data are the further keyword arguments, overridden by ``data``.

    with_env, with_grains, with_pillar
        True, or a list of names: add environment variables (key ``environ``), grains or pillar
    with_env_opts
        True: add ``saltenv`` and ``pillarenv``

    CLI Example:

        salt '*' event.send myco/build/done data='{ok: true}'
    """
    load: dict[str, object] = {}
    sources = (
        ("environ", with_env, os.environ),
        ("grains", with_grains, ctx.grains),
        ("pillar", with_pillar, ctx.pillar),
    )
    for name, wanted, source in sources:
        if wanted:
            load[name] = {key: source[key] for key in source if not isinstance(wanted, list) or key in wanted}
    if with_env_opts:
        load |= {"saltenv": ctx.opts.get("saltenv", "base"), "pillarenv": ctx.opts.get("pillarenv")}
    load |= {key: value for key, value in kwargs.items() if not key.startswith("__")}
    return fire_master(ctx, load | (dict(data) if isinstance(data, Mapping) else {}), tag, preload)


def fire_master(ctx: Context, data: Mapping[str, object], tag: str, preload: object = None) -> bool:
    """Send an event to the master's event bus. The event has the keys ``id`` (the minion's id) and ``data``. Return
    True if the minion handed the event over.

    CLI Example:

        salt '*' event.fire_master '{"my": "data"}' 'tag'
    """
    if preload:
        raise InvocationError("not supported: preload; the event's minion id is always that of the sender")
    return ctx.events.fire(tag, data)


def fire(ctx: Context, data: Mapping[str, object], tag: str) -> bool:
    """Send an event to the minion's own event bus, which its engines read, and return True. On a master it goes to
    the master's event bus.

    The tags pillar_refresh, grains_refresh, module_refresh and beacons_refresh refresh the minion. Return whether this
    succeeded.

    CLI Example:

        salt '*' event.fire '{}' pillar_refresh
    """
    refresh = _REFRESHES.get(tag)
    if ctx.master is not None or ctx.opts.get("__role") == "master":
        return ctx.events.fire(tag, data)
    try:
        minion_bus.fire(minion_bus.bus_directory(ctx.opts), tag, data)
    except minion_bus.TooLarge as error:
        raise CommandError(str(error)) from error
    return refresh(ctx) if refresh is not None else True
