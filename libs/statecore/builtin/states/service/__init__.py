"""Salt's ``service`` states: services that run or not, start at boot or not, or are masked."""

from __future__ import annotations

from dataclasses import dataclass

from statecore.builtin.states.service.boot import (
    OFFLINE,
    SYSTEMD_ONLY,
    absent,
    absent_would,
    by_systemd,
    given_to_systemd,
    is_offline,
    masking,
    reporting_errors,
    toggle_plan,
)
from statecore.builtin.states.service.goals import Goal, pause, plan, seconds, truth
from statecore.model.context import Context
from statecore.model.errors import InvocationError, NotAvailable
from statecore.model.types import Outcome, Plan, Step


def available(ctx: Context) -> str | None:
    """Return None if a ``service`` execution module supports the host, else the reason as text."""
    try:
        ctx.functions["service.start"]
    except NotAvailable as missing:
        return f"No service execution module loaded: {missing}"
    return None


def running(
    ctx: Context,
    name: str,
    enable: object = None,
    sig: str | None = None,
    init_delay: object = None,
    no_block: bool = False,
    unmask: bool = False,
    unmask_runtime: bool = False,
    wait: object = None,
    reload: bool = False,
    full_restart: bool = False,
    force: bool = False,
    timeout: object = None,
    enabled: object = None,
) -> Plan:
    """Start a service that is not running. The state fails if the service does not exist or cannot be started.

    enable
        True: start the service at boot. False: do not. Default: leave this setting unchanged.
    init_delay
        seconds to wait after the start
    wait
        seconds to wait for a service that systemd is starting
    sig
        text in the command line of a process: the service runs if such a process exists
    no_block, unmask, unmask_runtime
        for systemd only: do not wait for the start; remove a mask before it
    reload, full_restart, force
        action when a watched state changes: reload; stop and start; reload by force. Default: restart.
    """
    given = given_to_systemd(no_block, unmask, unmask_runtime)
    try:
        delay, waiting = seconds("init_delay", init_delay), seconds("wait", wait)
    except InvocationError as error:
        return Plan.failed(str(error))
    foreign = ("timeout",) if timeout else ()
    goal = Goal(ctx, name, "start", truth(enable), sig, delay, given, waiting or 0.0, foreign)
    return plan(goal, has_enabled=enabled is not None)


def dead(
    ctx: Context,
    name: str,
    enable: object = None,
    sig: str | None = None,
    init_delay: object = None,
    no_block: bool = False,
    timeout: object = None,
    reload: bool = False,
    full_restart: bool = False,
    force: bool = False,
    enabled: object = None,
) -> Plan:
    """Stop a service that is running. Nothing happens if it does not run. Arguments as in ``service.running``."""
    given = given_to_systemd(no_block, False, False)
    try:
        delay = seconds("init_delay", init_delay)
    except InvocationError as error:
        return Plan.failed(str(error))
    goal = Goal(ctx, name, "stop", truth(enable), sig, delay, given, foreign=("timeout",) if timeout else ())
    return plan(goal, has_enabled=enabled is not None)


def enabled(ctx: Context, name: str, unmask: bool = False, unmask_runtime: bool = False) -> Plan:
    """Start a service at boot. It is neither started nor stopped now. The state fails if the service does not exist."""
    if not ctx.call("service.available", name):
        step = Step(f"enable {name}", lambda: Outcome(absent(name), ok=False))
        return Plan.change(absent_would(name, "enabled"), [step])
    return toggle_plan(ctx, name, given_to_systemd(False, unmask, unmask_runtime), wanted=True)


def disabled(ctx: Context, name: str) -> Plan:
    """Do not start a service at boot. It is neither started nor stopped now."""
    if not ctx.call("service.available", name):
        return Plan.unchanged(absent(name))
    return toggle_plan(ctx, name, {}, wanted=False)


def masked(ctx: Context, name: str, runtime: bool = False) -> Plan:
    """Mask a systemd service, so that nothing can start it. ``runtime``: until the next boot."""
    return masking(ctx, name, runtime=runtime, wanted=True)


def unmasked(ctx: Context, name: str, runtime: bool = False) -> Plan:
    """Remove the mask of a systemd service. ``runtime``: remove the mask that lasts until the next boot."""
    return masking(ctx, name, runtime=runtime, wanted=False)


def mod_watch(
    ctx: Context,
    name: str,
    sfun: str = "",
    sig: str | None = None,
    reload: bool = False,
    full_restart: bool = False,
    init_delay: object = None,
    force: bool = False,
    **arguments: object,
) -> Plan:
    """Restart or reload a service of ``service.running``, or stop a service of ``service.dead``, because a watched
    state changed.
    """
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
        action = _watch_action(ctx, runs=bool(runs), reload=reload, full_restart=full_restart, force=force)
    given = {key: arguments[key] for key in SYSTEMD_ONLY if arguments.get(key) and by_systemd(ctx)}

    def work() -> Outcome:
        if action.function == "start":
            # A service that died may still count as started; stop clears this status.
            ctx.call("service.stop", name)
        kept = {key: value for key, value in given.items() if action.function != "stop" or key == "no_block"}
        done = bool(ctx.call(f"service.{action.function}", name, **kept))
        pause(delay)
        comment = f"Service {action.done}" if done else f"Failed to {action.verb} the service"
        return Outcome(comment, {name: done}, ok=done)

    return Plan.change(f"Service is set to be {action.done}", [Step(f"{action.verb} {name}", reporting_errors(work))])


# ----------------------------------------------------------------------------------------------- what a watch does


@dataclass(frozen=True, slots=True)
class _Action:
    """The action of a ``service`` state when a watched state changed: the function of the service module, and words for
    comments.
    """

    function: str
    verb: str
    done: str


def _watch_action(ctx: Context, *, runs: bool, reload: bool, full_restart: bool, force: bool) -> _Action:
    if not runs:
        return _Action("start", "start", "started")
    if reload and force and "service.force_reload" in ctx.functions:
        return _Action("force_reload", "forcefully reload", "forcefully reloaded")
    if reload and "service.reload" in ctx.functions:
        return _Action("reload", "reload", "reloaded")
    if full_restart and "service.full_restart" in ctx.functions:
        return _Action("full_restart", "fully restart", "fully restarted")
    return _Action("restart", "restart", "restarted")
