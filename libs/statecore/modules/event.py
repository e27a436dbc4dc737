"""Events to the master's bus (Salt's ``event`` module)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecore.context import Context


def send(
    ctx: Context,
    tag: str,
    data: Mapping[str, Any] | None = None,
    preload: Mapping[str, Any] | None = None,
    with_env: bool | list[str] = False,
    with_grains: bool | list[str] = False,
    with_pillar: bool | list[str] = False,
    show_changed: bool = True,
    **kwargs: Any,
) -> bool:
    """Sends an event with ``data`` and further keyword arguments; ``with_grains`` and ``with_pillar`` add all of them or
    those named. True when it was handed over.

    CLI Example:

        salt '*' event.send myco/build/done data='{ok: true}'
    """
    load = dict(data or {})
    for name, wanted, source in (("grains", with_grains, ctx.grains), ("pillar", with_pillar, ctx.pillar)):
        if wanted:
            load[name] = _part(wanted, source)
    load.update({key: value for key, value in kwargs.items() if not key.startswith("__")})
    return fire_master(ctx, load, tag, preload)


def fire_master(
    ctx: Context, data: Mapping[str, Any], tag: str, preload: Mapping[str, Any] | None = None, timeout: int = 60
) -> bool:
    """Sends an event to the master's bus. True when it was handed over."""
    return ctx.events.fire(tag, dict(data))


def fire(ctx: Context, data: Mapping[str, Any], tag: str, timeout: int | None = None) -> bool:
    """Sends an event; the minion has no bus of its own, so it goes where ``fire_master`` sends it."""
    return ctx.events.fire(tag, dict(data))


def _part(wanted: bool | list[str], source: Mapping[str, Any]) -> dict[str, Any]:
    if wanted is True:
        return dict(source)
    names = wanted if isinstance(wanted, list) else []
    return {key: source[key] for key in names if key in source}
