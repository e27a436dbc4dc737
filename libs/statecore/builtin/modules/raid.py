"""Software RAIDs of Linux, by mdadm: Salt's ``raid`` execution module."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of

ALIASES = {"list": "list_"}

#: Parts of a line of ``mdadm --detail --scan`` that mdadm of Ubuntu cannot read.
_UBUNTU = re.compile(r"\s(name|metadata)=\S+", re.IGNORECASE)

#: Family of the system -> the program that puts mdadm.conf into the initramfs.
_INITRAMFS: Mapping[str, Sequence[str]] = {"Debian": ("update-initramfs", "-u"), "RedHat": ("dracut", "--force")}


def available(ctx: Context) -> str | None:
    """Return None if the host has mdadm; else return the reason as text."""
    return None if ctx.host.which("mdadm") else "the host has no mdadm"


def list_(ctx: Context) -> dict[str, dict[str, str]]:
    """Return the running software RAIDs: a map of device to a map of its properties, such as device, level,
    metadata, name and uuid.

    CLI Example:

        salt '*' raid.list
    """
    return parse_scan(_mdadm(ctx, "--detail", "--scan"))


def detail(ctx: Context, device: str = "/dev/md0") -> dict[str, object]:
    """Return the properties of a software RAID as a map, with ``members``: a map of number to a map of device,
    major, minor, number, raiddevice and state. Raise CommandError if the device does not exist.

    CLI Example:

        salt '*' raid.detail /dev/md0
    """
    if not ctx.host.path(device).exists():
        raise CommandError(f"Device {device} doesn't exist!")
    return parse_detail(_mdadm(ctx, "--detail", device), device)


def examine(ctx: Context, device: str, quiet: bool = False) -> dict[str, str]:
    """Return the data in the superblock of a device that is a member of a software RAID: a map with MD_LEVEL,
    MD_DEVICES, MD_UUID and others; {} if the device is no member.

    quiet
        no effect; Salt then logs no error

    CLI Example:

        salt '*' raid.examine /dev/sda1
    """
    rows = (line.partition("=") for line in lines_of(_mdadm(ctx, "-Y", "-E", device)))
    return {name: value for name, _, value in rows}


def create(
    ctx: Context,
    name: str,
    level: object,
    devices: Sequence[str],
    metadata: str = "default",
    test_mode: bool = False,
    **kwargs: object,
) -> str | None:
    """Make a software RAID, which destroys what is on the devices. Return mdadm's output as text, also if mdadm
    fails.

    level
        0, 1, 4, 5, 6, 10, stripe, mirror ...
    devices
        a list of devices; "missing" for a member that is added later
    metadata
        the version of the superblock
    test_mode
        True: only return the command
    kwargs
        options of mdadm; an option without a value is True

    CLI Example:

        salt '*' raid.create /dev/md0 level=1 devices="['/dev/xvdd', '/dev/xvde']"
    """
    count = len(devices) - int(str(kwargs.get("spare-devices", 0)))
    words = ["mdadm", "-C", name, "-R", "-v", "-l", str(level), *_options(kwargs)]
    words += ["-e", str(metadata), "-n", str(count), *devices]
    return " ".join(words) if test_mode else ctx.host.run(words, merge_stderr=True).stdout.rstrip("\n")


def assemble(
    ctx: Context, name: str, devices: str | Sequence[str], test_mode: bool = False, **kwargs: object
) -> str | list[str]:
    """Start a software RAID of existing members. Return mdadm's output as text, also if mdadm fails.

    devices
        a list of devices, or text with commas
    test_mode
        True: only return the command, as a list
    kwargs
        options of mdadm; an option without a value is True

    CLI Example:

        salt '*' raid.assemble /dev/md0 ['/dev/xvdd', '/dev/xvde']
    """
    names = devices.split(",") if isinstance(devices, str) else list(devices)
    words = ["mdadm", "-A", name, "-v", *_options(kwargs), *names]
    return words if test_mode else ctx.host.run(words, merge_stderr=True).stdout.rstrip("\n")


def add(ctx: Context, name: str, device: str) -> bool:
    """Add a device to a software RAID. Return whether this succeeded.

    CLI Example:

        salt '*' raid.add /dev/md0 /dev/sda1
    """
    return ctx.host.run(["mdadm", "--manage", name, "--add", device]).retcode == 0


def stop(ctx: Context) -> bool:
    """Stop all software RAIDs that are not in use. Return False if mdadm succeeds and True if it fails, as Salt
    does.

    CLI Example:

        salt '*' raid.stop
    """
    return ctx.host.run(["mdadm", "--stop", "--scan"]).retcode != 0


def destroy(ctx: Context, device: str) -> bool:
    """Stop a software RAID, remove the superblocks of its members, and remove it from mdadm.conf. Return whether the
    RAID no longer exists; False if there was none.

    CLI Example:

        salt '*' raid.destroy /dev/md0
    """
    try:
        found = detail(ctx, device)["members"]
    except CommandError:
        return False
    members = [row["device"] for row in found.values()] if isinstance(found, Mapping) else []
    if ctx.host.run(["mdadm", "--stop", device]).retcode == 0:
        ctx.host.run(["mdadm", "--zero-superblock", *members])
    old = _config(ctx)
    new = None if old is None else re.sub(rf"ARRAY {re.escape(device)} .*", "", old)
    if new is not None and new != old:
        _write(ctx, new)
    return device not in list_(ctx)


def save_config(ctx: Context) -> str | None:
    """Write the running software RAIDs into mdadm.conf, and rebuild the initramfs. Return the output of the program
    that rebuilds it; None on systems of other families than Debian and RedHat.

    CLI Example:

        salt '*' raid.save_config
    """
    scan = _mdadm(ctx, "--detail", "--scan")
    if ctx.grains.get("os") == "Ubuntu":
        scan = _UBUNTU.sub("", scan)
    text = _config(ctx) or ""
    for line in (each for each in lines_of(scan) if len(each.split()) > 1):
        pattern = rf"^ARRAY\s+{re.escape(line.split()[1])}\s+.*$"
        text, count = re.subn(pattern, lambda _, line=line: line, text, flags=re.MULTILINE)  # type: ignore[misc]
        if not count:
            text += f"{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n"
    if text != _config(ctx):
        _write(ctx, text)
    program = _INITRAMFS.get(str(ctx.grains.get("os_family")))
    return ctx.host.run(list(program), merge_stderr=True).stdout.rstrip("\n") if program else None


def parse_scan(text: str) -> dict[str, dict[str, str]]:
    """Return the output of ``mdadm --detail --scan`` as a map of RAID device to a map of its properties."""
    found = {}
    for words in (line.split() for line in lines_of(text)):
        if len(words) > 1:
            rows = (word.partition("=") for word in words[2:])
            found[words[1]] = {"device": words[1], **{key.lower(): value for key, _, value in rows}}
    return found


def parse_detail(text: str, device: str) -> dict[str, object]:
    """Return the output of ``mdadm --detail`` as a map of property to value, with ``members``: a map of number to a map
    of device, major, minor, number, raiddevice and state.
    """
    members: dict[str, dict[str, str]] = {}
    found: dict[str, object] = {"members": members}
    for line in lines_of(text):
        if line.startswith(device) or " " not in line:
            continue
        key, sign, value = line.partition(" : ")
        words = line.split()
        if sign:
            found[key.strip().lower().replace(" ", "_")] = value.split(" : ")[0].strip()
        elif ":" not in line and "/dev/" in line and len(words) > 4:
            number, major, minor, place, *state, member = words
            members[number] = {
                "device": member,
                "major": major,
                "minor": minor,
                "number": number,
                "raiddevice": place,
                "state": " ".join(state),
            }
    return found


def _mdadm(ctx: Context, *words: str) -> str:
    return ctx.host.run(["mdadm", *words]).stdout


def _options(given: Mapping[str, object]) -> list[str]:
    words = []
    for key, value in given.items():
        if not key.startswith("__"):
            words += [f"--{key}", *([] if value is True else [str(value)])]
    return words


def _file(ctx: Context) -> str:
    return "/etc/mdadm/mdadm.conf" if ctx.grains.get("os_family") == "Debian" else "/etc/mdadm.conf"


def _config(ctx: Context) -> str | None:
    data = managed_file.read(ctx.host.path(_file(ctx)), _file(ctx))
    return None if data is None else data.decode("utf-8", "surrogateescape")


def _write(ctx: Context, text: str) -> None:
    path = ctx.host.path(_file(ctx))
    managed_file.make_directories(ctx.host, path.parent, Attributes(), ctx.host.root)
    managed_file.replace(ctx.host, path, text.encode("utf-8", "surrogateescape"), Attributes())
