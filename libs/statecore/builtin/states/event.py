"""Events of state runs (Salt's ``event`` state)."""

from __future__ import annotations

from typing import Any

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step


def send(
    ctx: Context,
    name: str,
    data: Any = None,
    preload: Any = None,
    with_env: bool | list[str] = False,
    with_grains: bool | list[str] = False,
    with_pillar: bool | list[str] = False,
    show_changed: bool = True,
    **kwargs: Any,
) -> Plan:
    """Sends the event ``name`` to the master's bus, each time; see the function ``event.send``.

    data
        what the event says; further arguments say more
    with_env, with_grains, with_pillar
        True, or names: these are in the event, too
    show_changed
        False: it does not count as a change
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
            else Outcome("The event was not fired: there is no master", ok=False)
        )

    return Plan.change("Event would have been fired", [Step(f"fire the event {name}", work)], changes)


def fire_master(ctx: Context, name: str, **kwargs: Any) -> Plan:
    """The same as ``send``."""
    return send(ctx, name, **kwargs)


def wait(ctx: Context, name: str, sfun: Any = None, data: Any = None) -> Plan:
    """Sends the event only when a state that it watches changed."""
    return Plan.unchanged("")


def mod_watch(ctx: Context, name: str, sfun: Any = None, **kwargs: Any) -> Plan:
    """``send``, since a watched state changed. ``sfun``: the function that was declared."""
    return send(ctx, name, **kwargs)
