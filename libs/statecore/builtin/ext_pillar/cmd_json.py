"""External pillar ``cmd_json``: pillar of a minion from the JSON output of a command."""

from __future__ import annotations

import json
import shlex

from statecore.host.plugin_commands import checked_id, output_of
from statecore.model.context import Context
from statecore.model.errors import CommandError


def ext_pillar(ctx: Context, minion_id: str, pillar: dict[str, object], command: str) -> object:
    """Return the pillar data from the JSON output of ``command``, which runs without a shell. ``%s`` in the command is
    replaced by the minion's id. Raises CommandError if the command fails or prints no JSON.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CommandError(f"the command cannot be split into words: {error}") from error
    words = [word.replace("%s", checked_id(minion_id)) if "%s" in word else word for word in words]
    if not words:
        raise CommandError("the command is empty")
    output = output_of(words, ctx.host, ctx.opts)
    try:
        return json.loads(output)
    except ValueError as error:
        line = f", line {error.lineno} of its output" if isinstance(error, json.JSONDecodeError) else ""
        raise CommandError(f"the command printed no JSON{line}") from error
