"""Services as states (Salt's ``service`` state): running or dead now, started at boot or not, masked or not."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from statecore.context import Context
from statecore.errors import CommandError, NotAvailable
from statecore.types import Outcome, Plan, Step

#: Arguments that only systemd knows.
_SYSTEMD_ONLY = ("no_block", "unmask", "unmask_runtime")

_TRUE = ("true", "yes", "on", "1")


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
    init_delay: float | None = None,
    no_block: bool = False,
    unmask: bool = False,
    unmask_runtime: bool = False,
    wait: float | None = None,
    reload: bool = False,
    full_restart: bool = False,
    force: bool = False,
    timeout: float | None = None,
    enabled: Any = None,
) -> Plan:
    """A service that runs.

    enable
        True: and is started at boot; False: and is not; else that is left as it is
    sig
        the service runs if a process has this text in its command line
    reload, full_restart, force
        what a ``watch`` does: reload it, stop and start it, reload it even by force; else it is restarted
    """
    goal = _Goal(ctx, name, "start", _truth(enable), sig, init_delay, _given(no_block, unmask, unmask_runtime))
    return _plan(goal, misspelt=enabled is not None)


def dead(
    ctx: Context,
    name: str,
    enable: Any = None,
    sig: str | None = None,
    init_delay: float | None = None,
    no_block: bool = False,
    timeout: float | None = None,
    reload: bool = False,
    full_restart: bool = False,
    force: bool = False,
    enabled: Any = None,
) -> Plan:
    """A service that does not run. Arguments as for running."""
    goal = _Goal(ctx, name, "stop", _truth(enable), sig, init_delay, _given(no_block, False, False))
    return _plan(goal, misspelt=enabled is not None)


def enabled(ctx: Context, name: str, unmask: bool = False, unmask_runtime: bool = False) -> Plan:
    """A service that is started at boot, whether it runs now or not."""
    if not ctx.call("service.available", name):
        step = Step(f"enable {name}", lambda: Outcome(_absent(name), ok=False))
        return Plan.change(_absent_would(name, "enabled"), [step])
    return _toggle_plan(ctx, name, _given(False, unmask, unmask_runtime), wanted=True)


def disabled(ctx: Context, name: str) -> Plan:
    """A service that is not started at boot, whether it runs now or not."""
    if not ctx.call("service.available", name):
        return Plan.unchanged(_absent(name))
    return _toggle_plan(ctx, name, {}, wanted=False)


def masked(ctx: Context, name: str, runtime: bool = False) -> Plan:
    """A service that nothing can start; ``runtime``: until the next boot."""
    return _masking(ctx, name, runtime=runtime, wanted=True)


def unmasked(ctx: Context, name: str, runtime: bool = False) -> Plan:
    """A service without a mask; ``runtime``: the mask that lasts until the next boot."""
    return _masking(ctx, name, runtime=runtime, wanted=False)


def mod_watch(
    ctx: Context,
    name: str,
    sfun: str = "",
    sig: str | None = None,
    reload: bool = False,
    full_restart: bool = False,
    init_delay: float | None = None,
    force: bool = False,
    **arguments: Any,
) -> Plan:
    """Something watched has changed: a running service is restarted (or reloaded), one that is to be dead is stopped."""
    if sfun not in ("running", "dead"):
        return Plan.failed(f"Unable to trigger watch for service.{sfun}")
    runs = ctx.call("service.available", name) and ctx.call("service.status", name, sig)
    if sfun == "dead":
        if not runs:
            return Plan.unchanged("Service is already stopped")
        action = _Action("stop", "stop", "stopped")
    else:
        action = _reaction(ctx, runs=bool(runs), reload=reload, full_restart=full_restart, force=force)
    given = {key: arguments[key] for key in _SYSTEMD_ONLY if arguments.get(key) and _systemd(ctx)}

    def work() -> Outcome:
        if action.function == "start":
            # What its script, or systemd, still believes of it is cleared away.
            ctx.call("service.stop", name)
        kept = {key: value for key, value in given.items() if action.function != "stop" or key == "no_block"}
        done = bool(ctx.call(f"service.{action.function}", name, **kept))
        _pause(init_delay)
        comment = f"Service {action.done}" if done else f"Failed to {action.verb} the service"
        return Outcome(comment, {name: done}, ok=done)

    return Plan.change(f"Service is set to be {action.done}", [Step(f"{action.verb} {name}", _telling(work))])


# ------------------------------------------------------------------------------------------------------------- running and dead


@dataclass(frozen=True, slots=True)
class _Goal:
    """What running or dead is asked for."""

    ctx: Context
    name: str
    #: start or stop
    verb: str
    enable: bool | None
    sig: str | None
    init_delay: float | None
    given: Mapping[str, Any]

    def status(self) -> bool:
        """Whether it runs now."""
        return bool(self.ctx.call("service.status", self.name, self.sig))

    def enabled(self) -> bool:
        """Whether it is started at boot now."""
        return bool(self.ctx.call("service.enabled", self.name))


@dataclass(frozen=True, slots=True)
class _Words:
    """Salt's sentences of running and of dead."""

    already: str
    would: str
    done: str
    failed: str
    absent: str


