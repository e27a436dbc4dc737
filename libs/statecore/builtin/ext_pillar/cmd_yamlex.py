"""External pillar ``cmd_yamlex``: pillar of a minion from the output of a command, YAML with ``!aggregate`` and ``!reset``."""

from __future__ import annotations

from statecore.host.plugin_commands import checked_id, output_of
from statecore.model import yaml
from statecore.model.context import Context
from statecore.model.errors import CommandError


def ext_pillar(ctx: Context, minion_id: str, pillar: dict[str, object], command: str) -> object:
    """Return the pillar data from the output of ``command``, which runs through a shell. ``%s`` in the command is
    replaced by the minion's id. Raises CommandError if the command fails or prints no YAML.
    """
    wanted = command.replace("%s", checked_id(minion_id)) if "%s" in command else command
    output = output_of(wanted, ctx.host, ctx.opts)
    try:
        return yaml.load(output, yaml.YAMLEX)
    except yaml.YamlFault as fault:
        place = f", line {fault.line} of its output" if fault.line else ""
        raise CommandError(f"the command printed no YAML{place}") from fault
