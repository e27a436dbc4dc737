"""XFS file systems, by xfsprogs and xfsdump: Salt's ``xfs`` execution module."""

from __future__ import annotations

import re
import time
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import mount_table

#: Exit code of blkid that has found no device.
_NOTHING_FOUND = 2


def info(ctx: Context, device: str) -> dict[str, dict[str, str]]:
    """Return the geometry of a mounted XFS file system: a map of section (meta-data, data, naming, log, realtime) to
    a map of its values. Raise CommandError with the error of xfs_info.

    CLI Example:

        salt '*' xfs.info /dev/sda1
    """
    done = ctx.host.run(["xfs_info", device])
    if done.stderr.strip():
        raise CommandError(done.stderr.replace("xfs_info:", "").strip())
    return parse_geometry(done.stdout)


def mkfs(
    ctx: Context,
    device: str,
    label: str | None = None,
    ssize: object = None,
    noforce: object = None,
    bso: str | None = None,
    gmo: str | None = None,
    ino: str | None = None,
    lso: str | None = None,
    rso: str | None = None,
    nmo: str | None = None,
    dso: str | None = None,
) -> dict[str, dict[str, str]]:
    """Make an XFS file system on a device, which destroys what is on the device. Return its geometry, as
    ``xfs.info`` does. Raise CommandError with the error of mkfs.xfs.

    label
        the label, of at most 12 characters
    ssize
        the size of a sector: ``size=512``
    noforce
        True: not on a device that looks used
    bso, gmo, nmo, ino, dso, lso, rso
        options for blocks, metadata, names, inodes, data, log and realtime: ``size=1024,...``

    CLI Example:

        salt '*' xfs.mkfs /dev/sda1
        salt '*' xfs.mkfs /dev/sda1 dso='su=32k,sw=6' noforce=True
    """
    words = ["mkfs.xfs", *(["-L", label] if label else []), *(["-s", str(ssize)] if ssize else [])]
    rows = (("-b", bso), ("-m", gmo), ("-n", nmo), ("-i", ino), ("-d", dso), ("-l", lso), ("-r", rso))
    for switch, given in rows:
        if given and "=" in given:
            if any(part.count("=") != 1 for part in given.split(",")):
                raise CommandError(f'Wrong parameters "{given}" for option "{switch}"')
            words += [switch, given]
    return parse_geometry(_run(ctx, [*words, *([] if noforce else ["-f"]), device]))


def modify(
    ctx: Context, device: str, label: str | None = None, lazy_counting: bool | None = None, uuid: bool | None = None
) -> dict[str, dict[str, Any]]:
    """Change an XFS file system that is not mounted. Return a map of device to its properties, as ``xfs.devices``
    does. Raise CommandError if no change is given, or with the error of xfs_admin.

    label
        the new label
    lazy_counting
        whether counters are kept lazily
    uuid
        True: a new UUID; False: none

    CLI Example:

        salt '*' xfs.modify /dev/sda1 label='My backup' lazy_counting=False
        salt '*' xfs.modify /dev/sda1 uuid=True
    """
    if not label and lazy_counting is None and uuid is None:
        raise CommandError(f'Nothing specified for modification for "{device}" device')
    words = ["xfs_admin", *(["-L", label] if label else [])]
    words += [] if lazy_counting is None else ["-c", "1" if lazy_counting else "0"]
    words += [] if uuid is None else ["-U", "generate" if uuid else "nil"]
    _run(ctx, [*words, device])
    return _devices(ctx, ["blkid", "-o", "export", device])


def devices(ctx: Context) -> dict[str, dict[str, Any]]:
    """Return the XFS file systems of the host: a map of device to a map of label, uuid and others, with mount_point
    and options if it is mounted.

    CLI Example:

        salt '*' xfs.devices
    """
    return _devices(ctx, ["blkid", "-o", "export"], empty=_NOTHING_FOUND)


def defragment(ctx: Context, device: str) -> dict[str, str]:
    """Defragment a mounted XFS file system. Return a map with ``log``, the output of xfs_fsr. Raise CommandError if
    the device is not mounted.

    CLI Example:

        salt '*' xfs.defragment /dev/sda1
    """
    if device == "/":
        raise CommandError("Root is not a device.")
    if device not in _mounts(ctx):
        raise CommandError(f'Device "{device}" is not mounted')
    return {"log": _run(ctx, ["xfs_fsr", device]).rstrip("\n")}


def estimate(ctx: Context, path: str) -> dict[str, dict[str, str]]:
    """Return the space that a directory would need on an XFS file system: a map of path to a map of "block _size",
    blocks, megabytes and logsize. Raise CommandError if the path does not exist.

    CLI Example:

        salt '*' xfs.estimate /path/to/file
    """
    if not ctx.host.path(path).exists():
        raise CommandError(f'Path "{path}" was not found.')
    names = ("block _size", "blocks", "megabytes", "logsize")
    lines = [line.split() for line in lines_of(_run(ctx, ["xfs_estimate", "-v", path])) if line.strip()]
    return {row[0]: dict(zip(names, row[1:], strict=False)) for row in lines[1:]}


