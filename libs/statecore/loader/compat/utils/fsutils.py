"""``salt.utils.fsutils`` for users' modules: mounted file systems and block devices of the minion's own machine."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from statecore.loader.current_context import context_of
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of

_MOUNTS = Path("/proc/mounts")
_PAIR = re.compile(r'(\w+)="([^"]*)"')


def _verify_run(out: Mapping[str, Any], cmd: str | None = None) -> None:
    """Raise CommandError with the error output of a command that failed."""
    if out.get("retcode", 0) and out["stderr"]:
        if cmd:
            raise CommandError(f'Command "{cmd}" failed: {out["stderr"]}')
        raise CommandError(str(out["stderr"]))


def _get_mounts(fs_type: str | None = None) -> dict[str, list[dict[str, str]]]:
    """Map of each mounted device to the list of its mounts, each a map with mount_point, type and options. ``fs_type``:
    only mounts of this file system.
    """
    found: dict[str, list[dict[str, str]]] = {}
    for line in lines_of(_MOUNTS.read_text("utf-8", "replace")):
        device, point, kind, options, *_ = line.split()
        if device.startswith("/") and fs_type in (None, kind):
            found.setdefault(device, []).append({"mount_point": point, "type": kind, "options": options})
    return found


def _blkid_output(out: str, fs_type: str | None = None) -> dict[str, dict[str, str | None]]:
    """Map of device to its values in the output of ``blkid -o export``: a map such as {"uuid": ..., "type": "ext4"},
    with "mounts" for a mounted device. ``fs_type``: only devices with this file system.
    """
    found: dict[str, dict[str, str | None]] = {}
    for block in out.strip().split("\n\n"):
        values = dict(line.split("=", 1) for line in lines_of(block) if "=" in line)
        device = values.pop("DEVNAME", None)
        if device and fs_type in (None, values.get("TYPE")):
            found[device] = {name.lower(): value for name, value in values.items()}
    for device, mounts in (_get_mounts(fs_type) if found else {}).items():
        if device in found:
            found[device]["mounts"] = mounts  # type: ignore[assignment]
    return found


def _blkid(fs_type: str | None = None) -> dict[str, dict[str, str]]:
    """Map of device to the values that the program ``blkid`` shows for it: a map such as {"uuid": ..., "type": "ext4"}.
    ``fs_type``: only devices with this file system.
    """
    out = str(context_of("salt.utils.fsutils._blkid").call("cmd.run", "blkid"))
    rows = (line.partition(": ") for line in lines_of(out))
    found = {device: {name.lower(): value for name, value in _PAIR.findall(rest)} for device, _, rest in rows}
    return {device: values for device, values in found.items() if fs_type in (None, values.get("type"))}


def _is_device(path: str) -> bool:
    """Return whether a path, or the file that it links to, is a block device."""
    real = os.path.realpath(path)
    return os.path.exists(real) and stat.S_ISBLK(os.stat(real).st_mode)
