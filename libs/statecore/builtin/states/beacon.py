"""Salt's ``beacon`` states: beacons of the minion."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step
from statecore.system.scheduling.beacon_config import merged


def present(ctx: Context, name: str, save: bool = False, **kwargs: object) -> Plan:
    """Configure a beacon of the minion. All arguments except ``name`` and ``save`` are options of the beacon.

    save
        True: also save the beacons to the minion's configuration, so that they survive a restart
    """
    wanted = [{key: value} for key, value in kwargs.items()]
    configured = _configured(ctx)
    verb = "modify" if name in configured else "add"
    predicted = ctx.call(f"beacons.{verb}", name, wanted, test=True)
    if not predicted["result"]:
        return Plan.failed(predicted["comment"])
    if verb == "modify" and "changes" not in predicted:
        return Plan.unchanged(predicted["comment"])
    word = f"Modifying {name} in beacons" if verb == "modify" else f"Adding {name} to beacons"
    changes = predicted.get("changes") or {name: "added"}

    def work() -> Outcome:
        return _outcome(ctx.call(f"beacons.{verb}", name, wanted), word, changes)

    return _planned(ctx, name, save, predicted["comment"], Step(f"{verb} the beacon {name}", work), changes)


def absent(ctx: Context, name: str, save: bool = False) -> Plan:
    """Remove a beacon of the minion. ``save``: also save the beacons, so that it stays removed after a restart."""
    if name not in _configured(ctx):
        return Plan.unchanged(f"{name} not configured in beacons")

    def work() -> Outcome:
        return _outcome(ctx.call("beacons.delete", name), f"Removed {name} from beacons", {name: "removed"})

    step = Step(f"remove the beacon {name}", work)
    return _planned(ctx, name, save, f"Beacon: {name} would be deleted.", step, {name: "removed"})


def enabled(ctx: Context, name: str) -> Plan:
    """Enable a configured beacon of the minion. Nothing happens if the beacon is not configured."""
    return _switched(ctx, name, f"Enabled {name} from beacons", f"{name} not a configured beacon", on=True)


def disabled(ctx: Context, name: str) -> Plan:
    """Disable a configured beacon of the minion. Nothing happens if the beacon is not configured."""
    return _switched(ctx, name, f"Disabled beacon {name}.", f"Job {name} is not configured.", on=False)


def _switched(ctx: Context, name: str, comment: str, missing: str, *, on: bool) -> Plan:
    able = "enable" if on else "disable"
    config = _configured(ctx).get(name)
    if config is None:
        return Plan.unchanged(missing)
    if isinstance(config, list) and bool(merged(config).get("enabled", True)) is on:
        return Plan.unchanged(comment)

    def work() -> Outcome:
        return _outcome(ctx.call(f"beacons.{able}_beacon", name), comment, {name: f"{able}d"})

    would = f"Beacon {name} would be {able}d."
    return Plan.change(would, [Step(f"{able} the beacon {name}", work)], {name: f"{able}d"})


def _configured(ctx: Context) -> Mapping[str, object]:
    beacons: Mapping[str, object] = ctx.call("beacons.list", return_yaml=False)
    return beacons


def _planned(ctx: Context, name: str, save: bool, would: str, step: Step, changes: Mapping[str, object]) -> Plan:
    if not save:
        return Plan.change(would, [step], changes)

    def keep() -> Outcome:
        done = ctx.call("beacons.save")
        return Outcome(f"Beacon {name} saved" if done["result"] else str(done["comment"]), ok=bool(done["result"]))

    steps = [step, Step("save the beacons", keep)]
    return Plan.change(f"{would}\nBeacon {name} would be saved", steps, changes)


def _outcome(done: Mapping[str, object], comment: str, changes: Mapping[str, object]) -> Outcome:
    return Outcome(comment, changes) if done["result"] else Outcome(str(done["comment"]), ok=False)
