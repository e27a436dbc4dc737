"""Events to the master's bus (Salt's ``event`` module)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import InvocationError

#: Tags by which Salt's modules order their own minion about.
_ORDERS: Mapping[str, Callable[[Context], bool]] = {
    "pillar_refresh": lambda ctx: ctx.minion.refresh_pillar(),
    "grains_refresh": lambda ctx: ctx.minion.refresh_grains(),
    "module_refresh": lambda ctx: ctx.minion.refresh_modules(),
    "beacons_refresh": lambda ctx: ctx.minion.refresh_modules(),
}


def send(
    ctx: Context,
    tag: str,
    data: Mapping[str, Any] | None = None,
    preload: Any = None,
    with_env: bool | list[str] = False,
    with_grains: bool | list[str] = False,
    with_pillar: bool | list[str] = False,
    with_env_opts: bool = False,
    **kwargs: Any,
) -> bool:
    """Sends an event with further keyword arguments and, over them, ``data``. True when it was handed over.

    ``with_env`` (as ``environ``), ``with_grains`` and ``with_pillar`` add all of them, or those named; ``with_env_opts`` adds
    ``saltenv`` and ``pillarenv``.

    CLI Example:

        salt '*' event.send myco/build/done data='{ok: true}'
    """
    load: dict[str, Any] = {}
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


def fire_master(ctx: Context, data: Any, tag: str, preload: Any = None) -> bool:
    """Sends an event to the master's bus, where it carries the minion's ``id`` and ``data``. True when it was handed over.

    CLI Example:

        salt '*' event.fire_master '{"my": "data"}' 'tag'
    """
    if preload:
        raise InvocationError("not supported: preload: an event says what its minion is known to be, and nothing else")
    return ctx.events.fire(tag, data)


def fire(ctx: Context, data: Any, tag: str) -> bool:
    """Orders a refresh (``pillar_refresh``, ``grains_refresh``, ``module_refresh``). What has another tag goes to the master: a
    minion has no bus of its own.

    CLI Example:

        salt '*' event.fire '{}' pillar_refresh
    """
    order = _ORDERS.get(tag)
    return order(ctx) if order is not None else ctx.events.fire(tag, data)
