"""Data of the firmware about the hardware (SMBIOS, DMI), by dmidecode: Salt's ``smbios`` execution module."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection
from typing import Any

from statecore.model.context import Context
from statecore.model.text_lines import lines_of

_PROGRAMS = ("dmidecode", "smbios")

_HANDLE = re.compile(r"(handle [0-9]x[0-9a-f]+[^\n]+)\n", re.IGNORECASE)

#: Values of serial numbers, part numbers and versions that manufacturers put where they have none.
_NO_NUMBER = re.compile(r"[0]?1234567[8]?[9]?[0]?|^[0]+$")
_NO_NUMBER_WORD = re.compile(r"sernum|part[_-]?number|specified|filled|applicable", re.IGNORECASE)

_NO_NAME = re.compile(r"manufacturer|to be filled|available|asset|^no(ne|t)", re.IGNORECASE)

_NO_VALUE = re.compile(
    r"to be filled|un(known|specified)|no(t|ne)? (asset|provided|defined|available|present|specified)", re.IGNORECASE
)


def available(ctx: Context) -> str | None:
    """Return None if the host has dmidecode or smbios; else return the reason as text."""
    return None if _program(ctx) else "the host has neither dmidecode nor smbios"


def get(ctx: Context, string: str, clean: bool = True) -> str | None:
    """Return one value of the firmware's data about the hardware as text, None if the firmware has none.

    string
        the value's name, as dmidecode has it: bios-vendor, system-manufacturer, system-product-name,
        system-serial-number, system-uuid, baseboard-serial-number, chassis-type, processor-version ...
    clean
        False: also return texts such as "To be filled by O.E.M."

    CLI Example:

        salt '*' smbios.get system-uuid clean=False
    """
    lines = lines_of(ctx.host.run([_program(ctx) or _PROGRAMS[0], "-s", string]).stdout.strip())
    value = "\n".join(line for line in lines if not line.startswith("#"))
    return None if value.startswith("/dev/mem") or (clean and not is_clean(string, value)) else value


def records(
    ctx: Context, rec_type: object = None, fields: Collection[str] | None = None, clean: bool = True
) -> list[dict[str, Any]]:
    """Return the firmware's records about the hardware: a list of maps of handle, description, type (a number) and
    data (a map of field to value).

    rec_type
        only records of this type: a number, or bios, system, baseboard, chassis, processor, memory, cache, connector,
        slot
    fields
        only these fields, in lower case with underscores
    clean
        False: also return empty fields and texts such as "To be filled by O.E.M."

    CLI Example:

        salt '*' smbios.records clean=False
        salt '*' smbios.records 14
        salt '*' smbios.records 4 core_count,thread_count,current_speed
    """
    words = [_program(ctx) or _PROGRAMS[0], *(["-t", str(rec_type)] if rec_type is not None else [])]
    return parse(ctx.host.run(words).stdout, clean=clean, fields=fields)


def parse(text: str, *, clean: bool = True, fields: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Return dmidecode's output as a list of records: maps of handle, description, type and data, as
    ``smbios.records`` returns them.
    """
    found = []
    parts = _HANDLE.split(text)[1:]
    for head, body in zip(parts[::2], parts[1::2], strict=False):
        handle, kind = (each.split()[-1] for each in head.split(",")[:2])
        description, *lines = body.split("\n")
        record: dict[str, Any] = {"handle": handle, "description": description.strip(), "type": int(kind)}
        data = _data(lines, clean=clean, fields=fields)
        if data:
            record["data"] = data
        if data or not clean:
            found.append(record)
    return found


def is_clean(key: str, value: str) -> bool:
    """Return whether the firmware's value of a field is a real one, and no placeholder such as "To be filled by
    O.E.M." or 0000000.
    """
    if not value or value.lower().startswith("none"):
        return False
    if "uuid" in key:
        return _is_uuid(value)
    if re.search("serial|part|version", key):
        return not _NO_NUMBER.match(value) and not _NO_NUMBER_WORD.search(value)
    if re.search("asset|manufacturer", key):
        return not _NO_NAME.search(value)
    return not _NO_VALUE.search(value)


def _data(lines: list[str], *, clean: bool, fields: Collection[str] | None) -> dict[str, Any]:
    """Return the fields in the lines of one record of dmidecode: a map of field to value. A line with two tabs is
    one more value of the field before it.
    """
    found: dict[str, Any] = {}
    key = ""
    for line in lines:
        if re.match(r"\t\S", line):
            name, _, value = line.partition(":")
            key = name.strip().lower().replace(" ", "_")
            if (clean and key == "header_and_data") or (fields and key not in fields):
                key = ""
                continue
            first = _cast(key, value.strip(), clean=clean)
            found[key] = (first, [])
        elif key and re.match(r"\t\t\S", line):
            more = _cast(key, line.strip(), clean=clean)
            if more is not None:
                found[key][1].append(more)
    rows = {
        key: [first, *more] if first is not None and more else more or first for key, (first, more) in found.items()
    }
    return {key: value for key, value in rows.items() if value is not None}


def _cast(key: str, value: str, *, clean: bool) -> Any:
    if clean and not is_clean(key, value):
        return None
    if re.match("serial|part|asset|product", key):
        return value
    if "," in value:
        return [each.strip() for each in value.split(",")]
    return int(value) if re.fullmatch(r"[+-]?\d+", value) else value


def _is_uuid(value: str) -> bool:
    try:
        uuid.UUID(value)
    except ValueError:
        return False
    return True


def _program(ctx: Context) -> str | None:
    return next((path for path in map(ctx.host.which, _PROGRAMS) if path), None)
