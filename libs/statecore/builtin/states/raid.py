"""Salt's ``raid`` states: software RAIDs of Linux.

/dev/md0:
  raid.present:
    - level: 5
    - devices: [/dev/xvdd, /dev/xvde, /dev/xvdf]
    - chunk: 256
    - run: True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step


def available(ctx: Context) -> str | None:
    """Return None if the host has mdadm; else return the reason as text."""
    return None if ctx.host.which("mdadm") else "the host has no mdadm"


def present(ctx: Context, name: str, level: object, devices: Sequence[str], **kwargs: object) -> Plan:
    """Assemble the RAID ``name`` if some of the devices are members already, otherwise create it; then add new devices.
    The state fails if the devices belong to different RAIDs, or if all of them are missing.

    level
        0, 1, 4, 5, 6, 10, stripe, mirror ...
    devices
        a list of devices; a missing one, or the word "missing", leaves a place free
    kwargs
        options of mdadm, such as chunk; an option without a value is True
    """
    now = ctx.call("raid.list").get(name)
    missing = [each for each in devices if each == "missing" or not ctx.host.path(each).exists()]
    members: dict[str, list[str]] = {}
    new: list[str] = []
    for device in (each for each in devices if each not in missing):
        uuid = ctx.call("raid.examine", device, quiet=True).get("MD_UUID")
        (new if uuid is None else members.setdefault(uuid, [])).append(device)
    if len(members) > 1:
        return Plan.failed(f"Devices are a mix of RAID constituents with multiple MD_UUIDs: {sorted(members)}.")
    for uuid in members:
        if now and now["uuid"] != uuid:
            return Plan.failed(f"Devices MD_UUIDs: {uuid} differs from present RAID uuid {now['uuid']}.")
    known = next(iter(members.values()), [])
    if not now and not known and not new:
        return Plan.failed(f"All devices are missing: {missing}.")
    note = f" Missing devices: {missing}" if missing else ""
    whole = [*new, *["missing"] * len(missing)]
    make: Callable[..., object] | None = None
    verb = "assembled" if known else "created"
    if not now and known:
        make = lambda **more: ctx.call("raid.assemble", name, known, **more, **kwargs)  # noqa: E731
    elif not now:
        make = lambda **more: ctx.call("raid.create", name, level, whole, **more, **kwargs)  # noqa: E731
    added = new if now or known else []
    there = f"Raid {name} already present."
    if make is None and not added:
        return Plan.unchanged(there + note)

    def work() -> Outcome:
        comment, changes = there, {}
        if make is not None:
            make()
            changes = dict(ctx.call("raid.list").get(name) or {})
            if not changes:
                return Outcome(f"Raid {name} failed to be {verb}.{note}", ok=False)
            comment = f"Raid {name} {verb}."
            ctx.call("raid.save_config")
        results = {device: ctx.call("raid.add", name, device) for device in added}
        for device, done in results.items():
            comment += f" Added new device {device} to {name}.\n" if done else f" Unable to add {device} to {name}.\n"
        ok = all(results.values())
        if added and ok:
            changes["added"] = added
        return Outcome(comment + note, changes, ok=ok)

    would = there if make is None else f"Raid will be {verb} with: {make(test_mode=True)}"
    more = f" New devices will be added: {added}" if added else ""
    return Plan.change(would + more + note, [Step(f"make the RAID {name}", work)])


def absent(ctx: Context, name: str) -> Plan:
    """Stop the RAID ``name`` and remove the superblocks of its members. Nothing happens if there is no such RAID; the
    state fails if mdadm fails.
    """
    if name not in ctx.call("raid.list"):
        return Plan.unchanged(f"Raid {name} already absent")

    def work() -> Outcome:
        if ctx.call("raid.destroy", name):
            return Outcome(f"Raid {name} has been destroyed")
        return Outcome(f"Raid {name} failed to be destroyed", ok=False)

    return Plan.change(f"Raid {name} is set to be destroyed", [Step(f"destroy the RAID {name}", work)])