def dump(
    ctx: Context,
    device: str,
    destination: str,
    level: int = 0,
    label: str | None = None,
    noerase: object = None,
) -> dict[str, str]:
    """Dump a mounted XFS file system into a file by xfsdump. Return a map with "Session ID", "Session label", "Media
    size", "Dump complete" and "Status".

    level
        0 for everything, 1 to 9 for what changed since the dump of the level below
    label
        the session's label
    noerase
        True: do not erase the medium before

    CLI Example:

        salt '*' xfs.dump /dev/sda1 /detination/on/the/client
    """
    if ctx.host.which("xfsdump") is None:
        raise CommandError('Utility "xfsdump" has to be installed or missing.')
    name = label or time.strftime(f'XFS dump for "{device}" of %Y.%m.%d, %H:%M', time.localtime()).replace("'", '"')
    words = ["xfsdump", "-F", *([] if noerase else ["-E"]), "-L", name, "-l", str(level), "-f", destination, device]
    return parse_dump(_run(ctx, words))


def inventory(ctx: Context) -> dict[str, Any]:
    """Return xfsrestore's inventory of dumps: nested maps, as deep as xfsrestore shows them, and ``restore_status``,
    its last line.

    CLI Example:

        salt '*' xfs.inventory
    """
    return parse_inventory(_run(ctx, ["xfsrestore", "-I"]))


def prune_dump(ctx: Context, sessionid: str) -> dict[str, str]:
    """Remove a dump of an XFS file system from the inventory. Return a map of the removed entry's fields. Raise
    CommandError if there is no such dump.

    CLI Example:

        salt '*' xfs.prune_dump b74a3586-e52e-4a4a-8775-c3334fa8ea2c
    """
    text = _run(ctx, ["xfsinvutil", "-s", sessionid, "-F"])
    block = text.split("\n-", 2)[1] if text.count("\n-") else ""
    rows = (line.partition(":") for line in lines_of(block)[2:])
    found = {key.strip().lower().replace(" ", "_"): value.strip() for key, sign, value in rows if sign}
    if found.get("uuid") != sessionid:
        raise CommandError(f'Session UUID "{sessionid}" was not found.')
    return found


def parse_geometry(text: str) -> dict[str, dict[str, str]]:
    """Return the output of xfs_info as a map of section to a map of its values. A line that begins with = continues
    the section before it.
    """
    found: dict[str, dict[str, str]] = {}
    section: dict[str, str] = {}
    for line in lines_of(text):
        name, sign, rest = line.partition("=")
        if not sign:
            continue
        words = rest.replace(",", " ").split()
        start = next((at for at, word in enumerate(words) if "=" in word), len(words))
        if name.strip():
            section = found[name.strip()] = {"section": " ".join(words[:start]) or name.strip()}
        key = ""
        for word in words[start:]:
            own, sign, value = word.partition("=")
            key = own if sign else key
            section[key] = value if sign else f"{section[key]} {word}"
    return found


def parse_dump(text: str) -> dict[str, str]:
    """Return the output of xfsdump as a map with "Session ID", "Session label", "Media size", "Dump complete" and
    "Status".
    """
    patterns = {
        "Session ID": r"session id:\s+(\S+)",
        "Session label": r"session label: (.*)",
        "Media size": r"media file size\s+(.*)",
        "Dump complete": r"dump complete:\s+(.*)",
        "Status": r"Dump Status:\s+(.*)",
    }
    found = {}
    for key, pattern in patterns.items():
        match = re.search(rf"^(?:xfsdump: )?\s*{pattern}$", text, re.MULTILINE)
        if match:
            found[key] = match[1].strip()
    return found


def parse_inventory(text: str) -> dict[str, Any]:
    """Return the output of ``xfsrestore -I`` as nested maps: a line with only a name holds the deeper lines after
    it. The last line is ``restore_status``.
    """
    lines = [line for line in lines_of(text) if line.strip()]
    found: dict[str, Any] = {}
    places: list[dict[str, Any]] = [found]
    for line in lines[:-1]:
        depth = len(line) - len(line.lstrip("\t"))
        del places[depth + 1 :]
        key, _, value = line.strip().partition(":")
        if value.strip():
            places[-1][key.strip()] = value.strip()
        else:
            inner: dict[str, Any] = {}
            places[-1][key.strip()] = inner
            places.append(inner)
    return found | {"restore_status": lines[-1]} if lines else {}


def _devices(ctx: Context, words: list[str], empty: int = 0) -> dict[str, dict[str, Any]]:
    """Return the XFS file systems in the output of blkid. ``empty``: exit code with which blkid has found nothing."""
    found = {}
    mounts = _mounts(ctx)
    for block in _run(ctx, words, empty).split("\n\n"):
        rows = (line.partition("=") for line in lines_of(block.strip()))
        device: dict[str, Any] = {key.lower(): value for key, sign, value in rows if sign}
        if device.pop("type", None) == "xfs":
            name = device.pop("devname")
            found[name] = {**device, "label": device.get("label"), **mounts.get(name, {})}
    return found


def _mounts(ctx: Context) -> dict[str, dict[str, object]]:
    table = mount_table.parse(ctx.host.mount_table())
    return {
        row.device: {"mount_point": point, "options": row.plain_opts()}
        for point, row in table.items()
        if row.fstype == "xfs"
    }


def _run(ctx: Context, words: list[str], empty: int = 0) -> str:
    done = ctx.host.run(words)
    if done.retcode not in (0, empty):
        raise CommandError(done.stderr.rstrip("\n") or f"{words[0]} failed with exit code {done.retcode}")
    return done.stdout
