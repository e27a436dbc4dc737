"""Beacon ``log``: fires an event for each new line of a log file that matches a regular expression."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

from statecore.model.context import Context
from statecore.model.text_lines import lines_of
from statecore.system.scheduling.beacon_config import listed, merged

VIRTUAL = "log"

#: Most bytes that one check reads. The next check reads the rest.
_MOST = 4 * 1024 * 1024


def validate(ctx: Context, config: object) -> tuple[bool, str]:
    """Return (True if the configuration of the beacon ``log`` is valid, comment). ``file`` is the path of the log file;
    ``tags`` maps each event tag to a map with the key ``regex``.
    """
    if fault := listed(config, "log"):
        return False, fault
    whole = merged(config)
    if "file" not in whole:
        return False, "Configuration for log beacon must contain file option."
    tags = whole.get("tags", {})
    if not isinstance(tags, Mapping) or not all(isinstance(options, Mapping) for options in tags.values()):
        return False, "Configuration for log beacon: tags must be a dictionary of dictionaries."
    for tag, options in tags.items():
        try:
            re.compile(options.get("regex") or "")
        except (re.error, TypeError) as error:
            return False, f"Configuration for log beacon: bad regex of {tag}: {error}"
    return True, "Valid beacon configuration"


def beacon(ctx: Context, config: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return a list of events ``{"match": "yes", "raw": line, "error": ""}``, one for each new line of the log file
    whose beginning matches a regular expression. The event's tag is the tag that the configuration has for this
    expression.
    """
    whole = merged(config)
    patterns = {
        tag: re.compile(options["regex"]) for tag, options in whole.get("tags", {}).items() if options.get("regex")
    }
    lines = _new_lines(ctx, whole)
    return [
        {"tag": tag, "match": "yes", "raw": line, "error": ""}
        for line in lines
        for tag, pattern in patterns.items()
        if pattern.match(line)
    ]


def close(ctx: Context, config: list[dict[str, object]]) -> None:
    """Close the log file of the beacon ``log``."""
    tail = ctx.scratch.pop(_key(merged(config)), None)
    if tail is not None:
        tail.file.close()


def _key(whole: Mapping[str, object]) -> str:
    return f"{whole.get('_beacon_name', 'log')}.tail"


def _new_lines(ctx: Context, whole: Mapping[str, object]) -> list[str]:
    """Return the complete lines that were added to the log file since the last check. If the file was replaced, the
    remaining lines of the old file come first.
    """
    key, path = _key(whole), ctx.host.path(str(whole["file"]))
    tail: _Tail | None = ctx.scratch.get(key)
    if tail is None:
        ctx.scratch[key] = _Tail(path.open("rb"), path.stat().st_size)
        return []
    lines = tail.read()
    now, held = path.stat(), os.fstat(tail.file.fileno())
    # The old file is still open, so the new file cannot have the same inode.
    if (now.st_dev, now.st_ino) != (held.st_dev, held.st_ino):
        tail.file.close()
        tail = ctx.scratch[key] = _Tail(path.open("rb"), 0)
        lines += tail.read()
    return lines


@dataclass
class _Tail:
    """An open log file, and the offset in bytes up to which it has been read."""

    file: BinaryIO
    start: int

    def read(self) -> list[str]:
        """Return the complete lines of the log file after the offset ``start``, and move ``start`` behind them. A file
        that became shorter is read from its beginning.
        """
        if os.fstat(self.file.fileno()).st_size < self.start:
            self.start = 0
        self.file.seek(self.start)
        text = self.file.read(_MOST)
        end = text.rfind(b"\n") + 1
        if not end and len(text) == _MOST:
            end = _MOST
        self.start += end
        return lines_of(text[:end].decode("utf-8", "replace"))