_WORDS: Mapping[str, _Words] = {
    "start": _Words(
        "The service {} is already running",
        "Service {} is set to start",
        "Started service {}",
        "Service {} failed to start",
        "started",
    ),
    "stop": _Words(
        "The service {} is already dead",
        "Service {} is set to be killed",
        "Service {} was killed",
        "Service {} failed to die",
        "stopped",
    ),
}


def _plan(goal: _Goal, *, misspelt: bool) -> Plan:
    ctx, name, words = goal.ctx, goal.name, _WORDS[goal.verb]
    if misspelt:
        return Plan.failed(f'Service {name} uses non-existent option "enabled".  Perhaps "enable" option was intended?')
    if not ctx.call("service.available", name):
        # A service that is not there is as dead as can be; but one that is to run may come with a package of this run.
        absent = Outcome(_absent(name), ok=goal.verb == "stop")
        return Plan.change(_absent_would(name, words.absent), [Step(f"{goal.verb} {name}", lambda: absent)])
    notes = [f"The '{key}' argument is not supported by this platform" for key in goal.given if not _systemd(ctx)]
    before, at_boot = goal.status(), goal.enabled()
    if before is (goal.verb == "start"):
        if goal.enable is None or goal.enable is at_boot:
            return Plan.unchanged(words.already.format(name), notes)
        return _toggle_plan(ctx, name, {}, wanted=goal.enable)
    step = Step(f"{goal.verb} {name}", _telling(lambda: _work(goal, before=before, at_boot=at_boot)))
    return Plan.change(words.would.format(name), [step], notes=notes)


def _work(goal: _Goal, *, before: bool, at_boot: bool) -> Outcome:
    ctx, name, words = goal.ctx, goal.name, _WORDS[goal.verb]
    given = goal.given if _systemd(ctx) else {}
    if not ctx.call(f"service.{goal.verb}", name, **given):
        outcome = Outcome(words.failed.format(name), ok=False)
        return _toggled(goal, outcome, runs=goal.verb == "stop")
    _pause(goal.init_delay)
    after = goal.status()
    ok = after is (goal.verb == "start")
    changed = after is not before or goal.enabled() is not at_boot
    outcome = Outcome((words.done if ok else words.failed).format(name), {name: after} if changed else {}, ok=ok)
    outcome = _toggled(goal, outcome, runs=after)
    if goal.init_delay and goal.verb == "start":
        delayed = f"{outcome.comment}\nDelayed return for {goal.init_delay} seconds"
        return Outcome(delayed, outcome.changes, ok=outcome.ok)
    return outcome


def _toggled(goal: _Goal, outcome: Outcome, *, runs: bool) -> Outcome:
    """What is done about the boot after the service was started or stopped; its comment replaces the other."""
    if goal.enable is None:
        return outcome
    toggled = _toggle(goal.ctx, goal.name, {}, runs=runs, wanted=goal.enable)
    return Outcome(toggled.comment, {**outcome.changes, **toggled.changes}, ok=outcome.ok and toggled.ok)


# -------------------------------------------------------------------------------------------------------------------- at boot

