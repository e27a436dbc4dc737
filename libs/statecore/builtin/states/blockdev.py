"""Salt's ``blockdev`` states: properties of block devices, and file systems on them.

/dev/sdb1:
  blockdev.formatted:
    - fs_type: xfs
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step

#: Argument -> option of blockdev that reads the property.
_READ: Mapping[str, str] = {
    "read-ahead": "getra",
    "filesystem-read-ahead": "getfra",
    "read-only": "getro",
    "read-write": "getro",
}

#: How often, and how many seconds apart, a new file system is looked for.
_LOOKS = 10
_PAUSE = 3.0


def tuned(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Set properties of the block device ``name`` that differ. The state fails if ``name`` is not a block device, or if
    the kernel refuses a value.

    read-ahead, filesystem-read-ahead
        sectors of 512 bytes to read ahead
    read-only, read-write
        True
    """
    if not ctx.call("file.is_blkdev", name):
        return Plan.failed(f"Changes to {name} cannot be applied. Not a block device.")
    now = ctx.call("disk.dump", name)
    if not now:
        return Plan.failed(f"Failed to modify block device {name}")
    wanted = {key: value for key, value in kwargs.items() if key in _READ}
    if wanted == kwargs and all(now.get(_READ[key]) == _expected(key, value) for key, value in wanted.items()):
        return Plan.unchanged(f"Block device {name} already in correct state")

    def work() -> Outcome:
        new = ctx.call("disk.tune", name, **kwargs)
        if not new:
            return Outcome(f"Failed to modify block device {name}", ok=False)
        changes = {
            key: f"Changed from {_shown(key, value, now)} to {_shown(key, value, new)}"
            for key, value in wanted.items()
            if now[_READ[key]] != new[_READ[key]]
        }
        if not changes:
            return Outcome(f"Block device {name} already in correct state")
        return Outcome(f"Block device {name} successfully modified ", changes)

    return Plan.change(f"Changes to {name} will be applied ", [Step(f"tune {name}", work)])


def formatted(ctx: Context, name: str, fs_type: str = "ext4", force: bool = False, **kwargs: object) -> Plan:
    """Make a file system on the block device ``name``, if it has none of this type. This destroys the data on the
    device. The state fails if the device or mkfs for this type does not exist.

    fs_type
        the type of the file system, as mkfs names it
    force
        True: also on a device that looks used
    kwargs
        arguments of ``disk.format``: inode_size, lazy_itable_init, fat
    """
    if not ctx.host.path(name).exists():
        return Plan.failed(f"{name} does not exist")
    old = _type(ctx, name)
    if old == fs_type:
        return Plan.unchanged(f"{name} already formatted with {fs_type}")
    if ctx.host.which(f"mkfs.{fs_type}") is None:
        return Plan.failed(f"Invalid fs_type: {fs_type}")

    def work() -> Outcome:
        made = ctx.call("disk.format", name, fs_type, force=force, **kwargs)
        for look in range(_LOOKS if made else 1):
            if look:
                # udev shows a new file system after a while.
                time.sleep(_PAUSE)
            now = _type(ctx, name)
            if now == fs_type:
                return Outcome(f"{name} has been formatted with {fs_type}", {"new": fs_type, "old": old})
            if now:
                break
        return Outcome(f"Failed to format {name}", ok=False)

    return Plan.change(f"Changes to {name} will be applied ", [Step(f"make a file system on {name}", work)])


def _type(ctx: Context, name: str) -> str:
    return ctx.host.run(["blkid", "-o", "value", "-s", "TYPE", name]).stdout.strip()


def _expected(key: str, value: object) -> str:
    """Return the text that the program blockdev prints for a property (``key``) with the wanted value."""
    return {"read-only": "1", "read-write": "0"}.get(key, str(value))


def _shown(key: str, value: object, state: Mapping[str, str]) -> object:
    now = state[_READ[key]]
    if not isinstance(value, bool):
        return now
    return (now == "1") != (key == "read-write")
