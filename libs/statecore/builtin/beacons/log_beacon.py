"""Lines that are added to a file and match."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from statecore.model.context import Context
from statecore.system.scheduling.beacon_config import listed, merged

VIRTUAL = "log"

#: Bytes that are read at a look; what is more waits for the next one.
_MOST = 4 * 1024 * 1024


def validate(ctx: Context, config: Any) -> tuple[bool, str]:
    """``file``: its path; ``tags``: tag -> ``regex``."""
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


def beacon(ctx: Context, config: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``{"match": "yes", "raw": line, "error": ""}`` for each new line that a regular expression matches from its start."""
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


def close(ctx: Context, config: list[dict[str, Any]]) -> None:
    """The file is let go."""
    tail = ctx.scratch.pop(_key(merged(config)), None)
    if tail is not None:
        tail.file.close()


def _key(whole: Mapping[str, Any]) -> str:
    return f"{whole.get('_beacon_name', 'log')}.tail"


def _new_lines(ctx: Context, whole: Mapping[str, Any]) -> list[str]:
    """Whole lines that were added since the last look; of a file that was replaced, what the old one still had, too."""
    key, path = _key(whole), ctx.host.path(str(whole["file"]))
    tail: _Tail | None = ctx.scratch.get(key)
    if tail is None:
        ctx.scratch[key] = _Tail(path.open("rb"), path.stat().st_size)
        return []
    lines = tail.read()
    now, held = path.stat(), os.fstat(tail.file.fileno())
    # The old one is held open, so that its number is not given to the new one.
    if (now.st_dev, now.st_ino) != (held.st_dev, held.st_ino):
        tail.file.close()
        tail = ctx.scratch[key] = _Tail(path.open("rb"), 0)
        lines += tail.read()
    return lines


@dataclass
class _Tail:
    """An open file, and up to where it has been read."""

    file: BinaryIO
    start: int

    def read(self) -> list[str]:
        """Whole lines behind ``start``; from the beginning if the file was cut."""
        if os.fstat(self.file.fileno()).st_size < self.start:
            self.start = 0
        self.file.seek(self.start)
        text = self.file.read(_MOST)
        end = text.rfind(b"\n") + 1
        if not end and len(text) == _MOST:
            end = _MOST
        self.start += end
        return text[:end].decode("utf-8", "replace").splitlines()