#: How a comment about the boot ends, by whether the service runs now (None: it is as it should be).
_STANDS: Mapping[bool | None, str] = {
    True: "and is running",
    None: "and is in the desired state",
    False: "and is dead",
}

#: (enable, runs) -> how the comment of a failure ends.
_FAILED: Mapping[tuple[bool, bool | None], str] = {
    (True, True): "to start at boot, but the service is running",
    (True, None): "to start at boot, but the service was already running",
    (True, False): "to start at boot, and the service is dead",
    (False, True): "to not start at boot, and is running",
    (False, None): "to not start at boot, but the service was already running",
    (False, False): "to not start at boot, and the service is dead",
}


def _toggle_plan(ctx: Context, name: str, given: Mapping[str, Any], *, wanted: bool) -> Plan:
    word = "enabled" if wanted else "disabled"
    if bool(ctx.call("service.enabled", name)) is wanted:
        return Plan.unchanged(f"Service {name} is already {word}, {_STANDS[None]}")
    step = Step(
        f"{'enable' if wanted else 'disable'} {name}", lambda: _toggle(ctx, name, given, runs=None, wanted=wanted)
    )
    return Plan.change(f"Service {name} set to be {word}", [step])


def _toggle(ctx: Context, name: str, given: Mapping[str, Any], *, runs: bool | None, wanted: bool) -> Outcome:
    word = "enabled" if wanted else "disabled"
    before = bool(ctx.call("service.enabled", name))
    if before is wanted:
        return Outcome(f"Service {name} is already {word}, {_STANDS[runs]}")
    try:
        done = ctx.call("service.enable" if wanted else "service.disable", name, **(given if _systemd(ctx) else {}))
        reason = ""
    except CommandError as error:
        done, reason = False, f". Additional information follows:\n\n{error}"
    if not done:
        return Outcome(f"Failed when setting service {name} {_FAILED[wanted, runs]}{reason}", ok=False)
    changed = bool(ctx.call("service.enabled", name)) is not before
    return Outcome(f"Service {name} has been {word}, {_STANDS[runs]}", {name: True} if changed else {})


# ----------------------------------------------------------------------------------------------------------------------- parts


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


def _masking(ctx: Context, name: str, *, runtime: bool, wanted: bool) -> Plan:
    if not _systemd(ctx):
        return Plan.failed("Service masking not available on this minion")
    kind = "runtime masked" if runtime else "masked"
    action = ("runtime " if runtime else "") + ("masked" if wanted else "unmasked")
    if bool(ctx.call("service.masked", name, runtime)) is wanted:
        return Plan.unchanged(f"Service {name} {'is' if wanted else 'was'} already {action}")
    changes = {kind: {"old": not wanted, "new": wanted}}
    verb = "mask" if wanted else "unmask"

    def work() -> Outcome:
        ctx.call(f"service.{verb}", name, runtime)
        if bool(ctx.call("service.masked", name, runtime)) is wanted:
            return Outcome(f"Service {name} was {action}", changes)
        return Outcome(f"Failed to {verb} service {name}", ok=False)

    return Plan.change(f"Service {name} would be {action}", [Step(f"{verb} {name}", _telling(work))], changes)


def _telling(work: Callable[[], Outcome]) -> Callable[[], Outcome]:
    """The step whose comment, when the init system refuses, is what that says."""

    def told() -> Outcome:
        try:
            return work()
        except CommandError as error:
            return Outcome(str(error), ok=False)

    return told


def _systemd(ctx: Context) -> bool:
    return "service.masked" in ctx.functions


def _given(no_block: bool, unmask: bool, unmask_runtime: bool) -> dict[str, bool]:
    """Those of systemd's own arguments that are asked for."""
    pairs = zip(_SYSTEMD_ONLY, (no_block, unmask, unmask_runtime), strict=True)
    return {key: True for key, value in pairs if value}


def _pause(seconds: float | None) -> None:
    if seconds:
        time.sleep(float(seconds))


def _truth(value: Any) -> bool | None:
    return value.strip().lower() in _TRUE if isinstance(value, str) else None if value is None else bool(value)


def _absent(name: str) -> str:
    return f"The named service {name} is not available"


def _absent_would(name: str, what: str) -> str:
    return f"Service {name} not present; if created in this state run, it would have been {what}"
