"""Salt's ``timezone`` state: the time zone of the host."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.types import Outcome, Plan, Step


def system(ctx: Context, name: str, utc: bool = True) -> Plan:
    """Set the host's time zone to ``name``, such as ``Europe/Berlin``.

    ``utc``: True: also set the hardware clock to UTC. False: do not change the clock's setting.
    """
    try:
        same = ctx.call("timezone.zone_compare", name)
        in_utc = ctx.call("timezone.get_hwclock") not in ("localtime", "LOCAL")
    except (CommandError, InvocationError) as error:
        return Plan.failed(f"Unable to compare desired timezone '{name}' to system timezone: {error}")
    change_clock = bool(utc and not in_utc)
    if same and not change_clock:
        kept = [f"Timezone {name} already set", *([f"UTC already set to {name}"] if utc else [])]
        return Plan.unchanged(", ".join(kept))
    would = [
        *([] if same else [f"Timezone {name} needs to be set"]),
        *([f"UTC needs to be set to {utc}"] if change_clock else []),
    ]

    def work() -> Outcome:
        lines, changes = [], dict[str, object]()
        if not same:
            ctx.call("timezone.set_zone", name)
            changes["timezone"] = name
            lines.append(f"Set timezone {name}")
        if change_clock:
            if not ctx.call("timezone.set_hwclock", "UTC"):
                return Outcome(", ".join([*lines, f"Failed to set UTC to {utc}"]), changes, ok=False)
            changes["utc"] = utc
            lines.append(f"Set UTC to {utc}")
        return Outcome(", ".join(lines), changes)

    return Plan.change(", ".join(would), [Step(f"set the time zone {name}", work)])
