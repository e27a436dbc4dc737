"""Runs the commands of the master's plugins (cmd_yaml, cmd_json, ext_nodes), with a time limit. The output of a failed
command is dropped.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence

from statecore.model.errors import CommandError, HostError
from statecore.model.ports import ManagedHost
from statecore.model.values import to_float

log = logging.getLogger(__name__)

#: Minion ids that are safe as arguments: no special characters of a shell, no dash or plus sign at the beginning (options),
#: and no "~" at the beginning or behind a colon, where a shell puts a home directory.
_PLAIN_ID = re.compile(r"(?!.*:~)[\w.@:][\w.@:+~-]*")

#: Time limit of a command in seconds, without the option ``ext_pillar_timeout``.
_TIMEOUT = 30


def checked_id(minion_id: str) -> str:
    """Return the minion id when it is safe as an argument of a command. Raises CommandError for special characters."""
    if minion_id in (".", "..") or not _PLAIN_ID.fullmatch(minion_id):
        raise CommandError(f"the minion's id '{minion_id}' holds what a command must not be given")
    return minion_id


def output_of(command: str | Sequence[str], host: ManagedHost, opts: Mapping[str, object]) -> str:
    """Run a command and return its standard output. A text runs through /bin/sh.

    Raises CommandError when the command cannot be started, fails, or exceeds the option ``ext_pillar_timeout``. Its
    error output goes only to the log, because a minion may not be allowed to see it.
    """
    shown = command if isinstance(command, str) else " ".join(command)
    seconds = to_float(opts.get("ext_pillar_timeout") or _TIMEOUT)
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
            f"the command '{_program(shown)}' failed with exit code {done.retcode}; its error output is in the master's log"
        )
    return done.stdout


def _program(command: str) -> str:
    """Return the name of a command's program, without the arguments, which may contain secrets."""
    return command.split(maxsplit=1)[0] if command.strip() else command
