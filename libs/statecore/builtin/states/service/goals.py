"""The states ``service.running`` and ``service.dead``: start or stop a service, and set whether it starts at boot."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from statecore.builtin.states.service.boot import (
    OFFLINE,
    absent,
    absent_would,
    by_systemd,
    is_offline,
    masking,
    reporting_errors,
    toggle,
    toggle_plan,
    with_notes,
)
from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.model.types import Outcome, Plan, Step
from statecore.model.values import to_float

_TRUE = ("true", "yes", "on", "1")


@dataclass(frozen=True, slots=True)
class Goal:
    """The checked arguments of ``service.running`` or ``service.dead``: the service, and its wanted status now and at boot."""

    ctx: Context
    name: str
    #: Function of the service module: start or stop.
    verb: str
    enable: bool | None
    sig: str | None
    init_delay: float | None
    given: Mapping[str, object]
    #: Seconds to wait while systemd is activating the service.
    wait: float = 0.0
    #: Given arguments that only other systems support.
    foreign: tuple[str, ...] = ()

    def status(self) -> bool:
        """Return True if the service runs now."""
        waiting = {"wait": self.wait} if self.wait and by_systemd(self.ctx) else {}
        return bool(self.ctx.call("service.status", self.name, self.sig, **waiting))

    def enabled(self) -> bool:
        """Return True if the service starts at boot."""
        return bool(self.ctx.call("service.enabled", self.name))


@dataclass(frozen=True, slots=True)
class _Words:
    """Salt's comments for ``service.running`` or ``service.dead``; {} stands for the service's name."""

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


def plan(goal: Goal, *, has_enabled: bool) -> Plan:
    """Return the plan that starts or stops the service. With ``has_enabled`` (the user gave the argument ``enabled``,
    which does not exist), return a failed plan.
    """
    ctx, name, words = goal.ctx, goal.name, _WORDS[goal.verb]
    if has_enabled:
        return Plan.failed(f'Service {name} uses non-existent option "enabled".  Perhaps "enable" option was intended?')
    if is_offline(ctx):
        if goal.enable is None or not ctx.call("service.available", name):
            return Plan.unchanged(OFFLINE)
        return with_notes(toggle_plan(ctx, name, {}, wanted=goal.enable), OFFLINE)
    if not ctx.call("service.available", name):
        # A missing service counts as dead. One that is to run may be installed by an earlier state of this run.
        gone = Outcome(absent(name), ok=goal.verb == "stop")
        return Plan.change(absent_would(name, words.absent), [Step(f"{goal.verb} {name}", lambda: gone)])
    unsupported = [*(() if by_systemd(ctx) else goal.given), *goal.foreign]
    notes = [f"The '{key}' argument is not supported by this platform" for key in unsupported]
    before, at_boot = goal.status(), goal.enabled()
    if before is (goal.verb == "start"):
        if goal.enable is None or goal.enable is at_boot:
            if (unmasking := _unmasking(goal)) is not None:
                return with_notes(unmasking, *notes, words.already.format(name))
            return Plan.unchanged(words.already.format(name), notes)
        return toggle_plan(ctx, name, {}, wanted=goal.enable)
    step = Step(f"{goal.verb} {name}", reporting_errors(lambda: _work(goal, before=before, at_boot=at_boot)))
    return Plan.change(words.would.format(name), [step], notes=notes)


def _work(goal: Goal, *, before: bool, at_boot: bool) -> Outcome:
    ctx, name, words = goal.ctx, goal.name, _WORDS[goal.verb]
    given = goal.given if by_systemd(ctx) else {}
    if not ctx.call(f"service.{goal.verb}", name, **given):
        outcome = Outcome(words.failed.format(name), ok=False)
        return _toggled(goal, outcome, runs=goal.verb == "stop")
    pause(goal.init_delay)
    after = goal.status()
    ok = after is (goal.verb == "start")
    changed = after is not before or goal.enabled() is not at_boot
    outcome = Outcome((words.done if ok else words.failed).format(name), {name: after} if changed else {}, ok=ok)
    outcome = _toggled(goal, outcome, runs=after)
    if goal.init_delay and goal.verb == "start":
        delayed = f"{outcome.comment}\nDelayed return for {goal.init_delay} seconds"
        return Outcome(delayed, outcome.changes, ok=outcome.ok)
    return outcome


def _toggled(goal: Goal, outcome: Outcome, *, runs: bool) -> Outcome:
    """Enable or disable the service at boot after it was started or stopped. Return the Outcome of both, with the
    comment about the boot setting.

    Without the argument ``enable``, return ``outcome``, that of the start or stop, unchanged.
    """
    if goal.enable is None:
        return outcome
    toggled = toggle(goal.ctx, goal.name, {}, runs=runs, wanted=goal.enable)
    return Outcome(toggled.comment, {**outcome.changes, **toggled.changes}, ok=outcome.ok and toggled.ok)


def _unmasking(goal: Goal) -> Plan | None:
    """Return a plan that removes the mask of a running service; None if this is not requested."""
    if not (goal.given.get("unmask") and by_systemd(goal.ctx)):
        return None
    return masking(goal.ctx, goal.name, runtime=bool(goal.given.get("unmask_runtime")), wanted=False)


def seconds(argument: str, value: object) -> float | None:
    """Return a number of seconds from the argument called ``argument``; None for an empty value. Raise InvocationError
    if the value is not a number.
    """
    if value in (None, "", False):
        return None
    try:
        return to_float(value)
    except (TypeError, ValueError):
        raise InvocationError(f"{argument} must be a number of seconds, not {value!r}") from None


def pause(seconds: float | None) -> None:
    """Sleep for a number of seconds; not at all for None."""
    if seconds:
        time.sleep(float(seconds))


def truth(value: object) -> bool | None:
    """Return a boolean from a YAML value; None stays None.

    Texts "true", "yes", "on" and "1" are True, all others False.
    """
    return value.strip().lower() in _TRUE if isinstance(value, str) else None if value is None else bool(value)
