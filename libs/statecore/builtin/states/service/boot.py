"""Services at boot: enable, disable, mask and unmask; and differences between service managers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step

#: Arguments that only systemd knows.
SYSTEMD_ONLY = ("no_block", "unmask", "unmask_runtime")

OFFLINE = "Running in OFFLINE mode. Nothing to do"

#: Whether the service runs now (None: its status is as wanted) -> end of the comment about the boot.
_STANDS: Mapping[bool | None, str] = {
    True: "and is running",
    None: "and is in the desired state",
    False: "and is dead",
}

#: (enable, runs) -> end of the comment of a failure.
_FAILED: Mapping[tuple[bool, bool | None], str] = {
    (True, True): "to start at boot, but the service is running",
    (True, None): "to start at boot, but the service was already running",
    (True, False): "to start at boot, and the service is dead",
    (False, True): "to not start at boot, and is running",
    (False, None): "to not start at boot, but the service was already running",
    (False, False): "to not start at boot, and the service is dead",
}


def toggle_plan(ctx: Context, name: str, given: Mapping[str, object], *, wanted: bool) -> Plan:
    """Return a plan that enables (``wanted``) or disables a service at boot; a plan without steps if it already is so."""
    word = "enabled" if wanted else "disabled"
    if bool(ctx.call("service.enabled", name)) is wanted:
        return Plan.unchanged(f"Service {name} is already {word}, {_STANDS[None]}")
    step = Step(
        f"{'enable' if wanted else 'disable'} {name}", lambda: toggle(ctx, name, given, runs=None, wanted=wanted)
    )
    return Plan.change(f"Service {name} set to be {word}", [step])


def toggle(ctx: Context, name: str, given: Mapping[str, object], *, runs: bool | None, wanted: bool) -> Outcome:
    """Enable (``wanted``) or disable a service at boot, and return the outcome: failed if the service manager fails.

    ``runs`` is for the comment only: whether the service was started (True) or stopped (False) before; None if neither
    was necessary.
    """
    word = "enabled" if wanted else "disabled"
    before = bool(ctx.call("service.enabled", name))
    if before is wanted:
        return Outcome(f"Service {name} is already {word}, {_STANDS[runs]}")
    try:
        done = ctx.call("service.enable" if wanted else "service.disable", name, **(given if by_systemd(ctx) else {}))
        reason = ""
    except CommandError as error:
        done, reason = False, f". Additional information follows:\n\n{error}"
    if not done:
        return Outcome(f"Failed when setting service {name} {_FAILED[wanted, runs]}{reason}", ok=False)
    changed = bool(ctx.call("service.enabled", name)) is not before
    return Outcome(f"Service {name} has been {word}, {_STANDS[runs]}", {name: True} if changed else {})


def masking(ctx: Context, name: str, *, runtime: bool, wanted: bool) -> Plan:
    """Return a plan that masks (``wanted``) or unmasks a service. It fails on a host without systemd."""
    if not by_systemd(ctx):
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

    return Plan.change(f"Service {name} would be {action}", [Step(f"{verb} {name}", reporting_errors(work))], changes)


def reporting_errors(work: Callable[[], Outcome]) -> Callable[[], Outcome]:
    """Return a function that calls ``work``, the function of a ``service`` step. If the service manager fails, it
    returns a failed Outcome with the error as comment.
    """

    def reported() -> Outcome:
        try:
            return work()
        except CommandError as error:
            return Outcome(str(error), ok=False)

    return reported


def with_notes(plan: Plan, *notes: str) -> Plan:
    """Return the plan of a ``service`` state with additional lines before its comment."""
    return Plan(plan.result, plan.comment, plan.changes, plan.steps, (*notes, *plan.notes), plan.warnings)


def is_offline(ctx: Context) -> bool:
    """Return True if the host has no running service manager. Then services can only be enabled and disabled."""
    return "service.offline" in ctx.functions and bool(ctx.call("service.offline"))


def by_systemd(ctx: Context) -> bool:
    """Return True if systemd manages the host's services."""
    return "service.masked" in ctx.functions


def given_to_systemd(no_block: bool, unmask: bool, unmask_runtime: bool) -> dict[str, bool]:
    """Map of the arguments for systemd (no_block, unmask, unmask_runtime) that are set."""
    pairs = zip(SYSTEMD_ONLY, (no_block, unmask, unmask_runtime), strict=True)
    return {key: True for key, value in pairs if value}


def absent(name: str) -> str:
    """Return Salt's comment for a service that does not exist."""
    return f"The named service {name} is not available"


def absent_would(name: str, what: str) -> str:
    """Return Salt's comment in test mode for a service that does not exist yet.

    ``what``: participle such as "started".
    """
    return f"Service {name} not present; if created in this state run, it would have been {what}"
