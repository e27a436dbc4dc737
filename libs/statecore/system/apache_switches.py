"""Enables and disables sites, modules and configuration files of Apache on Debian, for the states ``apache_*``."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError, NotAvailable
from statecore.model.types import Outcome, Plan, Step


def plan_of(ctx: Context, word: str, label: str, name: str, *, wanted: bool) -> Plan:
    """Return the plan of an ``apache_*`` state that enables (``wanted``) or disables the site, module or configuration
    file ``name`` of Apache.

    The plan has no step if nothing is to be done, and fails on a host without Apache's programs. ``word`` is the kind
    in names of execution functions ("site", "mod", "conf"), ``label`` the kind in Salt's comments.
    """
    verb = "enable" if wanted else "disable"
    try:
        if ctx.call(f"apache.check_{word}_enabled", name) == wanted:
            return Plan.unchanged(f"{name} already {verb}d.")
    except NotAvailable as error:
        return Plan.failed(str(error))
    changes = {"old": None, "new": name} if wanted else {"old": name, "new": None}

    def work() -> Outcome:
        failed = f"Failed to {verb} {name} Apache {label}"
        try:
            status = ctx.call(f"apache.a2{'en' if wanted else 'dis'}{word}", name)["Status"]
        except CommandError as error:
            return Outcome(f"{failed} ({error})", ok=False)
        if isinstance(status, str) and f"{verb}d" in status:
            return Outcome("", changes)
        return Outcome(failed + (f" ({status})" if isinstance(status, str) else ""), ok=False)

    return Plan.change(
        f"Apache {label} {name} is set to be {verb}d.", [Step(f"{verb} the {label} {name} of Apache", work)], changes
    )
