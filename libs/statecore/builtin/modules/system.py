"""Shutdown, clock and name of the managed host: Salt's ``system`` execution module.

A mounted host is shut down by its own programs, and only where its own init runs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError

_OFFSET = re.compile(r"([+-])?(\d\d)(\d\d)")

_DESCRIPTION = re.compile(r"^\s*PRETTY_HOSTNAME=(.*)$", re.MULTILINE)

_MACHINE_INFO = "/etc/machine-info"

#: Files that exist while an init runs: of systemd, of sysvinit, of OpenRC.
_INITS = ("/run/systemd/system", "/run/initctl", "/run/openrc/softlevel")

_TIMES = ("%I:%M:%S %p", "%I:%M %p", "%H:%M:%S", "%H:%M")
_DATES = ("%Y-%m-%d", "%m-%d-%Y", "%m-%d-%y", "%m/%d/%Y", "%m/%d/%y", "%Y/%m/%d")

#: (plain character, its form in /etc/machine-info)
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t"))

_CONTROL = {"LC_ALL": "C", "SYSTEMD_IGNORE_CHROOT": "1"}


def halt(ctx: Context) -> str:
    """Halt the host. Return the output of the program ``halt``. Raise CommandError if the host does not have it,
    HostError for a mounted host whose init does not run.

    CLI Example:

        salt '*' system.halt
    """
    return _control(ctx, ["halt"])


def init(ctx: Context, runlevel: int | str) -> str:
    """Change the run level of a host with sysvinit. Return the output of the program ``init``. Raise InvocationError
    for text that is not a run level.

    CLI Example:

        salt '*' system.init 3
    """
    if re.fullmatch(r"[0-9A-Za-z]", str(runlevel)) is None:
        raise InvocationError(f"'{runlevel}' is not a run level")
    return _control(ctx, ["init", str(runlevel)])


def poweroff(ctx: Context) -> str:
    """Switch the host off. Return the output of the program ``poweroff``. Raise CommandError if the host does not have
    it, HostError for a mounted host whose init does not run.
    """
    return _control(ctx, ["poweroff"])


def reboot(ctx: Context, at_time: int | str | None = None) -> str:
    """Reboot the host now, in ``at_time`` minutes, or at ``hh:mm``. Return the output of the program ``shutdown``.
    Raise HostError for a mounted host whose init does not run.

    CLI Example:

        salt '*' system.reboot 5
    """
    return _control(ctx, ["shutdown", "-r", _when(at_time)])


def shutdown(ctx: Context, at_time: int | str | None = None) -> str:
    """Shut the host down now, in ``at_time`` minutes, or at ``hh:mm``. Return the output of the program ``shutdown``.
    Raise HostError for a mounted host whose init does not run.
    """
    return _control(ctx, ["shutdown", "-h", _when(at_time)])


# ------------------------------------------------------------------------------------------- the clock


def has_settable_hwclock(ctx: Context) -> bool:
    """Return whether the machine has a hardware clock that hwclock can set."""
    if ctx.host.which("hwclock") is None:
        return False
    return ctx.host.run(["hwclock", "--test", "--systohc"]).retcode == 0


def get_system_time(ctx: Context, utc_offset: str | None = None) -> str:
    """Return the host's time as ``HH:MM:SS AM``, in local time or at an offset such as ``+0200``.

    CLI Example:

        salt '*' system.get_system_time "'+0000'"
    """
    return _now(utc_offset).strftime("%I:%M:%S %p")


def get_system_date(ctx: Context, utc_offset: str | None = None) -> str:
    """Return the host's date as ``Sat 11/21/2026``, in local time or at an offset such as ``+0200``."""
    return _now(utc_offset).strftime("%a %m/%d/%Y")


def get_system_date_time(ctx: Context, utc_offset: str | None = None) -> str:
    """Return the host's date and time as ``2026-11-21 13:00:00``, in local time or at an offset such as ``+0200``."""
    return _now(utc_offset).strftime("%Y-%m-%d %H:%M:%S")


def set_system_time(ctx: Context, newtime: str, utc_offset: str | None = None) -> bool:
    """Set the host's time: ``HH:MM[:SS]``, with AM or PM, or in 24 hours. Return True; False for invalid text.

    CLI Example:

        salt '*' system.set_system_time "'11:20'"
    """
    wanted = _parsed(newtime, _TIMES)
    if wanted is None:
        return False
    parts = {"hours": wanted.hour, "minutes": wanted.minute, "seconds": wanted.second}
    return set_system_date_time(ctx, **parts, utc_offset=utc_offset)


def set_system_date(ctx: Context, newdate: str, utc_offset: str | None = None) -> bool:
    """Set the host's date: ``YYYY-MM-DD``, ``MM-DD-YYYY``, ``MM-DD-YY``, or the same with slashes. Return True. Raise
    InvocationError for any other text.

    CLI Example:

        salt '*' system.set_system_date 03-28-13
    """
    wanted = _parsed(newdate, _DATES)
    if wanted is None:
        raise InvocationError("Invalid date format")
    parts = {"years": wanted.year, "months": wanted.month, "days": wanted.day}
    return set_system_date_time(ctx, **parts, utc_offset=utc_offset)


