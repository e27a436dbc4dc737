"""External pillar ``hiera``: the output of the program hiera of Puppet, as YAML.

.. code-block:: yaml

    ext_pillar:
      - hiera: /etc/hiera.yaml
"""

from __future__ import annotations

from statecore.host.plugin_commands import output_of
from statecore.model import yaml
from statecore.model.context import Context
from statecore.model.errors import CommandError


def available(ctx: Context) -> str | None:
    """Return None if the program hiera is installed, else a sentence with the reason."""
    return None if ctx.host.which("hiera") else "the program hiera is not installed"


def ext_pillar(ctx: Context, minion_id: str, pillar: dict[str, object], conf: str) -> object:
    """Return the data that ``hiera -c CONF grain=value ...`` prints. All grains that are texts are given.

    conf
        path of hiera's configuration

    Raises CommandError if hiera fails, or prints no YAML.
    """
    # As arguments, not through a shell: grains are the minion's own words.
    grains = [f"{name}={value}" for name, value in ctx.grains.items() if isinstance(value, str)]
    output = output_of(["hiera", "-c", conf, *grains], ctx.host, ctx.opts)
    try:
        return yaml.load(output, yaml.SLS)
    except yaml.YamlFault as fault:
        raise CommandError(f"hiera printed no YAML (line {fault.line} of it): {fault}") from fault
