"""Salt's ``event`` states: events to the master's bus."""

from __future__ import annotations

from typing import Any

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step


def send(
    ctx: Context,
    name: str,
    data: object = None,
    preload: object = None,
    with_env: bool | list[str] = False,
    with_grains: bool | list[str] = False,
    with_pillar: bool | list[str] = False,
    show_changed: bool = True,
    **kwargs: object,
) -> Plan:
    """Send an event with the tag ``name`` to the master's event bus, in each run. See the function ``event.send``.

    data
        data of the event; further arguments are added to it
    with_env, with_grains, with_pillar
        True, or a list of names: add environment variables, grains or pillar keys to the data
    show_changed
        False: report no change
    """
    if preload:
        return Plan.failed("not supported: preload")
    changes = {"tag": name, "data": data} if show_changed else {}

    def work() -> Outcome:
        fired = ctx.call(
            "event.send",
            name,
            data=data,
            with_env=with_env,
            with_grains=with_grains,
            with_pillar=with_pillar,
            **kwargs,
        )
        return (
            Outcome("Event fired", changes)
            if fired
            else Outcome("The event was not fired: this minion has no master", ok=False)
        )

    return Plan.change("Event would have been fired", [Step(f"fire the event {name}", work)], changes)


def fire_master(ctx: Context, name: str, **kwargs: Any) -> Plan:
    """Send an event to the master's event bus; another name of the state ``event.send``."""
    return send(ctx, name, **kwargs)


def wait(ctx: Context, name: str, sfun: object = None, data: object = None) -> Plan:
    """Send the event only if a watched state changed; otherwise do nothing."""
    return Plan.unchanged("")


def mod_watch(ctx: Context, name: str, sfun: object = None, **kwargs: Any) -> Plan:
    """Send the event of ``event.wait``, because a watched state changed. ``sfun``: name of the declared function."""
    return send(ctx, name, **kwargs)
