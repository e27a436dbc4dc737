"""Time zone and hardware clock of the managed host: Salt's ``timezone`` execution module.

If systemd runs, ``timedatectl`` reads and sets them. Otherwise, and on a mounted host, their files are read and
written.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

from statecore.host import copies
from statecore.host.content import atomic_file, managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of

_LOCALTIME = "/etc/localtime"
_ZONES = "/usr/share/zoneinfo"

#: Grain os_family -> file and variable with the zone's name.
_SYSCONFIG = {"RedHat": ("/etc/sysconfig/clock", "ZONE"), "Suse": ("/etc/sysconfig/clock", "TIMEZONE")}
_RCS = "/etc/default/rcS"
_ADJTIME = "/etc/adjtime"


def get_zone(ctx: Context) -> str:
    """Return the name of the host's time zone, such as ``Europe/Berlin``. Raise CommandError if it cannot be
    determined.

    CLI Example:

        salt '*' timezone.get_zone
    """
    if _timedatectl(ctx):
        found = re.search(r"^\s*Time ?zone:\s+(\S+)", _timedatectl_output(ctx), re.MULTILINE)
        if found is None:
            raise CommandError(f"timedatectl prints no time zone:\n{_timedatectl_output(ctx)}")
        return found[1]
    family = str(ctx.grains.get("os_family"))
    if family in ("Debian", "Gentoo") and (name := _text(ctx, "/etc/timezone").strip()):
        return name
    if family in _SYSCONFIG and (name := _variable(ctx, *_SYSCONFIG[family])):
        return name
    link = ctx.host.path(_LOCALTIME, follow=False)
    if link.is_symlink():
        target = os.path.normpath(PurePosixPath("/etc", str(link.readlink())))
        if target.startswith(f"{_ZONES}/"):
            return target.removeprefix(f"{_ZONES}/")
    raise CommandError("Unable to determine timezone")


def get_zonecode(ctx: Context) -> str:
    """Return the abbreviation of the host's time zone at present, such as CET."""
    return ctx.host.run(["date", "+%Z"]).stdout.strip()


def get_offset(ctx: Context) -> str:
    """Return the offset of the host's time zone from UTC at present, such as +0100."""
    return ctx.host.run(["date", "+%z"]).stdout.strip()


def zone_compare(ctx: Context, timezone: str) -> bool:
    """Return whether the host has the time zone ``timezone``. If the name of the host's time zone is not known, the
    zone files are compared; then raise InvocationError for an unknown zone.
    """
    try:
        return bool(timezone == get_zone(ctx))
    except CommandError:
        own, other = ctx.host.path(_LOCALTIME), _zone_file(ctx, timezone)
        if not other.is_file():
            raise InvocationError(f'Can\'t find a local timezone "{timezone}"') from None
        if not own.is_file():
            raise CommandError(f"Failed to read {_LOCALTIME} to determine current timezone") from None
        return copies.same_content(own, other)


def set_zone(ctx: Context, timezone: str) -> bool:
    """Set the host's time zone. Return True. Raise CommandError for a zone that the host does not have.

    CLI Example:

        salt '*' timezone.set_zone Europe/Berlin
    """
    if not _zone_file(ctx, timezone).is_file():
        raise CommandError(f"Zone does not exist: {_ZONES}/{timezone}")
    if _timedatectl(ctx):
        ctx.host.run(["timedatectl", "set-timezone", timezone])
    _link(ctx, timezone)
    return True


def get_hwclock(ctx: Context) -> str | None:
    """Return the kind of time that the hardware clock holds: "UTC" or "localtime" ("LOCAL" from /etc/adjtime); None
    if it is unknown.
    """
    if _timedatectl(ctx):
        found = re.search(r"^\s*rtc in local tz:\s*(\S+)", _timedatectl_output(ctx), re.MULTILINE | re.IGNORECASE)
        return "localtime" if found and found[1].lower() == "yes" else "UTC"
    if ctx.grains.get("os_family") == "Debian" and (in_utc := _variable(ctx, _RCS, "UTC")):
        return "UTC" if in_utc.lower() == "yes" else "localtime"
    lines = lines_of(_text(ctx, _ADJTIME))
    return lines[-1] if lines else None


def set_hwclock(ctx: Context, clock: str) -> bool:
    """Set whether the hardware clock holds "UTC" or "localtime". Return True; False if timedatectl failed."""
    if _timedatectl(ctx):
        local = "true" if clock == "localtime" else "false"
        return ctx.host.run(["timedatectl", "set-local-rtc", local]).retcode == 0
    if ctx.host.path(_RCS).is_file():
        _set_variable(ctx, _RCS, "UTC", "no" if clock == "localtime" else "yes", quote="")
        return True
    lines = (*lines_of(_text(ctx, _ADJTIME))[:2], "0.0 0 0.0", "0")
    text = "\n".join((*lines[:2], "LOCAL" if clock == "localtime" else "UTC", ""))
    managed_file.replace(ctx.host, ctx.host.path(_ADJTIME), text.encode(), Attributes())
    return True


def _timedatectl(ctx: Context) -> bool:
    booted = not ctx.host.mounted and ctx.host.path("/run/systemd/system").is_dir()
    return booted and ctx.host.which("timedatectl") is not None


def _timedatectl_output(ctx: Context) -> str:
    result = ctx.host.run(["timedatectl"])
    if result.retcode:
        raise CommandError(f"timedatectl failed: {result.stderr.strip()}")
    return result.stdout


def _zone_file(ctx: Context, timezone: str) -> Path:
    return ctx.host.path(f"{_ZONES}/{timezone}")


def _link(ctx: Context, timezone: str) -> None:
    real_path = ctx.host.path(_LOCALTIME, follow=False)
    try:
        with atomic_file.replacement(real_path) as new:
            new.symlink_to(f"{_ZONES}/{timezone}")
    except OSError as error:
        raise CommandError(f"{_LOCALTIME} cannot be set: {error.strerror}") from error
    family = str(ctx.grains.get("os_family"))
    if family in ("Debian", "Gentoo"):
        managed_file.replace(ctx.host, ctx.host.path("/etc/timezone"), f"{timezone}\n".encode(), Attributes())
    elif family in _SYSCONFIG and ctx.host.path(_SYSCONFIG[family][0]).is_file():
        _set_variable(ctx, *_SYSCONFIG[family], timezone, quote='"')


def _text(ctx: Context, name: str) -> str:
    return (managed_file.read(ctx.host.path(name), name) or b"").decode("utf-8", "replace")


def _variable(ctx: Context, name: str, key: str) -> str:
    found = re.search(rf"^\s*{key}\s*=\s*[\"']?([^\"'\n]*)", _text(ctx, name), re.MULTILINE)
    return found[1].strip() if found else ""


def _set_variable(ctx: Context, name: str, key: str, value: str, *, quote: str) -> None:
    line = f"{key}={quote}{value}{quote}"
    text, count = re.subn(rf"^\s*{key}=.*$", line, _text(ctx, name), flags=re.MULTILINE)
    if not count:
        text = f"{text}{line}\n"
    managed_file.replace(ctx.host, ctx.host.path(name), text.encode(), Attributes())
