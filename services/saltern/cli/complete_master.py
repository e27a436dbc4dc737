"""Fetches names for completion from the master: ``python -m saltern.cli.complete_master minions|keys FILE``.

It runs in the background of ``saltern complete``, which reads the file.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from saltern.cli.context import CommandContext
from saltern.kit.config.master import ConfigError
from saltern.kit.links.control import ControlError, ControlTimeout, wheel_functions
from statecore.host.content import private_files

#: Seconds to wait for the master.
_PATIENCE = 3.0


def names_about(about: str, context: CommandContext) -> Mapping[str, list[str]]:
    """Return the names for completion from the master, as a map.

    For "keys" it maps a key state to minion ids. For "minions" it has the minions' ids, the node groups, and the state tree's
    directories. Names that this client may not read, or that the master does not deliver, are missing.
    """
    options = context.load(None)
    found: dict[str, list[str]] = {}
    if about == "minions":
        roots = [root for paths in options.file_roots.values() for root in paths]
        found = {"nodegroups": sorted(options.nodegroups), "file_roots": roots}
    with contextlib.suppress(ControlError, ControlTimeout, ConfigError):
        control = context.control(options, config_dir=None)
        if about == "keys":
            found = wheel_functions(control, _PATIENCE)("key.list_all")
        else:
            # The wheel is not used here: each of its calls fires an event, and each press of Tab would be one.
            found["minions"] = control.call("targets", timeout=_PATIENCE, tgt="*", tgt_type="glob")["minions"]
    return found


def write(path: Path, found: Mapping[str, object]) -> None:
    """Write the cache file of completion atomically, readable by its owner only, because it holds ids of hosts."""
    private_files.write(path, json.dumps(found))


def main(argv: list[str]) -> int:
    """Write the cache file of completion. Return exit code 0, or 1 if the configuration or the file is unusable."""
    try:
        write(Path(argv[1]), names_about(argv[0], CommandContext()))
    except (ConfigError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
