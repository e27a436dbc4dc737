"""Services as states (Salt's ``service`` state): running or dead now, started at boot or not, masked or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from statecore.builtin.states.service.boot import (
    OFFLINE,
    SYSTEMD_ONLY,
    absent,
    absent_would,
    by_systemd,
    given_to_systemd,
    is_offline,
    masking,
    telling,
    toggle_plan,
)
from statecore.builtin.states.service.goals import Goal, pause, plan, seconds, truth
from statecore.model.context import Context
from statecore.model.errors import InvocationError, NotAvailable
from statecore.model.types import Outcome, Plan, Step


def available(ctx: Context) -> str | None:
    """None where a service module serves the host."""
    try:
        ctx.functions["service.start"]
    except NotAvailable as missing:
        return f"No service execution module loaded: {missing}"
    return None


def running(
    ctx: Context,
    name: str,
    enable: Any = None,
    sig: str | None = None,
    init_delay: Any = None,
    no_block: bool = False,
    unmask: bool = False,
    unmask_runtime: bool = False,
    wait: Any = None,
    reload: bool = False,
    full_restart: bool = False,
    force: bool = False,
    timeout: Any = None,
    enabled: Any = None,
) -> Plan:
    """A service that runs.

    enable
        True: and is started at boot; False: and is not; else that is left as it is
    init_delay, wait
        seconds that are waited behind a start; that systemd has for a service that is about to run
    sig
        the service runs if a process has this text in its command line
    reload, full_restart, force
        what a ``watch`` does: reload it, stop and start it, reload it even by force; else it is restarted
    """
    given = given_to_systemd(no_block, unmask, unmask_runtime)
    try:
        delay, waiting = seconds("init_delay", init_delay), seconds("wait", wait)
    except InvocationError as error:
        return Plan.failed(str(error))
    foreign = ("timeout",) if timeout else ()
    goal = Goal(ctx, name, "start", truth(enable), sig, delay, given, waiting or 0.0, foreign)
    return plan(goal, misspelt=enabled is not None)


def dead(
    ctx: Context,
    name: str,
    enable: Any = None,
    sig: str | None = None,
    init_delay: Any = None,
    no_block: bool = False,
    timeout: Any = None,
    reload: bool = False,
    full_restart: bool = False,
    force: bool = False,
    enabled: Any = None,
) -> Plan:
    """A service that does not run. Arguments as for running."""
    given = given_to_systemd(no_block, False, False)
    try:
        delay = seconds("init_delay", init_delay)
    except InvocationError as error:
        return Plan.failed(str(error))
    goal = Goal(ctx, name, "stop", truth(enable), sig, delay, given, foreign=("timeout",) if timeout else ())
    return plan(goal, misspelt=enabled is not None)


def enabled(ctx: Context, name: str, unmask: bool = False, unmask_runtime: bool = False) -> Plan:
    """A service that is started at boot, whether it runs now or not."""
    if not ctx.call("service.available", name):
        step = Step(f"enable {name}", lambda: Outcome(absent(name), ok=False))
        return Plan.change(absent_would(name, "enabled"), [step])
    return toggle_plan(ctx, name, given_to_systemd(False, unmask, unmask_runtime), wanted=True)


def disabled(ctx: Context, name: str) -> Plan:
    """A service that is not started at boot, whether it runs now or not."""
    if not ctx.call("service.available", name):
        return Plan.unchanged(absent(name))
    return toggle_plan(ctx, name, {}, wanted=False)


def masked(ctx: Context, name: str, runtime: bool = False) -> Plan:
    """A service that nothing can start; ``runtime``: until the next boot."""
    return masking(ctx, name, runtime=runtime, wanted=True)


def unmasked(ctx: Context, name: str, runtime: bool = False) -> Plan:
    """A service without a mask; ``runtime``: the mask that lasts until the next boot."""
    return masking(ctx, name, runtime=runtime, wanted=False)


def mod_watch(
    ctx: Context,
    name: str,
    sfun: str = "",
    sig: str | None = None,
    reload: bool = False,
    full_restart: bool = False,
    init_delay: Any = None,
    force: bool = False,
    **arguments: Any,
) -> Plan:
    """Something watched has changed: a running service is restarted (or reloaded), one that is to be dead is stopped."""
    if sfun not in ("running", "dead"):
        return Plan.failed(f"Unable to trigger watch for service.{sfun}")
    if is_offline(ctx):
        return Plan.unchanged(OFFLINE)
    try:
        delay = seconds("init_delay", init_delay)
    except InvocationError as error:
        return Plan.failed(str(error))
    runs = ctx.call("service.available", name) and ctx.call("service.status", name, sig)
    if sfun == "dead":
        if not runs:
            return Plan.unchanged("Service is already stopped")
        action = _Action("stop", "stop", "stopped")
    else:
        action = _reaction(ctx, runs=bool(runs), reload=reload, full_restart=full_restart, force=force)
    given = {key: arguments[key] for key in SYSTEMD_ONLY if arguments.get(key) and by_systemd(ctx)}

    def work() -> Outcome:
        if action.function == "start":
            # What its script, or systemd, still believes of it is cleared away.
            ctx.call("service.stop", name)
        kept = {key: value for key, value in given.items() if action.function != "stop" or key == "no_block"}
        done = bool(ctx.call(f"service.{action.function}", name, **kept))
        pause(delay)
        comment = f"Service {action.done}" if done else f"Failed to {action.verb} the service"
        return Outcome(comment, {name: done}, ok=done)

    return Plan.change(f"Service is set to be {action.done}", [Step(f"{action.verb} {name}", telling(work))])


# ----------------------------------------------------------------------------------------------- what a watch does


@dataclass(frozen=True, slots=True)
class _Action:
    """What a watch does: the function of the service module, and its names in comments."""

    function: str
    verb: str
    done: str


def _reaction(ctx: Context, *, runs: bool, reload: bool, full_restart: bool, force: bool) -> _Action:
    if not runs:
        return _Action("start", "start", "started")
    if reload and force and "service.force_reload" in ctx.functions:
        return _Action("force_reload", "forcefully reload", "forcefully reloaded")
    if reload and "service.reload" in ctx.functions:
        return _Action("reload", "reload", "reloaded")
    if full_restart and "service.full_restart" in ctx.functions:
        return _Action("full_restart", "fully restart", "fully restarted")
    return _Action("restart", "restart", "restarted")
