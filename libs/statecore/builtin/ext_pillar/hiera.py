"""External pillar ``hiera``: the output of the program hiera of Puppet, as YAML.

.. code-block:: yaml

    ext_pillar:
      - hiera: /etc/hiera.yaml
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping

from statecore.host.plugin_commands import output_of
from statecore.model import yaml
from statecore.model.context import Context
from statecore.model.errors import CommandError

log = logging.getLogger(__name__)

#: Names of grains that are no option and no other name: a name with "=" would set another variable.
_NAME = re.compile(r"[A-Za-z0-9_][\w.:-]*")


def available(ctx: Context) -> str | None:
    """Return None if the program hiera is installed, else a sentence with the reason."""
    return None if ctx.host.which("hiera") else "the program hiera is not installed"


def ext_pillar(ctx: Context, minion_id: str, pillar: dict[str, object], conf: str) -> object:
    """Return the data that ``hiera -c CONF -- grain=value ...`` prints. The grains that are texts are given, but not those that
    hiera could read as something else.

    conf
        path of hiera's configuration

    Raises CommandError if hiera fails, or prints no YAML.
    """
    # As arguments, not through a shell: grains are the minion's own words.
    output = output_of(["hiera", "-c", conf, "--", *_scope(ctx.grains)], ctx.host, ctx.opts)
    try:
        return yaml.load(output, yaml.SLS)
    except yaml.YamlFault as fault:
        raise CommandError(f"hiera printed no YAML (line {fault.line} of it): {fault}") from fault


def _scope(grains: Mapping[str, object]) -> Iterator[str]:
    """Yield ``grain=value`` for each grain that is a text. Left out, with a line in the log: names that are no name of a
    variable; values with ``%{``, which hiera would interpolate; values with ``..`` or control characters, which would lead
    the paths of hiera's hierarchy elsewhere.
    """
    for name, value in grains.items():
        if not isinstance(value, str):
            continue
        if _NAME.fullmatch(str(name)) and "%{" not in value and ".." not in value.split("/") and _printable(value):
            yield f"{name}={value}"
        else:
            log.warning("the external pillar hiera: the grain %s is left out", ascii(str(name))[:80])


def _printable(value: str) -> bool:
    return value == "" or value.isprintable()
