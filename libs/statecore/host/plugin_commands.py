"""Commands that plugins of the master run (cmd_yaml, cmd_json, ext_nodes): bounded in time, and nothing of a failed one counts."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from statecore.model.errors import CommandError, HostError
from statecore.model.ports import ManagedHost

log = logging.getLogger(__name__)

#: Ids that a command may be given: nothing that a shell understands, and no option.
_PLAIN_ID = re.compile(r"[\w.@:+~][\w.@:+~-]*")

#: Seconds for a command, where the option ``ext_pillar_timeout`` does not say otherwise.
_TIMEOUT = 30


def checked_id(minion_id: str) -> str:
    """The id, as an argument of a command. Raises CommandError for one that could be more than that."""
    if not _PLAIN_ID.fullmatch(minion_id):
        raise CommandError(f"the minion's id '{minion_id}' holds what a command must not be given")
    return minion_id


def output_of(command: str | Sequence[str], host: ManagedHost, opts: Mapping[str, Any]) -> str:
    """Standard output. Raises CommandError: it cannot be started, it failed, or it takes too long.

    What it says about its failure is for the log: a minion may not know it. A str runs through /bin/sh.
    """
    shown = command if isinstance(command, str) else " ".join(command)
    seconds = float(opts.get("ext_pillar_timeout") or _TIMEOUT)
    try:
        done = host.run(command, timeout=seconds)
    except HostError as error:
        raise CommandError(str(error)) from error
    if done.timed_out:
        raise CommandError(
            f"the command '{_program(shown)}' takes longer than {seconds:g} seconds (ext_pillar_timeout)"
        )
    if done.retcode:
        log.error("%s: exit code %d: %s", shown, done.retcode, done.stderr.strip())
        raise CommandError(
            f"the command '{_program(shown)}' failed with exit code {done.retcode}; what it said is in the master's log"
        )
    return done.stdout


def _program(command: str) -> str:
    """The program alone: arguments may be secrets."""
    return command.split(maxsplit=1)[0] if command.strip() else command