def set_system_date_time(
    ctx: Context,
    years: int | None = None,
    months: int | None = None,
    days: int | None = None,
    hours: int | None = None,
    minutes: int | None = None,
    seconds: int | None = None,
    utc_offset: str | None = None,
) -> bool:
    """Set the given parts of the host's date and time, in the kernel and in the hardware clock if there is one. Return
    True.

    Raise CommandError with the message of ``date``.

    CLI Example:

        salt '*' system.set_system_date_time 2015 5 12 11 37 53 "'-0500'"
    """
    now = _now(utc_offset)
    given = (years, months, days, hours, minutes, seconds)
    current = (now.year, now.month, now.day, now.hour, now.minute, now.second)
    try:
        year, month, day, hour, minute, second = (
            one if new is None else int(new) for new, one in zip(given, current, strict=True)
        )
        wanted = datetime(year, month, day, hour, minute, second, tzinfo=now.tzinfo)
    except (TypeError, ValueError) as error:
        raise InvocationError(f"this date or time does not exist: {error}") from error
    words = ["date"]
    if utc_offset is not None:
        words, wanted = ["date", "-u"], wanted.astimezone(UTC)
    result = ctx.host.run([*words, wanted.strftime("%m%d%H%M%Y.%S")], env={"LC_ALL": "C"})
    if result.retcode:
        raise CommandError(f"date failed: {result.stderr.strip()}")
    if has_settable_hwclock(ctx) and (done := ctx.host.run(["hwclock", "--systohc"])).retcode:
        raise CommandError(f"the time is set; hwclock failed: {done.stderr.strip()}")
    return True


# -------------------------------------------------------------------------------------------- the name


def get_computer_name(ctx: Context) -> str:
    """Return the host's name.

    CLI Example:

        salt '*' system.get_computer_name
    """
    return str(ctx.call("network.get_hostname"))


def set_computer_name(ctx: Context, hostname: str) -> bool:
    """Set the host's name, as ``network.mod_hostname`` does. Return whether this succeeded.

    CLI Example:

        salt '*' system.set_computer_name web1.example.com
    """
    return bool(ctx.call("network.mod_hostname", hostname))


def get_computer_desc(ctx: Context) -> object:
    """Return the host's description (PRETTY_HOSTNAME in /etc/machine-info); False if it has none.

    CLI Example:

        salt '*' system.get_computer_desc
    """
    found = _DESCRIPTION.findall(_machine_info(ctx))
    if not found:
        return False
    text = found[-1].strip()
    text = text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text)


def set_computer_desc(ctx: Context, desc: str) -> bool:
    """Set the host's description (PRETTY_HOSTNAME in /etc/machine-info). Return True.

    CLI Example:

        salt '*' system.set_computer_desc "The office's printer"
    """
    text = str(desc)
    for plain, escaped in _ESCAPES:
        text = text.replace(plain, escaped)
    line = f'PRETTY_HOSTNAME="{text}"'
    before = _machine_info(ctx)
    after = _DESCRIPTION.sub(lambda _: line, before)
    if not _DESCRIPTION.search(before):
        after = f"{before}{'' if not before or before.endswith(chr(10)) else chr(10)}{line}\n"
    if after != before:
        managed_file.replace(ctx.host, ctx.host.path(_MACHINE_INFO), after.encode(), Attributes())
    return True


# ----------------------------------------------------------------------------------------------- helpers


def _control(ctx: Context, words: Sequence[str]) -> str:
    if ctx.host.which(words[0]) is None:
        raise CommandError(f"the host has no {words[0]}")
    if ctx.host.mounted and not any(ctx.host.path(path).exists() for path in _INITS):
        # In a chroot without its own init, the program would reach the init of the container that Saltern runs in.
        raise HostError(f"no init runs on the host at {ctx.host.root}: {words[0]} would not reach it")
    return ctx.host.run(words, env=_CONTROL, merge_stderr=True).stdout.rstrip()


def _when(at_time: int | str | None) -> str:
    if at_time in (None, "", 0, "0"):
        return "now"
    text = str(at_time)
    if re.fullmatch(r"\+?\d+|\d\d?:\d\d|now", text) is None:
        raise InvocationError(f"'{text}' is not a time: give minutes, or hh:mm")
    return text


def _now(utc_offset: str | None) -> datetime:
    if utc_offset is None:
        return datetime.now()
    match = _OFFSET.fullmatch(str(utc_offset))
    if match is None:
        raise InvocationError("Invalid UTC offset")
    minutes = int(match[2]) * 60 + int(match[3])
    zone: tzinfo = timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))
    return datetime.now(zone)


def _parsed(text: str, forms: Sequence[str]) -> datetime | None:
    for form in forms:
        try:
            return datetime.strptime(str(text), form)
        except ValueError:
            continue
    return None


def _machine_info(ctx: Context) -> str:
    data = managed_file.read(ctx.host.path(_MACHINE_INFO), _MACHINE_INFO)
    return (data or b"").decode("utf-8", "replace")
