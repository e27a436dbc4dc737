"""Beacon ``journald``: fires an event for each new entry of the host's systemd journal that matches. It reads the
journal with the host's program ``journalctl``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.system.scheduling.beacon_config import listed, merged

#: Beginning of the last line of ``journalctl --show-cursor``.
_CURSOR = "-- cursor: "

#: Journal fields that are numbers in Salt's events. Salt reads the journal with a Python library; journalctl writes
#: them as
#: text.
_NUMBERS = frozenset(
    (
        "PRIORITY",
        "SYSLOG_FACILITY",
        "SYSLOG_PID",
        "_PID",
        "_UID",
        "_GID",
        "_AUDIT_SESSION",
        "_AUDIT_LOGINUID",
        "_SYSTEMD_SESSION",
        "_SYSTEMD_OWNER_UID",
        "CODE_LINE",
        "ERRNO",
        "EXIT_STATUS",
        "LEADER",
        "SESSION_ID",
        "USERSPACE_USEC",
        "INITRD_USEC",
        "KERNEL_USEC",
        *(f"COREDUMP_{name}" for name in ("PID", "UID", "GID", "SESSION", "SIGNAL")),
    )
)


def available(ctx: Context) -> str | None:
    """Return None if the host has journalctl, else a sentence with the reason."""
    return None if ctx.host.which("journalctl") else "journalctl is missing."


def validate(ctx: Context, config: object) -> tuple[bool, str]:
    """Return (True if the configuration of the beacon ``journald`` is valid, comment). Its ``services`` maps each
    service name to a map of journal field to wanted value.
    """
    if fault := listed(config, "journald"):
        return False, fault
    services = merged(config).get("services", {})
    if not isinstance(services, Mapping) or not all(isinstance(fields, Mapping) for fields in services.values()):
        return False, "Services configuration for journald beacon must be a list of dictionaries."
    return True, "Valid beacon configuration"


def beacon(ctx: Context, config: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return a list of events, one for each new journal entry that has all fields of a service: the entry's fields. The
    event's tag is the service name. Raise CommandError if journalctl fails.
    """
    whole = merged(config)
    key = f"{whole.get('_beacon_name', 'journald')}.cursor"
    cursor = ctx.scratch.get(key)
    words = ["journalctl", "--no-pager", "--quiet", "--output=json", "--show-cursor"]
    words += ["--lines=0"] if cursor is None else [f"--after-cursor={cursor}"] if cursor else []
    done = ctx.host.run(words)
    if done.retcode and not done.stderr.strip() and not cursor:
        # An empty journal has no cursor. The next check then reads it from its beginning.
        ctx.scratch[key] = ""
        return []
    if done.retcode:
        raise CommandError(f"journalctl failed: {done.stderr.strip() or f'exit code {done.retcode}'}")
    found = []
    for line in lines_of(done.stdout):
        if line.startswith(_CURSOR):
            ctx.scratch[key] = line.removeprefix(_CURSOR).strip()
        elif line.startswith("{") and cursor is not None:
            entry = json.loads(line)
            found += [
                {**_typed(entry), "tag": name}
                for name, fields in whole.get("services", {}).items()
                if _fits(entry, fields)
            ]
    return found


def _typed(entry: Mapping[str, object]) -> dict[str, object]:
    return {
        name: int(value) if name in _NUMBERS and isinstance(value, str) and value.isdecimal() else value
        for name, value in entry.items()
    }


def _fits(entry: Mapping[str, object], fields: Mapping[str, object]) -> bool:
    """Return True if a journal entry has all ``fields`` (field name to value). Values are compared as text, because
    journalctl writes numbers as text.
    """
    return all(str(entry.get(name)) == str(value) for name, value in fields.items())
