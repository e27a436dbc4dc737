"""Module ``ext_nodes`` of the option ``master_tops``: a command that is called with a minion's id and prints the
minion's classes (SLS names) as YAML.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from statecore.host.plugin_commands import checked_id, output_of
from statecore.model import yaml
from statecore.model.context import Context
from statecore.model.errors import CommandError


def available(ctx: Context) -> str | None:
    """Return None if the option ``master_tops`` has a command for ext_nodes, else a sentence with the reason."""
    configured = ctx.opts.get("master_tops")
    if not isinstance(configured, Mapping) or not configured.get("ext_nodes"):
        return "the option master_tops has no command for ext_nodes"
    return None


def top(ctx: Context, **kwargs: object) -> dict[str, list[str]]:
    """Return ``{saltenv: [SLS name, ...]}`` of one minion, from the output of the command ``master_tops: ext_nodes``.

    The output is a map with ``classes`` (a list or a map) and ``environment`` (default base). Raise CommandError if the
    command fails or does not print YAML, or for a minion id with special characters.
    """
    opts = kwargs["opts"]
    minion_id = opts.get("id") if isinstance(opts, Mapping) else None
    if not minion_id:
        return {}
    try:
        words = shlex.split(str(ctx.opts["master_tops"]["ext_nodes"]))
    except ValueError as error:
        raise CommandError(f"the command cannot be split into words: {error}") from error
    output = output_of([*words, checked_id(str(minion_id))], ctx.host, ctx.opts)
    try:
        data = yaml.load(output, yaml.SLS)
    except yaml.YamlFault as fault:
        raise CommandError(f"the command printed no YAML (line {fault.line} of it): {fault}") from fault
    if not data:
        return {}
    if not isinstance(data, Mapping):
        raise CommandError(f"the command printed {type(data).__name__}, and must print a map with `classes`")
    classes = data.get("classes")
    if not isinstance(classes, Mapping | list):
        return {}
    return {str(data.get("environment", "base")): [str(name) for name in classes]}
