"""Settings and figures of drives: what ``hdparm``, ``smartctl`` and ``iostat`` show for Salt's ``disk`` execution
module.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of

log = logging.getLogger(__name__)

_CENT = Decimal(".01")


def hdparms(
    ctx: Context, disks: str | Sequence[str], args: str | Sequence[str] = "aAbBcCdgHiJkMmNnQrRuW"
) -> dict[str, dict[str, object]]:
    """Return the settings of drives as hdparm shows them: a map of device to a map of setting to value.

    disks
        a drive, or a list: sda, /dev/sda
    args
        the letters of hdparm's options

    CLI Example:

        salt '*' disk.hdparms sda
    """
    _needs(ctx, "hdparm")
    options = args if isinstance(args, str) else "".join(args)
    found = {}
    for disk in [disks] if isinstance(disks, str) else disks:
        device = disk if disk.startswith("/dev") else f"/dev/{disk}"
        done = ctx.host.run(["hdparm", f"-{options}", device])
        if done.retcode:
            log.warning("hdparm -%s %s: %s", options, device, done.stderr.strip())
        found[device] = parse_hdparm(done.stdout, device)
    return found


def hpa(ctx: Context, disks: str | Sequence[str], size: object = None) -> dict[str, dict[str, int]] | None:
    """Return the numbers of sectors of drives, and how many the host protected area hides: a map of device to total,
    visible and hidden; only total if nothing is hidden. Raise CommandError if hdparm shows or sets no number.

    size
        set the number of visible sectors instead: hide this number of sectors, or all but a share such as "25%". Nothing
        is returned then.

    CLI Example:

        salt '*' disk.hpa /dev/sda
        salt '*' disk.hpa /dev/sda 5%
    """
    found: dict[str, dict[str, int]] = {}
    for disk, settings in hdparms(ctx, disks, "N").items():
        values = next(iter(settings.values()), None)
        if not isinstance(values, list) or len(values) < 3:
            raise CommandError(f"hdparm -N {disk} shows no number of sectors")
        visible, total, status = values[:3]
        alike = visible == total or "disabled" in str(status)
        found[disk] = {"total": total} if alike else {"total": total, "visible": visible, "hidden": total - visible}
    if size is None:
        return found
    for disk, sectors in found.items():
        wanted = _visible(sectors["total"], size)
        done = ctx.host.run(["hdparm", "--yes-i-know-what-i-am-doing", f"-Np{wanted}", disk])
        if done.retcode:
            raise CommandError(f"hdparm -Np{wanted} {disk}: {done.stderr.strip()}")
    return None


def smart_attributes(
    ctx: Context, dev: str, attributes: Sequence[int] | None = None, values: Sequence[str] | None = None
) -> dict[int, dict[str, object]]:
    """Return a drive's health attributes (SMART): a map of the attribute's number to a map of its fields. Raise
    CommandError if smartctl fails.

    dev
        the drive: sda, /dev/sda
    attributes
        only the attributes with these numbers
    values
        only these fields: attribute_name, flag, value, worst, thresh, type, updated, when_failed, raw_value

    CLI Example:

        salt '*' disk.smart_attributes /dev/sda
        salt '*' disk.smart_attributes /dev/sda attributes=[5,187]
    """
    device = dev if dev.startswith("/dev/") else f"/dev/{dev}"
    done = ctx.host.run(["smartctl", "--attributes", device])
    if done.retcode:
        raise CommandError(done.stderr.rstrip("\n"))
    found = parse_smart(done.stdout)
    return {
        number: {field: value for field, value in row.items() if values is None or field in values}
        for number, row in found.items()
        if attributes is None or number in attributes
    }


def iostat(
    ctx: Context, interval: int = 1, count: int = 5, disks: str | Sequence[str] | None = None
) -> dict[str, dict[str, float]]:
    """Return the mean load figures of drives, and of the processors as ``sys``: a map of drive to a map of iostat's
    columns to the mean of all samples.

    interval
        seconds between two samples
    count
        number of samples; the first one shows the means since the system's start
    disks
        only this drive, or a list of drives; ``sys`` is then left out

    CLI Example:

        salt '*' disk.iostat 1 5 disks=sda
    """
    _needs(ctx, "iostat")
    names = [disks] if isinstance(disks, str) else list(disks or ())
    words = ["iostat", "-xd" if disks is not None else "-x", str(interval), str(count), *names]
    return parse_iostat(ctx.host.run(words).stdout)


def parse_hdparm(text: str, device: str) -> dict[str, object]:
    """Return hdparm's output for one drive as a map of setting to a value, or to a list if there are several."""
    found: dict[str, object] = {}
    for line in (each.strip() for each in lines_of(text)):
        sign = ":" if ":" in line else "="
        if line == f"{device}:" or sign not in line:
            continue
        key, _, values = line.partition(sign)
        parts = _hdparm_values(values.strip())
        if parts:
            name = (key.removesuffix(" is") if sign == ":" else key).strip().lower().replace(" ", "_")
            found[name] = parts[0] if len(parts) == 1 else parts
    return found


