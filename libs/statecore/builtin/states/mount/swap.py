"""``mount.swap``."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step


def swap(ctx: Context, name: str, persist: bool = True, config: str = "/etc/fstab") -> Plan:
    """A device or file that is swapped to; ``persist``: at the next start, too (an entry of ``config``)."""
    place = ctx.host.path(name)
    # Of a device with more names, /proc/swaps has the one that the links lead to.
    own = name if place == ctx.host.path(name, follow=False) else f"/{place.relative_to(ctx.host.root)}"
    active = own in ctx.call("mount.swaps")
    entry = ("none", name, "swap", ["defaults"], 0, 0, config)
    known = ctx.call("mount.fstab", config)
    other = known.get("none", {})
    # Salt leaves a file alone in which this device has no mount point, and yet another use.
    ours = persist and not (other.get("device") == name and other.get("fstype") != "swap")
    status = ctx.call("mount.set_fstab", *entry, test=True) if ours else "present"
    told = f"Swap {name} already active" if active else f"Swap {name} is set to be activated"
    if active and status == "present":
        return Plan.unchanged(told)
    if status != "present":
        told = f"Swap {name} is set to be added to the fstab" + ("" if active else " and to be activated")

    def work() -> Outcome:
        comment, changes = f"Swap {name} already active", {}
        if not active:
            stats = ctx.call("mount.swapon", own).get("stats")
            if stats is None:
                return Outcome(f"Swap {name} failed to activate", ok=False)
            comment, changes = f"Swap {name} activated", dict(stats)
        if status != "present":
            try:
                ctx.call("mount.set_fstab", *entry)
            except CommandError as error:
                return Outcome(f"{comment}. However, {config} was not written: {error}", changes, ok=False)
            changes["persist"] = {"new": "new", "change": "update"}[status]
            comment += {"new": ". Added new entry to the fstab.", "change": ". Updated the entry in the fstab."}[status]
        return Outcome(comment, changes)

    return Plan.change(told, [Step(f"swap to {name}", work)])