def parse_smart(text: str) -> dict[int, dict[str, object]]:
    """Return the table of ``smartctl --attributes`` as a map of the attribute's number to its fields."""
    lines = iter(lines_of(text))
    head = next((line for line in lines if line.startswith("ID#")), "")
    fields = [field.lower() for field in head.split()[1:]]
    found: dict[int, dict[str, object]] = {}
    for line in lines:
        if not re.match(r"\s*\d", line):
            break
        number, *row = line.split(None, len(fields))
        found[int(number)] = {field: _numbers(value) for field, value in zip(fields, row, strict=False)}
    return found


def parse_iostat(text: str) -> dict[str, dict[str, float]]:
    """Return iostat's output as a map of drive, or ``sys``, to the mean of each column."""
    heads: dict[str, list[str]] = {}
    rows: dict[str, list[list[Decimal]]] = {}
    lines = iter(lines_of(text))
    for line in lines:
        words = line.split()
        if words[:1] == ["avg-cpu:"]:
            heads.setdefault("sys", words[1:])
            rows.setdefault("sys", []).append(_decimals(next(lines, "").split()))
        elif words and words[0].rstrip(":") == "Device":
            heads.setdefault("", words[1:])
            for disk, values in _table(lines):
                rows.setdefault(disk, []).append(values)
    return {name: _means(heads["sys" if name == "sys" else ""], each) for name, each in rows.items()}


def _table(lines: Iterator[str]) -> Iterator[tuple[str, list[Decimal]]]:
    """Yield (drive, values of its columns) for each line of iostat's output up to an empty line."""
    for line in lines:
        if not line[:1].isalnum():
            return
        disk, *values = line.split()
        yield disk, _decimals(values)


def _means(head: Sequence[str], rows: Sequence[Sequence[Decimal]]) -> dict[str, float]:
    means = (sum(column, Decimal(0)) / len(column) for column in zip(*rows, strict=False))
    return {name: float(mean.quantize(_CENT, ROUND_HALF_EVEN)) for name, mean in zip(head, means, strict=False)}


def _decimals(words: Sequence[str]) -> list[Decimal]:
    try:
        return [Decimal(word) for word in words]
    except InvalidOperation as error:
        raise CommandError(f"iostat shows no numbers: {' '.join(words)}") from error


def _hdparm_values(text: str) -> list[object]:
    if re.match(r"[0-9]+ \(.*\)", text):
        number, word, *_ = text.split(" ")
        return [int(number), word.strip("()")]
    plain: list[object] = []
    named: dict[str, object] = {}
    for part in (each.strip() for each in re.split("[/,]", text)):
        key, sign, value = part.partition("=")
        if _is_number(part):
            plain.append(int(part))
        elif sign and value.strip():
            named[key.strip()] = value.strip()
        elif part and not sign:
            plain.append(part)
    return [*plain, named] if named else plain


def _numbers(text: str) -> object:
    """Convert a field of smartctl's table to a number, or to a list of numbers; any other text is returned
    unchanged.
    """
    words = text.split(" ")
    if not all(_is_number(word) for word in words):
        return text
    return int(text) if len(words) == 1 else [int(word) for word in words]


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+", text) is not None


def _visible(total: int, size: object) -> int:
    """Return the number of sectors of a drive that stay visible if ``size`` sectors, or a share such as "25%", are
    hidden; all if none would stay visible. Raise CommandError for any other text.
    """
    text = str(size)
    try:
        wanted = (100 - int(text.strip("%"))) * total // 100 if "%" in text else total - int(text)
    except ValueError:
        raise CommandError(f"{size!r} is no number of sectors and no share such as 25%") from None
    return wanted if wanted > 0 else total


def _needs(ctx: Context, program: str) -> None:
    if ctx.host.which(program) is None:
        raise CommandError(f"the host has no {program}")
